//! Which partitions of the selected assets a run is about.
//!
//! What the caller names applies to every asset whose partitions it fits. The others follow through their mappings:
//! first upwards, an asset making what its selected readers read, then downwards, an asset making what reads
//! something that is made.

use std::collections::{BTreeMap, BTreeSet};

use servo_model::PartitionKey;
use servo_model::limits::{PARTITION_KEYS_PER_CALL_MAX, TASKS_PER_RUN_MAX};
use servo_model::partitioning::{Moment, Partitioning, PartitioningError, Product, ValueSelection};
use servo_proto::v1::partition_selection::Partitions;
use servo_proto::v1::{
    DimensionSlice, ErrorReason as Reason, PartitionCondition, PartitionSelection,
};

use crate::core::deployed::Deployed;
use crate::core::refusal::Refusal;

pub(crate) const FIELD: &str = "spec.partitions";

/// The partitions that each task's asset is to have; those in one piece have none.
pub(crate) type Chosen = BTreeMap<u32, Vec<Option<PartitionKey>>>;

/// `makers` are the assets whose tasks run.
pub(crate) fn choose(
    deployed: &Deployed,
    makers: &BTreeSet<u32>,
    selection: Option<&PartitionSelection>,
    moment: &Moment,
) -> Result<Chosen, Refusal> {
    let (partitioning, whole): (Vec<u32>, Vec<u32>) = makers
        .iter()
        .partition(|maker| deployed.partitioning(**maker).is_some());
    let mut chosen: Chosen = whole.into_iter().map(|maker| (maker, vec![None])).collect();
    let wanted = Wanted::read(selection, FIELD)?;
    match (partitioning.first(), wanted) {
        (None, None) => {}
        (None, Some(_)) => {
            return Err(Refusal::of_field(
                Reason::PartitionInvalid,
                FIELD,
                "none of the selected assets has partitions; leave this out",
            ));
        }
        (Some(first), None) => {
            let sentence = format!(
                "`{}` has partitions; say which are meant",
                deployed.name(*first)
            );
            return Err(Refusal::of_field(Reason::PartitionInvalid, FIELD, sentence));
        }
        (Some(_), Some(wanted)) => {
            let chooser = Chooser {
                deployed,
                moment,
                partitioning: partitioning.into_iter().collect(),
            };
            for (maker, keys) in chooser.run(&wanted)? {
                chosen.insert(maker, keys.into_iter().map(Some).collect());
            }
        }
    }
    Ok(chosen)
}

/// What the named partitions must be like.
pub(crate) fn condition(
    selection: Option<&PartitionSelection>,
    field: &str,
) -> Result<PartitionCondition, Refusal> {
    let only = selection.map_or(0, |selection| selection.only);
    PartitionCondition::try_from(only).map_err(|_| {
        let sentence = format!("{only} is no condition");
        Refusal::of_field(Reason::PartitionInvalid, format!("{field}.only"), sentence)
    })
}

/// Partitions as the caller names them, read once.
pub(crate) enum Wanted<'a> {
    Keys(BTreeSet<PartitionKey>),
    Slices(&'a [DimensionSlice]),
    All,
    Latest(u32),
}

