//! Decides which partitions of the selected assets a run includes.
//!
//! The partitions that the caller names apply to every asset whose partitioning they fit. The other
//! assets follow through their mappings: first upstream, where an asset makes the partitions that
//! its selected readers read, then downstream, where an asset makes the partitions that read
//! something that is made.

use std::collections::{BTreeMap, BTreeSet};

use servo_model::PartitionKey;
use servo_model::limits::{PARTITION_KEYS_PER_CALL_MAX, TASKS_PER_RUN_MAX};
use servo_model::partitioning::{Moment, Partitioning, PartitioningError, Product, ValueSelection};
use servo_proto::v1::partition_selection::Partitions;
use servo_proto::v1::{
    DimensionSlice, ErrorReason as Reason, PartitionCondition, PartitionSelection,
};

use crate::core::deployment_graph::DeploymentGraph;
use crate::core::refusal::Refusal;

pub(crate) const FIELD: &str = "spec.partitions";

/// The partitions to make of each asset that has a task; an unpartitioned asset has the single
/// entry `None`.
pub(crate) type SelectedPartitions = BTreeMap<u32, Vec<Option<PartitionKey>>>;

/// Selects the partitions of `makers`, the assets whose tasks run.
pub(crate) fn select_partitions(
    graph: &DeploymentGraph,
    makers: &BTreeSet<u32>,
    selection: Option<&PartitionSelection>,
    moment: &Moment,
) -> Result<SelectedPartitions, Refusal> {
    let (partitioned, whole): (Vec<u32>, Vec<u32>) = makers
        .iter()
        .partition(|maker| graph.partitioning(**maker).is_some());
    let mut selected: SelectedPartitions =
        whole.into_iter().map(|maker| (maker, vec![None])).collect();
    let requested = RequestedPartitions::read(selection, FIELD)?;
    match (partitioned.first(), requested) {
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
                graph.name(*first)
            );
            return Err(Refusal::of_field(Reason::PartitionInvalid, FIELD, sentence));
        }
        (Some(_), Some(requested)) => {
            let selector = Selector {
                graph,
                moment,
                partitioned: partitioned.into_iter().collect(),
            };
            for (maker, keys) in selector.run(&requested)? {
                selected.insert(maker, keys.into_iter().map(Some).collect());
            }
        }
    }
    Ok(selected)
}

/// Returns the condition that the named partitions must meet.
pub(crate) fn condition(
    selection: Option<&PartitionSelection>,
    field: &str,
) -> Result<PartitionCondition, Refusal> {
    let only = selection.map_or(0, |selection| selection.only);
    PartitionCondition::try_from(only).map_err(|_| {
        let sentence = format!("{only} is not a condition");
        Refusal::of_field(Reason::PartitionInvalid, format!("{field}.only"), sentence)
    })
}

/// The partitions that the caller named, parsed once.
pub(crate) enum RequestedPartitions<'a> {
    Keys(BTreeSet<PartitionKey>),
    Slices(&'a [DimensionSlice]),
    All,
    Latest(u32),
}

