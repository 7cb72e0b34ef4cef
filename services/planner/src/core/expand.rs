//! Expands a selection of partitions page by page, without building every key.

use servo_model::PartitionKey;
use servo_model::partitioning::{Moment, Partitioning, Product};
use servo_proto::v1::{ErrorReason as Reason, PartitionCondition, PartitionSelection};

use crate::core::deployment_graph::DeploymentGraph;
use crate::core::partition_selection::{RequestedPartitions, condition};
use crate::core::refusal::Refusal;

const FIELD: &str = "partitions";

/// The selected partitions in order.
#[derive(Debug)]
pub(crate) enum Expanded {
    /// The single partition of an unpartitioned asset.
    Whole,
    Listed(Vec<PartitionKey>),
    Product(Product),
}

impl Expanded {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Expanded::Whole => 1,
            Expanded::Listed(keys) => keys.len() as u64,
            Expanded::Product(product) => product.len(),
        }
    }

    /// Returns at most `count` keys, starting at index `first`.
    pub(crate) fn page(&self, first: u64, count: u64, newest_first: bool) -> Vec<String> {
        let (total, end) = (self.len(), first.saturating_add(count).min(self.len()));
        let index_in_order = |index: u64| {
            if newest_first {
                total - 1 - index
            } else {
                index
            }
        };
        (first..end)
            .filter_map(|index| self.get(index_in_order(index)))
            .collect()
    }

    fn get(&self, index: u64) -> Option<String> {
        match self {
            Expanded::Whole => (index == 0).then(String::new),
            Expanded::Listed(keys) => keys
                .get(usize::try_from(index).ok()?)
                .map(ToString::to_string),
            Expanded::Product(product) => product.get(index)?.ok().map(|key| key.to_string()),
        }
    }
}

/// Returns the single asset that a selection names; fails when it names none or several.
pub(crate) fn only_asset(graph: &DeploymentGraph, selection: &[String]) -> Result<u32, Refusal> {
    match graph.select("selection", selection)?.as_slice() {
        [asset] => Ok(*asset),
        assets => {
            let sentence = format!("means {} assets; with_staleness takes one", assets.len());
            Err(Refusal::of_field(
                Reason::SelectionInvalid,
                "selection",
                sentence,
            ))
        }
    }
}

/// Expands the partitions of the selected assets, which must share one partitioning, because keys
/// of different partitionings have no common order.
pub(crate) fn expand(
    graph: &DeploymentGraph,
    selection: &[String],
    partitions: Option<&PartitionSelection>,
    moment: &Moment,
) -> Result<Expanded, Refusal> {
    let selected = graph.select("selection", selection)?;
    let mut partitioned = selected
        .iter()
        .filter_map(|asset| Some((*asset, graph.partitioning(*asset)?)));
    let Some((first, partitioning)) = partitioned.next() else {
        let sentence = "none of the selected assets has partitions";
        return Err(Refusal::of_field(
            Reason::SelectionInvalid,
            "selection",
            sentence,
        ));
    };
    if let Some((other, _)) = partitioned.find(|(_, other)| *other != partitioning) {
        let sentence = format!(
            "`{}` and `{}` have different partitionings; expand them one by one",
            graph.name(first),
            graph.name(other)
        );
        return Err(Refusal::of_field(
            Reason::PartitionInvalid,
            "selection",
            sentence,
        ));
    }
    if condition(partitions, FIELD)? != PartitionCondition::Unspecified {
        let sentence =
            "partitions are listed regardless of their state; leave it out, or plan a run";
        return Err(Refusal::of_field(
            Reason::PartitionInvalid,
            format!("{FIELD}.only"),
            sentence,
        ));
    }
    let Some(requested) = RequestedPartitions::read(partitions, FIELD)? else {
        return Err(Refusal::of_field(
            Reason::PartitionInvalid,
            FIELD,
            "is missing; name the partitions",
        ));
    };
    of_partitioning(partitioning, &requested, moment)
}

fn of_partitioning(
    partitioning: &Partitioning,
    requested: &RequestedPartitions<'_>,
    moment: &Moment,
) -> Result<Expanded, Refusal> {
    if let RequestedPartitions::Keys(keys) = requested {
        for key in keys {
            partitioning
                .check(key, moment)
                .map_err(|error| Refusal::of_partitioning(format!("{FIELD}.keys"), &error))?;
        }
        return Ok(Expanded::Listed(keys.iter().cloned().collect()));
    }
    let product = requested
        .resolve(partitioning, moment)
        .map_err(|error| Refusal::of_partitioning(FIELD, &error))?;
    Ok(Expanded::Product(product))
}
