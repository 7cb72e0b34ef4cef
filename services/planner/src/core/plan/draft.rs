//! Drafts of tasks: the outputs, inputs and upstream tasks of each, before they are ordered.

use std::collections::{BTreeSet, HashMap, HashSet};

use servo_model::limits::INPUT_KEYS_PER_PLAN_MAX;
use servo_model::partitioning::Moment;
use servo_model::{Operation, PartitionKey, TaskKey};
use servo_proto::v1::{ErrorReason as Reason, InputShape, PlannedInput};

use super::parse_key;
use crate::core::check::Link;
use crate::core::deployment_graph::DeploymentGraph;
use crate::core::freshness::PartitionRef;
use crate::core::partition_selection::{FIELD, SelectedPartitions};
use crate::core::refusal::Refusal;

/// One task. Other tasks are referred to by their index in the list of drafts.
#[derive(Debug)]
pub(super) struct TaskDraft {
    pub(super) key: TaskKey,
    pub(super) asset: u32,
    pub(super) upstream: BTreeSet<usize>,
    pub(super) inputs: Vec<PlannedInput>,
    pub(super) mapped_over: Option<usize>,
    /// Every partition that the task makes, and every one that it reads. Filled only when the plan
    /// depends on the state of partitions.
    pub(super) output_partitions: Vec<PartitionRef>,
    pub(super) input_partitions: Vec<PartitionRef>,
    /// The task need not run.
    pub(super) up_to_date: bool,
}

impl TaskDraft {
    pub(super) fn draft_all(
        graph: &DeploymentGraph,
        selected: &SelectedPartitions,
        operation: Operation,
        moment: &Moment,
        keep_partitions: bool,
    ) -> Result<Vec<TaskDraft>, Refusal> {
        let mut drafts = Vec::new();
        let mut draft_indexes: HashMap<u32, HashMap<Option<&PartitionKey>, usize>> = HashMap::new();
        for (asset, partitions) in selected {
            for partition in partitions {
                let key = graph.keys[*asset as usize].clone();
                let key = TaskKey::new(key, partition.clone(), operation);
                draft_indexes
                    .entry(*asset)
                    .or_default()
                    .insert(partition.as_ref(), drafts.len());
                drafts.push(TaskDraft {
                    output_partitions: if keep_partitions {
                        outputs_of(graph, *asset, partition.as_ref())
                    } else {
                        Vec::new()
                    },
                    key,
                    asset: *asset,
                    upstream: BTreeSet::new(),
                    inputs: Vec::new(),
                    mapped_over: None,
                    input_partitions: Vec::new(),
                    up_to_date: false,
                });
            }
        }
        let keys_left = INPUT_KEYS_PER_PLAN_MAX;
        let mut linker = Linker {
            graph,
            draft_indexes,
            moment,
            keys_left,
            keep_partitions,
        };
        for draft in &mut drafts {
            match operation {
                Operation::Materialize | Operation::Evaluate => linker.link_all(draft)?,
                Operation::Check => draft.inputs.push(input_of_check(graph, draft)),
            }
        }
        Ok(drafts)
    }
}

fn outputs_of(
    graph: &DeploymentGraph,
    maker: u32,
    partition: Option<&PartitionKey>,
) -> Vec<PartitionRef> {
    let partition = partition.map(ToString::to_string).unwrap_or_default();
    let members = graph.members[maker as usize].iter();
    members
        .map(|asset| (graph.name(*asset).to_owned(), partition.clone()))
        .collect()
}

/// Returns the partitions that each of these partitions of an asset reads.
pub(crate) fn inputs_of_partitions(
    graph: &DeploymentGraph,
    asset: u32,
    partitions: &[Option<PartitionKey>],
    moment: &Moment,
) -> Result<Vec<Vec<PartitionRef>>, Refusal> {
    let maker = graph.maker(asset);
    let (draft_indexes, keys_left) = (HashMap::new(), INPUT_KEYS_PER_PLAN_MAX);
    let mut linker = Linker {
        graph,
        draft_indexes,
        moment,
        keys_left,
        keep_partitions: true,
    };
    let mut of_one = |partition: &Option<PartitionKey>| {
        let mut read = Vec::new();
        for link in graph.task_links(maker) {
            let keys = linker.read(maker, partition.as_ref(), link)?;
            read.extend(partition_refs(graph.name(link.upstream), keys.as_deref()));
        }
        Ok(read)
    };
    partitions.iter().map(&mut of_one).collect()
}

fn partition_refs(asset: &str, keys: Option<&[PartitionKey]>) -> Vec<PartitionRef> {
    match keys {
        None => vec![(asset.to_owned(), String::new())],
        Some(keys) => keys
            .iter()
            .map(|key| (asset.to_owned(), key.to_string()))
            .collect(),
    }
}