impl<'a> RequestedPartitions<'a> {
    /// Returns `None` when the caller named no partitions.
    pub(crate) fn read(
        selection: Option<&'a PartitionSelection>,
        field: &str,
    ) -> Result<Option<RequestedPartitions<'a>>, Refusal> {
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
            Some(Partitions::All(true)) => Ok(Some(RequestedPartitions::All)),
            Some(Partitions::All(false)) => {
                invalid("all", "is false; name partitions or say true".to_owned())
            }
            Some(Partitions::Latest(0)) => invalid("latest", "is 0; write at least 1".to_owned()),
            Some(Partitions::Latest(count)) => Ok(Some(RequestedPartitions::Latest(*count))),
            Some(Partitions::Slices(slices)) => {
                let has_both = |slice: &DimensionSlice| {
                    let has_ends = [&slice.start, &slice.end].iter().any(|end| !end.is_empty());
                    has_ends && !slice.values.is_empty()
                };
                match slices.slices.iter().position(has_both) {
                    None => Ok(Some(RequestedPartitions::Slices(&slices.slices))),
                    Some(index) => invalid(
                        &format!("slices.slices[{index}]"),
                        "has values and a start or end; give either".to_owned(),
                    ),
                }
            }
            Some(Partitions::Keys(keys)) => {
                read_keys(&keys.keys, field).map(|keys| Some(RequestedPartitions::Keys(keys)))
            }
        }
    }

    /// Returns the requested partitions of one partitioning, or why the request does not fit it.
    pub(crate) fn resolve(
        &self,
        partitioning: &Partitioning,
        moment: &Moment,
    ) -> Result<Product, PartitioningError> {
        match self {
            RequestedPartitions::All => partitioning.all(moment),
            RequestedPartitions::Latest(count) => partitioning.latest(*count, moment),
            RequestedPartitions::Slices(slices) => {
                let selections: Vec<(&str, ValueSelection<'_>)> = slices
                    .iter()
                    .map(|slice| (slice.dimension.as_str(), selection(slice)))
                    .collect();
                partitioning.slices(&selections, moment)
            }
            RequestedPartitions::Keys(_) => {
                Err(PartitioningError::Invalid("keys are no product".to_owned()))
            }
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

fn selection(slice: &DimensionSlice) -> ValueSelection<'_> {
    if slice.values.is_empty() {
        ValueSelection::Between(&slice.start, &slice.end)
    } else {
        ValueSelection::Values(&slice.values)
    }
}

struct Selector<'a> {
    graph: &'a DeploymentGraph,
    moment: &'a Moment,
    partitioned: BTreeSet<u32>,
}

type Keys = BTreeMap<u32, BTreeSet<PartitionKey>>;

impl Selector<'_> {
    fn run(&self, requested: &RequestedPartitions<'_>) -> Result<Keys, Refusal> {
        let mut budget = TaskBudget::default();
        let (mut selected, refused) = match requested {
            RequestedPartitions::Keys(keys) => self.by_keys(keys, &mut budget)?,
            products => self.by_products(products, &mut budget)?,
        };
        let order: Vec<u32> = self
            .graph
            .order
            .iter()
            .copied()
            .filter(|asset| self.partitioned.contains(asset))
            .collect();
        for asset in order.iter().rev().copied() {
            if !selected.contains_key(&asset) {
                selected.extend(
                    self.partitions_read_by_selected(asset, &selected, &mut budget)?
                        .map(|keys| (asset, keys)),
                );
            }
        }
        for asset in order {
            if !selected.contains_key(&asset) {
                selected.extend(
                    self.partitions_reading_selected(asset, &selected, &mut budget)?
                        .map(|keys| (asset, keys)),
                );
            }
        }
        match self
            .partitioned
            .iter()
            .find(|asset| !selected.contains_key(asset))
        {
            None => Ok(selected),
            Some(asset) => Err(refused
                .get(asset)
                .cloned()
                .unwrap_or_else(|| self.no_partition_selected(*asset))),
        }
    }

    /// Fails unless every key fits at least one asset.
    fn by_keys(
        &self,
        keys: &BTreeSet<PartitionKey>,
        budget: &mut TaskBudget,
    ) -> Result<(Keys, BTreeMap<u32, Refusal>), Refusal> {
        let mut selected = Keys::new();
        let mut refused: BTreeMap<&PartitionKey, PartitioningError> = BTreeMap::new();
        let mut fitting = BTreeSet::new();
        for (asset, partitioning) in self.partitionings() {
            for key in keys {
                match partitioning.check(key, self.moment) {
                    Ok(()) => {
                        budget.take(1)?;
                        fitting.insert(key);
                        selected.entry(asset).or_default().insert(key.clone());
                    }
                    // An error about a key with the right dimensions is more specific, so it
                    // replaces any other.
                    Err(error) if partitioning.has_dimensions_of(key) => {
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
            None => Ok((selected, BTreeMap::new())),
        }
    }

    fn by_products(
        &self,
        requested: &RequestedPartitions<'_>,
        budget: &mut TaskBudget,
    ) -> Result<(Keys, BTreeMap<u32, Refusal>), Refusal> {
        let (mut selected, mut refused) = (Keys::new(), BTreeMap::new());
        for (asset, partitioning) in self.partitionings() {
            match requested.resolve(partitioning, self.moment) {
                Ok(product) => {
                    budget.take(product.len())?;
                    selected.insert(asset, collect_keys(&product)?);
                }
                Err(error) => {
                    let name = self.graph.name(asset);
                    let mut refusal = Refusal::of_partitioning(FIELD, &error);
                    refusal.message = format!("{FIELD}: `{name}`: {error}");
                    refused.insert(asset, refusal);
                }
            }
        }
        match refused.values().next().filter(|_| selected.is_empty()) {
            Some(refusal) => Err(refusal.clone()),
            None => Ok((selected, refused)),
        }
    }

    /// Returns the partitions that the asset's selected readers read, or `None` without such a
    /// reader.
    fn partitions_read_by_selected(
        &self,
        asset: u32,
        selected: &Keys,
        budget: &mut TaskBudget,
    ) -> Result<Option<BTreeSet<PartitionKey>>, Refusal> {
        let Some(up) = self.graph.partitioning(asset) else {
            return Ok(None);
        };
        let (mut read, mut has_reader) = (BTreeSet::new(), false);
        for (reader, keys) in selected {
            let links = self.graph.task_links(*reader);
            for link in links.filter(|link| self.graph.maker(link.upstream) == asset) {
                let (Some(mapping), Some(down)) = (&link.mapping, self.graph.partitioning(*reader))
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
                    budget.extend(&mut read, exist)?;
                }
            }
        }
        Ok(has_reader.then_some(read))
    }

    /// Returns the partitions of an asset that read something that is made, or `None` when its
    /// mappings read all upstream partitions or none.
    fn partitions_reading_selected(
        &self,
        asset: u32,
        selected: &Keys,
        budget: &mut TaskBudget,
    ) -> Result<Option<BTreeSet<PartitionKey>>, Refusal> {
        let Some(down) = self.graph.partitioning(asset) else {
            return Ok(None);
        };
        let mut readers = None;
        for link in self.graph.task_links(asset) {
            let upstream = self.graph.maker(link.upstream);
            let (Some(mapping), Some(up), Some(keys)) = (
                &link.mapping,
                self.graph.partitioning(upstream),
                selected.get(&upstream),
            ) else {
                continue;
            };
            for key in keys {
                let found = mapping.downstream(up, down, key, self.moment);
                if let Some(found) =
                    found.map_err(|error| Refusal::of_partitioning(FIELD, &error))?
                {
                    budget.extend(readers.get_or_insert_with(BTreeSet::new), found)?;
                }
            }
        }
        Ok(readers)
    }

    fn partitionings(&self) -> impl Iterator<Item = (u32, &Partitioning)> {
        self.partitioned
            .iter()
            .filter_map(|asset| Some((*asset, self.graph.partitioning(*asset)?)))
    }

    fn no_partition_selected(&self, asset: u32) -> Refusal {
        let name = self.graph.name(asset);
        let sentence = format!(
            "none of these is a partition of `{name}`, and none leads to one; name some or leave it out"
        );
        Refusal::of_field(Reason::PartitionInvalid, FIELD, sentence)
    }
}

/// Counts the selected partitions of all assets. It is charged before keys are built, because a
/// short request can name millions.
#[derive(Default)]
struct TaskBudget {
    taken: u64,
}

impl TaskBudget {
    /// Adds `count` tasks; fails when the run would have too many.
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
        selected: &mut BTreeSet<PartitionKey>,
        keys: impl IntoIterator<Item = PartitionKey>,
    ) -> Result<(), Refusal> {
        for key in keys {
            if !selected.contains(&key) {
                self.take(1)?;
                selected.insert(key);
            }
        }
        Ok(())
    }
}

fn collect_keys(product: &Product) -> Result<BTreeSet<PartitionKey>, Refusal> {
    let keys: Result<BTreeSet<PartitionKey>, _> = product.keys().collect();
    keys.map_err(|error| Refusal::of_field(Reason::PartitionInvalid, FIELD, error.to_string()))
}

#[cfg(test)]
mod tests {
    use servo_proto::v1::{AssetDefinition, TimeGrain};

    use super::*;
    use crate::core::samples::{asset, keys, manifest, partitioned, time};

    fn daily(name: &str, upstream: &[&str]) -> AssetDefinition {
        partitioned(
            asset(name, upstream),
            vec![time("day", TimeGrain::Day, "", "2000-01-01", "")],
        )
    }

    fn hourly(name: &str) -> AssetDefinition {
        partitioned(
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

    /// Returns 8,400 dates.
    fn dates() -> impl Iterator<Item = String> {
        (2001..2026).flat_map(|year| {
            let days = (1..=12).flat_map(|month| (1..=28).map(move |day| (month, day)));
            days.map(move |(month, day)| format!("{year}-{month:02}-{day:02}"))
        })
    }

    fn check(assets: Vec<AssetDefinition>, named: Vec<String>) {
        let makers = (0u32..).take(assets.len()).collect();
        let graph = DeploymentGraph::new(manifest(assets)).unwrap();
        let named: Vec<&str> = named.iter().map(String::as_str).collect();
        let moment = Moment {
            now: "2026-06-01T00:00:00Z".parse().unwrap(),
            ..Moment::default()
        };
        let refused = select_partitions(&graph, &makers, Some(&keys(&named)), &moment).unwrap_err();
        assert_eq!(refused.reason, Reason::QuotaExceeded);
        assert!(
            refused.message.contains("means 50001 partitions or more"),
            "{}",
            refused.message
        );
    }

    #[test]
    fn partitions_of_all_assets_are_counted_before_keys_are_built() {
        let days = || dates().map(|date| format!("day=d:{date}"));
        let names = ["n/a", "n/b", "n/c", "n/d", "n/e", "n/f"];
        // The keys apply to six assets; one asset reads six others; six assets read one.
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