impl<'a> Wanted<'a> {
    /// `None` when nothing is named.
    pub(crate) fn read(
        selection: Option<&'a PartitionSelection>,
        field: &str,
    ) -> Result<Option<Wanted<'a>>, Refusal> {
        let Some(selection) = selection else {
            return Ok(None);
        };
        let invalid = |path: &str, sentence: String| {
            Err(Refusal::of_field(
                Reason::PartitionInvalid,
                format!("{field}.{path}"),
                sentence,
            ))
        };
        match &selection.partitions {
            None if selection.only != 0 => invalid(
                "only",
                "chooses among partitions, but none are named; name some or say all".to_owned(),
            ),
            None => Ok(None),
            Some(Partitions::All(true)) => Ok(Some(Wanted::All)),
            Some(Partitions::All(false)) => {
                invalid("all", "is false; name partitions or say true".to_owned())
            }
            Some(Partitions::Latest(0)) => invalid("latest", "is 0; write at least 1".to_owned()),
            Some(Partitions::Latest(count)) => Ok(Some(Wanted::Latest(*count))),
            Some(Partitions::Slices(slices)) => {
                let both = |slice: &DimensionSlice| {
                    let has_ends = [&slice.start, &slice.end].iter().any(|end| !end.is_empty());
                    has_ends && !slice.values.is_empty()
                };
                match slices.slices.iter().position(both) {
                    None => Ok(Some(Wanted::Slices(&slices.slices))),
                    Some(index) => invalid(
                        &format!("slices.slices[{index}]"),
                        "has values and a start or end; give either".to_owned(),
                    ),
                }
            }
            Some(Partitions::Keys(keys)) => {
                read_keys(&keys.keys, field).map(|keys| Some(Wanted::Keys(keys)))
            }
        }
    }

    /// The partitions of one cut that are meant, or why it does not fit.
    pub(crate) fn of(
        &self,
        partitioning: &Partitioning,
        moment: &Moment,
    ) -> Result<Product, PartitioningError> {
        match self {
            Wanted::All => partitioning.all(moment),
            Wanted::Latest(count) => partitioning.latest(*count, moment),
            Wanted::Slices(slices) => {
                let stretches: Vec<(&str, ValueSelection<'_>)> = slices
                    .iter()
                    .map(|slice| (slice.dimension.as_str(), stretch(slice)))
                    .collect();
                partitioning.slices(&stretches, moment)
            }
            Wanted::Keys(_) => Err(PartitioningError::Invalid("keys are no product".to_owned())),
        }
    }
}

fn read_keys(keys: &[String], field: &str) -> Result<BTreeSet<PartitionKey>, Refusal> {
    let invalid = |path: String, sentence: String| {
        Refusal::of_field(Reason::PartitionInvalid, path, sentence)
    };
    if keys.is_empty() || keys.len() > PARTITION_KEYS_PER_CALL_MAX {
        let sentence = format!(
            "names {} keys; 1 to {PARTITION_KEYS_PER_CALL_MAX} are allowed",
            keys.len()
        );
        return Err(invalid(format!("{field}.keys"), sentence));
    }
    let read = |(index, text): (usize, &String)| {
        text.parse()
            .map_err(|error: servo_model::partition::PartitionKeyError| {
                invalid(format!("{field}.keys.keys[{index}]"), error.to_string())
            })
    };
    keys.iter().enumerate().map(read).collect()
}

fn stretch(slice: &DimensionSlice) -> ValueSelection<'_> {
    match slice.values.is_empty() {
        true => ValueSelection::Between(&slice.start, &slice.end),
        false => ValueSelection::Values(&slice.values),
    }
}

struct Chooser<'a> {
    deployed: &'a Deployed,
    moment: &'a Moment,
    partitioning: BTreeSet<u32>,
}

type Keys = BTreeMap<u32, BTreeSet<PartitionKey>>;