/// Returns the input of a check, which reads the stored data of its own asset.
fn input_of_check(graph: &DeploymentGraph, draft: &TaskDraft) -> PlannedInput {
    let shape = if draft.key.partition().is_some() {
        InputShape::One
    } else {
        InputShape::Whole
    };
    PlannedInput {
        asset_key: graph.name(draft.asset).to_owned(),
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
    graph: &'a DeploymentGraph,
    draft_indexes: HashMap<u32, HashMap<Option<&'a PartitionKey>, usize>>,
    moment: &'a Moment,
    /// How many more partitions the inputs may name.
    keys_left: usize,
    keep_partitions: bool,
}

impl Linker<'_> {
    fn link_all(&mut self, draft: &mut TaskDraft) -> Result<(), Refusal> {
        let graph = self.graph;
        for link in graph.task_links(draft.asset) {
            self.link(draft, link)?;
        }
        Ok(())
    }

    fn link(&mut self, draft: &mut TaskDraft, link: &Link) -> Result<(), Refusal> {
        let keys = self.read(draft.asset, draft.key.partition(), link)?;
        let indexes = self.draft_indexes.get(&self.graph.maker(link.upstream));
        let before: Vec<usize> = match (&keys, indexes) {
            (_, None) => Vec::new(),
            (None, Some(indexes)) => indexes.get(&None).copied().into_iter().collect(),
            (Some(keys), Some(indexes)) => keys
                .iter()
                .filter_map(|key| indexes.get(&Some(key)).copied())
                .collect(),
        };
        if link.mapped {
            draft.mapped_over = Some(self.mapped_task(draft, link, &before)?);
        }
        draft.upstream.extend(before);
        if self.keep_partitions {
            draft.input_partitions.extend(partition_refs(
                self.graph.name(link.upstream),
                keys.as_deref(),
            ));
        }
        if !link.parameter.is_empty() {
            draft.inputs.push(PlannedInput {
                asset_key: self.graph.name(link.upstream).to_owned(),
                parameter: link.parameter.clone(),
                partition_keys: keys.iter().flatten().map(ToString::to_string).collect(),
                optional: link.optional,
                shape: self.shape(draft.asset, link).into(),
            });
        }
        Ok(())
    }

    fn shape(&self, asset: u32, link: &Link) -> InputShape {
        match (&link.mapping, self.graph.partitioning(link.upstream)) {
            (Some(mapping), Some(up))
                if mapping.is_one_to_one(up, self.graph.partitioning(asset)) =>
            {
                InputShape::One
            }
            (Some(_), Some(_)) => InputShape::Several,
            _ => InputShape::Whole,
        }
    }

    /// Returns the partitions that a link reads, or `None` for an unpartitioned upstream.
    fn read(
        &mut self,
        asset: u32,
        partition: Option<&PartitionKey>,
        link: &Link,
    ) -> Result<Option<Vec<PartitionKey>>, Refusal> {
        let (Some(mapping), Some(up)) = (&link.mapping, self.graph.partitioning(link.upstream))
        else {
            return Ok(None);
        };
        let down = self.graph.partitioning(asset).zip(partition);
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

    /// Returns the task whose items a mapped task runs over. It must be part of the run, and there
    /// must be exactly one.
    fn mapped_task(
        &self,
        draft: &TaskDraft,
        link: &Link,
        before: &[usize],
    ) -> Result<usize, Refusal> {
        let (key, upstream) = (&draft.key, self.graph.name(link.upstream));
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

/// Keeps the named tasks and those whose items they run over, because the items of a finished task
/// are not stored.
pub(super) fn keep_named(
    drafts: Vec<TaskDraft>,
    names: &[String],
) -> Result<Vec<TaskDraft>, Refusal> {
    const FIELD: &str = "only_task_keys";
    if names.is_empty() {
        return Ok(drafts);
    }
    let indexes: HashMap<&TaskKey, usize> =
        drafts.iter().map(|draft| &draft.key).zip(0..).collect();
    let mut named = Vec::with_capacity(names.len());
    for (index, text) in names.iter().enumerate() {
        let key = parse_key(FIELD, index, text)?;
        named.push(indexes.get(&key).copied().ok_or_else(|| {
            Refusal::of_field(
                Reason::InvalidField,
                format!("{FIELD}[{index}]"),
                format!("`{key}` is not a task of this plan"),
            )
        })?);
    }
    Ok(keep(drafts, named))
}

/// Keeps these tasks and those whose items they run over.
pub(super) fn keep(
    drafts: Vec<TaskDraft>,
    indexes: impl IntoIterator<Item = usize>,
) -> Vec<TaskDraft> {
    let mut kept = HashSet::new();
    for index in indexes {
        let mut next = Some(index);
        while let Some(index) = next.filter(|index| kept.insert(*index)) {
            next = drafts[index].mapped_over;
        }
    }
    renumber(drafts, &kept)
}

fn renumber(drafts: Vec<TaskDraft>, kept: &HashSet<usize>) -> Vec<TaskDraft> {
    let indexes: Vec<usize> = (0..drafts.len())
        .filter(|index| kept.contains(index))
        .collect();
    let numbers: HashMap<usize, usize> = indexes.into_iter().zip(0..).collect();
    let kept = drafts
        .into_iter()
        .enumerate()
        .filter(|(index, _)| numbers.contains_key(index));
    kept.map(|(_, draft)| TaskDraft {
        upstream: draft
            .upstream
            .iter()
            .filter_map(|index| numbers.get(index).copied())
            .collect(),
        mapped_over: draft
            .mapped_over
            .and_then(|index| numbers.get(&index).copied()),
        ..draft
    })
    .collect()
}
