//! The states of all partitions of an asset, addressed by their index in the partitioning's order,
//! because building a key for each of a million partitions would cost too much.

mod reads;
mod summary;

use servo_model::Timestamp;
use servo_model::partitioning::{Moment, Numbering, Product};
use servo_proto::v1::{PartitionState, StaleReason};

use crate::core::deployment_graph::DeploymentGraph;
use crate::core::refusal::Refusal;

pub(crate) use reads::Reads;
pub(crate) use summary::summarize;

/// The state of a partition for which at least one attempt was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttemptedPartition {
    pub(crate) promoted: Option<PromotedVersion>,
    /// The newest attempt failed.
    pub(crate) failed: bool,
    /// The newest version is quarantined.
    pub(crate) quarantined: bool,
}

/// The version that readers get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PromotedVersion {
    pub(crate) recorded_at: Timestamp,
    /// Later than `recorded_at` for a version that was quarantined and then approved.
    pub(crate) readable_at: Timestamp,
    pub(crate) same_code: bool,
}

/// The partitions of an asset in order. An unpartitioned asset has a single partition with an empty
/// key.
#[derive(Debug)]
pub(crate) struct PartitionOrder(Option<(Product, Numbering)>);

impl PartitionOrder {
    pub(crate) fn of(
        graph: &DeploymentGraph,
        asset: u32,
        moment: &Moment,
    ) -> Result<PartitionOrder, Refusal> {
        let Some(partitioning) = graph.partitioning(asset) else {
            return Ok(PartitionOrder(None));
        };
        let product = partitioning
            .all(moment)
            .map_err(|error| Refusal::of_partitioning("partitions", &error))?;
        let numbering = product.numbering();
        Ok(PartitionOrder(Some((product, numbering))))
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.as_ref().map_or(1, |(product, _)| product.len())
    }

    /// The number of values of each dimension.
    fn lengths(&self) -> Vec<u64> {
        self.0
            .as_ref()
            .map_or_else(Vec::new, |(product, _)| product.lengths())
    }

    /// Returns `None` for a key that no longer exists.
    pub(crate) fn index_of(&self, key: &str) -> Option<u64> {
        match &self.0 {
            Some((_, numbering)) => numbering.place(key),
            None => key.is_empty().then_some(0),
        }
    }

    pub(crate) fn key(&self, index: u64) -> String {
        let key = self
            .0
            .as_ref()
            .and_then(|(product, _)| product.get(index)?.ok());
        key.map_or_else(String::new, |key| key.to_string())
    }
}

/// The attempted partitions of an asset and the upstream versions that each of them reads.
#[derive(Debug)]
pub(crate) struct AssetPartitions {
    pub(crate) order: PartitionOrder,
    /// Sorted by index.
    pub(crate) attempted: Vec<(u64, AttemptedPartition)>,
    pub(crate) reads: Vec<Reads>,
}

impl AssetPartitions {
    /// Returns the state of every attempted partition, ignoring attempts in flight.
    pub(crate) fn states(&mut self) -> Vec<(u64, PartitionState)> {
        let reads = &mut self.reads;
        self.attempted
            .iter()
            .map(|(index, partition)| (*index, state(partition, newest(reads, *index))))
            .collect()
    }

    /// Returns the partitions whose data is stale for this reason; `Unspecified` matches every
    /// reason.
    pub(crate) fn stale_indexes(&mut self, reason: StaleReason) -> Vec<u64> {
        let reads = &mut self.reads;
        let is_stale = |(index, partition): &&(u64, AttemptedPartition)| {
            let Some(promoted) = &partition.promoted else {
                return false;
            };
            match reason {
                StaleReason::Unspecified => !is_current(promoted, newest(reads, *index)),
                StaleReason::UpstreamChanged => is_overtaken(promoted, newest(reads, *index)),
                StaleReason::CodeChanged => !promoted.same_code,
                // FindStalePartitions refuses these, because they are not computed yet.
                StaleReason::UpstreamStale | StaleReason::TooOld => false,
            }
        };
        self.attempted
            .iter()
            .filter(is_stale)
            .map(|(index, _)| *index)
            .collect()
    }
}

/// Returns the time of the newest upstream version that a partition reads.
fn newest(reads: &mut [Reads], index: u64) -> Option<Timestamp> {
    reads
        .iter_mut()
        .filter_map(|reads| reads.newest(index))
        .max()
}