impl Chooser<'_> {
    fn run(&self, wanted: &Wanted<'_>) -> Result<Keys, Refusal> {
        let mut room = Room::default();
        let (mut chosen, refused) = match wanted {
            Wanted::Keys(keys) => self.by_keys(keys, &mut room)?,
            products => self.by_products(products, &mut room)?,
        };
        let places: Vec<u32> = self
            .deployed
            .order
            .iter()
            .copied()
            .filter(|asset| self.partitioning.contains(asset))
            .collect();
        for asset in places.iter().rev().copied() {
            if !chosen.contains_key(&asset) {
                chosen.extend(
                    self.read_by_readers(asset, &chosen, &mut room)?
                        .map(|keys| (asset, keys)),
                );
            }
        }
        for asset in places {
            if !chosen.contains_key(&asset) {
                chosen.extend(
                    self.readers_of_made(asset, &chosen, &mut room)?
                        .map(|keys| (asset, keys)),
                );
            }
        }
        match self
            .partitioning
            .iter()
            .find(|asset| !chosen.contains_key(asset))
        {
            None => Ok(chosen),
            Some(asset) => Err(refused
                .get(asset)
                .cloned()
                .unwrap_or_else(|| self.unfit(*asset))),
        }
    }

    /// Every key must fit at least one asset.
    fn by_keys(
        &self,
        keys: &BTreeSet<PartitionKey>,
        room: &mut Room,
    ) -> Result<(Keys, BTreeMap<u32, Refusal>), Refusal> {
        let mut chosen = Keys::new();
        let mut refused: BTreeMap<&PartitionKey, PartitioningError> = BTreeMap::new();
        let mut fitting = BTreeSet::new();
        for (asset, partitioning) in self.partitionings() {
            for key in keys {
                match partitioning.check(key, self.moment) {
                    Ok(()) => {
                        room.take(1)?;
                        fitting.insert(key);
                        chosen.entry(asset).or_default().insert(key.clone());
                    }
                    // What at least looks right says more than what does not.
                    Err(error) if partitioning.has_shape_of(key) => {
                        drop(refused.insert(key, error))
                    }
                    Err(error) => drop(refused.entry(key).or_insert(error)),
                }
            }
        }
        match keys
            .iter()
            .find(|key| !fitting.contains(key))
            .and_then(|key| refused.get(key))
        {
            Some(error) => Err(Refusal::of_partitioning(format!("{FIELD}.keys"), error)),
            None => Ok((chosen, BTreeMap::new())),
        }
    }

    fn by_products(
        &self,
        wanted: &Wanted<'_>,
        room: &mut Room,
    ) -> Result<(Keys, BTreeMap<u32, Refusal>), Refusal> {
        let (mut chosen, mut refused) = (Keys::new(), BTreeMap::new());
        for (asset, partitioning) in self.partitionings() {
            match wanted.of(partitioning, self.moment) {
                Ok(product) => {
                    room.take(product.len())?;
                    chosen.insert(asset, listed(&product)?);
                }
                Err(error) => {
                    let name = self.deployed.name(asset);
                    let mut refusal = Refusal::of_partitioning(FIELD, &error);
                    refusal.message = format!("{FIELD}: `{name}`: {error}");
                    refused.insert(asset, refusal);
                }
            }
        }
        match refused.values().next().filter(|_| chosen.is_empty()) {
            Some(refusal) => Err(refusal.clone()),
            None => Ok((chosen, refused)),
        }
    }

    /// What the selected readers of an asset read of it; `None` without such a reader.
    fn read_by_readers(
        &self,
        asset: u32,
        chosen: &Keys,
        room: &mut Room,
    ) -> Result<Option<BTreeSet<PartitionKey>>, Refusal> {
        let Some(up) = self.deployed.partitioning(asset) else {
            return Ok(None);
        };
        let (mut read, mut has_reader) = (BTreeSet::new(), false);
        for (reader, keys) in chosen {
            let links = self.deployed.task_links(*reader);
            for link in links.filter(|link| self.deployed.maker(link.upstream) == asset) {
                let (Some(mapping), Some(down)) =
                    (&link.mapping, self.deployed.partitioning(*reader))
                else {
                    continue;
                };
                has_reader = true;
                for key in keys {
                    let keys = mapping.upstream(up, Some((down, key)), self.moment);
                    let keys = keys.map_err(|error| Refusal::of_partitioning(FIELD, &error))?;
                    let exist = keys
                        .into_iter()
                        .filter(|key| up.check(key, self.moment).is_ok());
                    room.extend(&mut read, exist)?;
                }
            }
        }
        Ok(has_reader.then_some(read))
    }

    /// What of an asset reads something that is made; `None` when it reads everything or nothing of it.
    fn readers_of_made(
        &self,
        asset: u32,
        chosen: &Keys,
        room: &mut Room,
    ) -> Result<Option<BTreeSet<PartitionKey>>, Refusal> {
        let Some(down) = self.deployed.partitioning(asset) else {
            return Ok(None);
        };
        let mut readers = None;
        for link in self.deployed.task_links(asset) {
            let upstream = self.deployed.maker(link.upstream);
            let (Some(mapping), Some(up), Some(keys)) = (
                &link.mapping,
                self.deployed.partitioning(upstream),
                chosen.get(&upstream),
            ) else {
                continue;
            };
            for key in keys {
                let found = mapping.downstream(up, down, key, self.moment);
                if let Some(found) =
                    found.map_err(|error| Refusal::of_partitioning(FIELD, &error))?
                {
                    room.extend(readers.get_or_insert_with(BTreeSet::new), found)?;
                }
            }
        }
        Ok(readers)
    }

    fn partitionings(&self) -> impl Iterator<Item = (u32, &Partitioning)> {
        self.partitioning
            .iter()
            .filter_map(|asset| Some((*asset, self.deployed.partitioning(*asset)?)))
    }

    fn unfit(&self, asset: u32) -> Refusal {
        let name = self.deployed.name(asset);
        let sentence = format!(
            "none of these is a partition of `{name}`, and none leads to one; name some or leave it out"
        );
        Refusal::of_field(Reason::PartitionInvalid, FIELD, sentence)
    }
}

