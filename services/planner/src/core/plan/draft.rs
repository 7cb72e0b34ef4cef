//! Tasks before they have their order: what each one makes, reads and waits for.

use std::collections::{BTreeSet, HashMap, HashSet};

use servo_model::limits::INPUT_KEYS_PER_PLAN_MAX;
use servo_model::partitioning::Moment;
use servo_model::{Operation, PartitionKey, TaskKey};
use servo_proto::v1::{ErrorReason as Reason, InputShape, PlannedInput};

use super::parse_key;
use crate::core::check::Link;
use crate::core::choose::{Chosen, FIELD};
use crate::core::deployed::Deployed;
use crate::core::freshness::Place;
use crate::core::refusal::Refusal;

/// One task; others are named by their place in the list of drafts.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) key: TaskKey,
    pub(super) asset: u32,
    pub(super) upstream: BTreeSet<usize>,
    pub(super) inputs: Vec<PlannedInput>,
    pub(super) mapped_over: Option<usize>,
    /// Every partition it makes and every one it depends on; only kept when the plan depends on what they are like.
    pub(super) made: Vec<Place>,
    pub(super) read: Vec<Place>,
    /// It need not run.
    pub(super) up_to_date: bool,
}

impl Draft {
    pub(super) fn all(
        deployed: &Deployed,
        chosen: &Chosen,
        operation: Operation,
        moment: &Moment,
        keep_places: bool,
    ) -> Result<Vec<Draft>, Refusal> {
        let mut drafts = Vec::new();
        let mut places: HashMap<u32, HashMap<Option<&PartitionKey>, usize>> = HashMap::new();
        for (asset, partitions) in chosen {
            for partition in partitions {
                let key = deployed.keys[*asset as usize].clone();
                let key = TaskKey::new(key, partition.clone(), operation);
                places
                    .entry(*asset)
                    .or_default()
                    .insert(partition.as_ref(), drafts.len());
                drafts.push(Draft {
                    made: if keep_places {
                        made_by(deployed, *asset, partition.as_ref())
                    } else {
                        Vec::new()
                    },
                    key,
                    asset: *asset,
                    upstream: BTreeSet::new(),
                    inputs: Vec::new(),
                    mapped_over: None,
                    read: Vec::new(),
                    up_to_date: false,
                });
            }
        }
        let keys_left = INPUT_KEYS_PER_PLAN_MAX;
        let mut linker = Linker {
            deployed,
            places,
            moment,
            keys_left,
            keep_places,
        };
        for draft in &mut drafts {
            match operation {
                Operation::Materialize | Operation::Evaluate => linker.link_all(draft)?,
                Operation::Check => draft.inputs.push(itself(deployed, draft)),
            }
        }
        Ok(drafts)
    }
}

fn made_by(deployed: &Deployed, maker: u32, partition: Option<&PartitionKey>) -> Vec<Place> {
    let partition = partition.map(ToString::to_string).unwrap_or_default();
    let members = deployed.members[maker as usize].iter();
    members
        .map(|asset| (deployed.name(*asset).to_owned(), partition.clone()))
        .collect()
}

/// Everything that each of these partitions of an asset is made from.
pub(crate) fn read_by(
    deployed: &Deployed,
    asset: u32,
    partitions: &[Option<PartitionKey>],
    moment: &Moment,
) -> Result<Vec<Vec<Place>>, Refusal> {
    let maker = deployed.maker(asset);
    let (places, keys_left) = (HashMap::new(), INPUT_KEYS_PER_PLAN_MAX);
    let mut linker = Linker {
        deployed,
        places,
        moment,
        keys_left,
        keep_places: true,
    };
    let mut of_one = |partition: &Option<PartitionKey>| {
        let mut read = Vec::new();
        for link in deployed.task_links(maker) {
            let keys = linker.read(maker, partition.as_ref(), link)?;
            read.extend(places_of(deployed.name(link.upstream), keys.as_deref()));
        }
        Ok(read)
    };
    partitions.iter().map(&mut of_one).collect()
}

fn places_of(asset: &str, keys: Option<&[PartitionKey]>) -> Vec<Place> {
    match keys {
        None => vec![(asset.to_owned(), String::new())],
        Some(keys) => keys
            .iter()
            .map(|key| (asset.to_owned(), key.to_string()))
            .collect(),
    }
}

/// A check reads what the asset holds already.
fn itself(deployed: &Deployed, draft: &Draft) -> PlannedInput {
    let shape = if draft.key.partition().is_some() {
        InputShape::One
    } else {
        InputShape::Whole
    };
    PlannedInput {
        asset_key: deployed.name(draft.asset).to_owned(),
        parameter: String::new(),
        partition_keys: draft
            .key
            .partition()
            .map(ToString::to_string)
            .into_iter()
            .collect(),
        optional: false,
        shape: shape.into(),
    }
}

struct Linker<'a> {
    deployed: &'a Deployed,
    places: HashMap<u32, HashMap<Option<&'a PartitionKey>, usize>>,
    moment: &'a Moment,
    /// How many partitions inputs may still name.
    keys_left: usize,
    keep_places: bool,
}