fn is_overtaken(promoted: &PromotedVersion, newest_read: Option<Timestamp>) -> bool {
    newest_read.is_some_and(|newest| newest > promoted.recorded_at)
}

fn is_current(promoted: &PromotedVersion, newest_read: Option<Timestamp>) -> bool {
    promoted.same_code && !is_overtaken(promoted, newest_read)
}

fn state(partition: &AttemptedPartition, newest_read: Option<Timestamp>) -> PartitionState {
    match &partition.promoted {
        _ if partition.failed => PartitionState::Failed,
        _ if partition.quarantined => PartitionState::Quarantined,
        None => PartitionState::Missing,
        Some(promoted) if is_current(promoted, newest_read) => PartitionState::UpToDate,
        Some(_) => PartitionState::Stale,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::samples::{asset, days, manifest, partitioned};

    fn promoted(recorded_us: i64) -> AttemptedPartition {
        let recorded_at = Timestamp::from_unix_us(recorded_us);
        let promoted = PromotedVersion {
            recorded_at,
            readable_at: recorded_at,
            same_code: true,
        };
        AttemptedPartition {
            promoted: Some(promoted),
            failed: false,
            quarantined: false,
        }
    }

    /// `n/down` reads `n/up` by day. Both are given as (day of January, time).
    fn partitions(up: &[(u64, i64)], down: &[(u64, AttemptedPartition)]) -> AssetPartitions {
        let assets = vec![
            partitioned(asset("n/down", &["n/up"]), vec![days()]),
            partitioned(asset("n/up", &[]), vec![days()]),
        ];
        let graph = DeploymentGraph::new(manifest(assets)).unwrap();
        let moment = Moment {
            now: "2027-01-01T00:00:00Z".parse().unwrap(),
            ..Default::default()
        };
        let order = PartitionOrder::of(&graph, 0, &moment).unwrap();
        let link = graph.task_links(0).next().unwrap();
        let mut reads = Reads::of(&graph, 0, link, &moment).unwrap();
        for (day, at) in up {
            let at = Timestamp::from_unix_us(*at);
            reads.note(&format!("day=d:2026-01-{day:02}"), at);
        }
        let attempted = down
            .iter()
            .map(|(day, partition)| (day - 1, *partition))
            .collect();
        AssetPartitions {
            order,
            attempted,
            reads: vec![reads],
        }
    }

    #[test]
    fn a_partition_is_stale_when_its_own_inputs_or_code_are_newer() {
        use PartitionState::{Failed, Missing, Quarantined, Stale, UpToDate};
        let old_code = PromotedVersion {
            same_code: false,
            ..promoted(9).promoted.unwrap()
        };
        let failed = AttemptedPartition {
            failed: true,
            ..promoted(5)
        };
        let waiting = AttemptedPartition {
            promoted: None,
            quarantined: true,
            failed: false,
        };
        let rejected = AttemptedPartition {
            quarantined: false,
            ..waiting
        };
        let known = [
            (1, promoted(5)),
            (2, promoted(5)),
            (
                3,
                AttemptedPartition {
                    promoted: Some(old_code),
                    ..promoted(9)
                },
            ),
            (4, failed),
            (5, waiting),
            (6, rejected),
        ];
        let mut partitions = partitions(&[(1, 4), (2, 6), (4, 6)], &known);
        let states: Vec<PartitionState> = partitions
            .states()
            .into_iter()
            .map(|(_, state)| state)
            .collect();
        assert_eq!(
            states,
            [UpToDate, Stale, Stale, Failed, Quarantined, Missing]
        );
        assert_eq!(
            partitions.stale_indexes(StaleReason::Unspecified),
            [1, 2, 3],
            "a failed attempt does not hide stale data"
        );
        assert_eq!(
            partitions.stale_indexes(StaleReason::UpstreamChanged),
            [1, 3]
        );
        assert_eq!(partitions.stale_indexes(StaleReason::CodeChanged), [2]);
    }

    #[test]
    fn partition_indexes_and_keys_convert_both_ways() {
        let partitions = partitions(&[], &[]);
        assert_eq!(partitions.order.len(), 31);
        assert_eq!(partitions.order.key(30), "day=d:2026-01-31");
        assert_eq!(partitions.order.index_of("day=d:2026-01-31"), Some(30));
        assert_eq!(partitions.order.index_of("day=d:2026-02-01"), None);
        assert_eq!(PartitionOrder(None).index_of(""), Some(0));
    }
}