/// What was chosen so far, of all assets together. Asked before keys are made, for a short request can mean millions.
#[derive(Default)]
struct Room {
    taken: u64,
}

impl Room {
    /// Whether a run may have that many more tasks.
    fn take(&mut self, count: u64) -> Result<(), Refusal> {
        self.taken = self.taken.saturating_add(count);
        if self.taken <= TASKS_PER_RUN_MAX as u64 {
            return Ok(());
        }
        let sentence = format!(
            "means {} partitions or more, above the {TASKS_PER_RUN_MAX} tasks of a run; ask for fewer",
            self.taken
        );
        Err(Refusal::of_field(Reason::QuotaExceeded, FIELD, sentence))
    }

    fn extend(
        &mut self,
        chosen: &mut BTreeSet<PartitionKey>,
        keys: impl IntoIterator<Item = PartitionKey>,
    ) -> Result<(), Refusal> {
        for key in keys {
            if !chosen.contains(&key) {
                self.take(1)?;
                chosen.insert(key);
            }
        }
        Ok(())
    }
}

fn listed(product: &Product) -> Result<BTreeSet<PartitionKey>, Refusal> {
    let keys: Result<BTreeSet<PartitionKey>, _> = product.keys().collect();
    keys.map_err(|error| Refusal::of_field(Reason::PartitionInvalid, FIELD, error.to_string()))
}

#[cfg(test)]
mod tests {
    use servo_proto::v1::{AssetDefinition, TimeGrain};

    use super::*;
    use crate::core::samples::{asset, keys, manifest, partitioning, time};

    fn daily(name: &str, upstream: &[&str]) -> AssetDefinition {
        partitioning(
            asset(name, upstream),
            vec![time("day", TimeGrain::Day, "", "2000-01-01", "")],
        )
    }

    fn hourly(name: &str) -> AssetDefinition {
        partitioning(
            asset(name, &[]),
            vec![time(
                "hour",
                TimeGrain::Hour,
                "",
                "2000-01-01T00:00:00Z",
                "",
            )],
        )
    }

    /// 8,400 of them.
    fn dates() -> impl Iterator<Item = String> {
        (2001..2026).flat_map(|year| {
            let days = (1..=12).flat_map(|month| (1..=28).map(move |day| (month, day)));
            days.map(move |(month, day)| format!("{year}-{month:02}-{day:02}"))
        })
    }

    fn check(assets: Vec<AssetDefinition>, named: Vec<String>) {
        let makers = (0u32..).take(assets.len()).collect();
        let deployed = Deployed::new(manifest(assets)).unwrap();
        let named: Vec<&str> = named.iter().map(String::as_str).collect();
        let moment = Moment {
            now: "2026-06-01T00:00:00Z".parse().unwrap(),
            ..Moment::default()
        };
        let refused = choose(&deployed, &makers, Some(&keys(&named)), &moment).unwrap_err();
        assert_eq!(refused.reason, Reason::QuotaExceeded);
        assert!(
            refused.message.contains("means 50001 partitions or more"),
            "{}",
            refused.message
        );
    }

    #[test]
    fn partitions_of_all_assets_are_counted_together_before_they_are_made() {
        let days = || dates().map(|date| format!("day=d:{date}"));
        let names = ["n/a", "n/b", "n/c", "n/d", "n/e", "n/f"];
        // Named for six assets, read of six by one, and read by six of one.
        check(names.map(|name| daily(name, &[])).into(), days().collect());
        let read = names
            .map(hourly)
            .into_iter()
            .chain([daily("n/reader", &names)]);
        check(read.collect(), days().take(400).collect());
        let readers = names
            .map(|name| daily(name, &["n/hourly"]))
            .into_iter()
            .chain([hourly("n/hourly")]);
        check(
            readers.collect(),
            dates()
                .map(|date| format!("hour=t:{date}T00:00:00Z"))
                .collect(),
        );
    }
}