impl Linker<'_> {
    fn link_all(&mut self, draft: &mut Draft) -> Result<(), Refusal> {
        let deployed = self.deployed;
        for link in deployed.task_links(draft.asset) {
            self.link(draft, link)?;
        }
        Ok(())
    }

    fn link(&mut self, draft: &mut Draft, link: &Link) -> Result<(), Refusal> {
        let keys = self.read(draft.asset, draft.key.partition(), link)?;
        let places = self.places.get(&self.deployed.maker(link.upstream));
        let before: Vec<usize> = match (&keys, places) {
            (_, None) => Vec::new(),
            (None, Some(places)) => places.get(&None).copied().into_iter().collect(),
            (Some(keys), Some(places)) => keys
                .iter()
                .filter_map(|key| places.get(&Some(key)).copied())
                .collect(),
        };
        if link.mapped {
            draft.mapped_over = Some(self.yielding(draft, link, &before)?);
        }
        draft.upstream.extend(before);
        if self.keep_places {
            draft.read.extend(places_of(
                self.deployed.name(link.upstream),
                keys.as_deref(),
            ));
        }
        if !link.parameter.is_empty() {
            draft.inputs.push(PlannedInput {
                asset_key: self.deployed.name(link.upstream).to_owned(),
                parameter: link.parameter.clone(),
                partition_keys: keys.iter().flatten().map(ToString::to_string).collect(),
                optional: link.optional,
                shape: self.shape(draft.asset, link).into(),
            });
        }
        Ok(())
    }

    fn shape(&self, asset: u32, link: &Link) -> InputShape {
        match (&link.mapping, self.deployed.partitioning(link.upstream)) {
            (Some(mapping), Some(up))
                if mapping.is_one_to_one(up, self.deployed.partitioning(asset)) =>
            {
                InputShape::One
            }
            (Some(_), Some(_)) => InputShape::Several,
            _ => InputShape::Whole,
        }
    }

    /// The partitions that a link reads; `None` of an asset in one piece.
    fn read(
        &mut self,
        asset: u32,
        partition: Option<&PartitionKey>,
        link: &Link,
    ) -> Result<Option<Vec<PartitionKey>>, Refusal> {
        let (Some(mapping), Some(up)) = (&link.mapping, self.deployed.partitioning(link.upstream))
        else {
            return Ok(None);
        };
        let down = self.deployed.partitioning(asset).zip(partition);
        let keys = mapping.upstream(up, down, self.moment);
        let keys = keys.map_err(|error| Refusal::of_partitioning(FIELD, &error))?;
        self.keys_left = self.keys_left.checked_sub(keys.len()).ok_or_else(|| {
            let sentence = format!(
                "the inputs of its tasks name more than {INPUT_KEYS_PER_PLAN_MAX} partitions together; select fewer"
            );
            Refusal::of_field(Reason::QuotaExceeded, FIELD, sentence)
        })?;
        Ok(Some(keys))
    }

    /// The task whose items a mapped one runs over must be part of the run, and only one.
    fn yielding(&self, draft: &Draft, link: &Link, before: &[usize]) -> Result<usize, Refusal> {
        let (key, upstream) = (&draft.key, self.deployed.name(link.upstream));
        match before {
            [only] => Ok(*only),
            [] => Err(Refusal::of_field(
                Reason::SelectionInvalid,
                "spec.selection",
                format!(
                    "`{key}` runs over the items of `{upstream}`, which must run with it; select `1+` of it"
                ),
            )),
            _ => Err(Refusal::of_field(
                Reason::PartitionInvalid,
                FIELD,
                format!(
                    "`{key}` would run over the items of {} partitions of `{upstream}`",
                    before.len()
                ),
            )),
        }
    }
}

/// Keeps the named tasks, and those whose items they run over: a finished task's items are not kept.
pub(super) fn only(drafts: Vec<Draft>, names: &[String]) -> Result<Vec<Draft>, Refusal> {
    const FIELD: &str = "only_task_keys";
    if names.is_empty() {
        return Ok(drafts);
    }
    let places: HashMap<&TaskKey, usize> = drafts.iter().map(|draft| &draft.key).zip(0..).collect();
    let mut named = Vec::with_capacity(names.len());
    for (index, text) in names.iter().enumerate() {
        let key = parse_key(FIELD, index, text)?;
        named.push(places.get(&key).copied().ok_or_else(|| {
            Refusal::of_field(
                Reason::InvalidField,
                format!("{FIELD}[{index}]"),
                format!("`{key}` is no task of this plan"),
            )
        })?);
    }
    Ok(keep(drafts, named))
}

/// Keeps these, and those whose items they run over.
pub(super) fn keep(drafts: Vec<Draft>, wanted: impl IntoIterator<Item = usize>) -> Vec<Draft> {
    let mut kept = HashSet::new();
    for place in wanted {
        let mut next = Some(place);
        while let Some(place) = next.filter(|place| kept.insert(*place)) {
            next = drafts[place].mapped_over;
        }
    }
    renumbered(drafts, &kept)
}

fn renumbered(drafts: Vec<Draft>, kept: &HashSet<usize>) -> Vec<Draft> {
    let places: Vec<usize> = (0..drafts.len())
        .filter(|place| kept.contains(place))
        .collect();
    let numbers: HashMap<usize, usize> = places.into_iter().zip(0..).collect();
    let kept = drafts
        .into_iter()
        .enumerate()
        .filter(|(place, _)| numbers.contains_key(place));
    kept.map(|(_, draft)| Draft {
        upstream: draft
            .upstream
            .iter()
            .filter_map(|place| numbers.get(place).copied())
            .collect(),
        mapped_over: draft
            .mapped_over
            .and_then(|place| numbers.get(&place).copied()),
        ..draft
    })
    .collect()
}
