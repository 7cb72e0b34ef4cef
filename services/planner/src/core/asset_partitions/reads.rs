//! The upstream versions that partitions of one asset read through one dependency.

use std::collections::HashMap;

use servo_model::Timestamp;
use servo_model::mapping::Axis;
use servo_model::partitioning::Moment;

use super::PartitionOrder;
use crate::core::check::Link;
use crate::core::deployment_graph::DeploymentGraph;
use crate::core::refusal::Refusal;

#[derive(Debug)]
pub(crate) struct Reads {
    pub(crate) upstream: u32,
    order: PartitionOrder,
    axes: Vec<Axis>,
    upstream_lengths: Vec<u64>,
    lengths: Vec<u64>,
    /// When each upstream partition's promoted version became readable, by index.
    readable: HashMap<u64, Timestamp>,
    /// Cached results for partitions that read more than one upstream partition, keyed by the
    /// digits that determine which ones.
    cache: HashMap<Vec<u64>, Option<Timestamp>>,
}

impl Reads {
    /// `asset` is the downstream asset. No upstream version is known until [`Reads::note`] is
    /// called.
    pub(crate) fn of(
        graph: &DeploymentGraph,
        asset: u32,
        link: &Link,
        moment: &Moment,
    ) -> Result<Reads, Refusal> {
        let axes = match (&link.mapping, graph.partitioning(link.upstream)) {
            (Some(mapping), Some(up)) => mapping
                .axes(up, graph.partitioning(asset), moment)
                .map_err(|error| Refusal::of_partitioning("partitions", &error))?,
            _ => Vec::new(),
        };
        let order = PartitionOrder::of(graph, link.upstream, moment)?;
        Ok(Reads {
            upstream: link.upstream,
            axes,
            upstream_lengths: order.lengths(),
            lengths: PartitionOrder::of(graph, asset, moment)?.lengths(),
            order,
            readable: HashMap::new(),
            cache: HashMap::new(),
        })
    }

    /// Records that an upstream partition has had a readable version since then. Partitions that no
    /// longer exist are ignored.
    pub(crate) fn note(&mut self, key: &str, readable_at: Timestamp) {
        if let Some(index) = self.order.index_of(key) {
            self.readable.insert(index, readable_at);
        }
    }

    /// Returns the time of the newest version that the partition with this index reads.
    pub(super) fn newest(&mut self, index: u64) -> Option<Timestamp> {
        let digits = digits(index, &self.lengths);
        let lists: Vec<&[u64]> = self.axes.iter().map(|axis| read(axis, &digits)).collect();
        let count = lists
            .iter()
            .map(|list| list.len() as u64)
            .fold(1, u64::saturating_mul);
        if count <= 1 {
            return newest_of_combinations(&lists, &self.upstream_lengths, 0, &self.readable);
        }
        let determining: Vec<u64> = self
            .axes
            .iter()
            .map(|axis| determining_digit(axis, &digits))
            .collect();
        let (readable, lengths) = (&self.readable, &self.upstream_lengths);
        *self.cache.entry(determining).or_insert_with(|| {
            if count <= readable.len() as u64 {
                newest_of_combinations(&lists, lengths, 0, readable)
            } else {
                newest_among_readable(&lists, lengths, readable)
            }
        })
    }
}

fn read<'a>(axis: &'a Axis, digits: &'a [u64]) -> &'a [u64] {
    match axis {
        Axis::Same(at) => std::slice::from_ref(&digits[*at]),
        Axis::By(at, lists) => lists.get(digits[*at] as usize).map_or(&[], Vec::as_slice),
        Axis::Fixed(list) => list,
    }
}

fn determining_digit(axis: &Axis, digits: &[u64]) -> u64 {
    match axis {
        Axis::Same(at) | Axis::By(at, _) => digits[*at],
        Axis::Fixed(_) => 0,
    }
}

/// Splits a partition's index into its index in each dimension; the last dimension varies fastest.
fn digits(mut index: u64, lengths: &[u64]) -> Vec<u64> {
    let mut digits = vec![0; lengths.len()];
    for (digit, length) in digits.iter_mut().zip(lengths).rev() {
        *digit = index % length;
        index /= length;
    }
    digits
}

/// Looks up every combination of the lists.
fn newest_of_combinations(
    lists: &[&[u64]],
    lengths: &[u64],
    index: u64,
    readable: &HashMap<u64, Timestamp>,
) -> Option<Timestamp> {
    match (lists.split_first(), lengths.split_first()) {
        (Some((list, lists)), Some((length, lengths))) => list
            .iter()
            .filter_map(|at| newest_of_combinations(lists, lengths, index * length + at, readable))
            .max(),
        _ => readable.get(&index).copied(),
    }
}

/// Scans every readable partition; used when there are fewer of them than combinations.
fn newest_among_readable(
    lists: &[&[u64]],
    lengths: &[u64],
    readable: &HashMap<u64, Timestamp>,
) -> Option<Timestamp> {
    let is_read = |index: u64| {
        let digits = digits(index, lengths);
        digits
            .iter()
            .zip(lists)
            .all(|(digit, list)| list.binary_search(digit).is_ok())
    };
    readable
        .iter()
        .filter(|(index, _)| is_read(**index))
        .map(|(_, at)| *at)
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::samples::{asset, days, fixed, manifest, partitioned};

    fn at(us: i64) -> Timestamp {
        Timestamp::from_unix_us(us)
    }

    /// `n/down` by region reads `n/up` by day and region.
    fn by_region() -> Reads {
        let down = partitioned(
            asset("n/down", &["n/up"]),
            vec![fixed("region", &["eu", "us"])],
        );
        let up = partitioned(
            asset("n/up", &[]),
            vec![days(), fixed("region", &["eu", "us"])],
        );
        let graph = DeploymentGraph::new(manifest(vec![down, up])).unwrap();
        let moment = Moment {
            now: "2027-01-01T00:00:00Z".parse().unwrap(),
            ..Default::default()
        };
        let link = graph.task_links(0).next().unwrap().clone();
        Reads::of(&graph, 0, &link, &moment).unwrap()
    }

    #[test]
    fn newest_returns_the_time_of_the_newest_upstream_partition() {
        let mut reads = by_region();
        reads.note("day=d:2026-01-03,region=s:us", at(8));
        reads.note("day=d:2026-01-09,region=s:us", at(5));
        reads.note("day=d:2026-01-09,region=s:asia", at(99));
        assert_eq!((reads.newest(0), reads.newest(1)), (None, Some(at(8))));
    }

    #[test]
    fn walking_combinations_and_scanning_partitions_agree() {
        let mut reads = by_region();
        for day in 1..=31 {
            reads.note(
                &format!("day=d:2026-01-{day:02},region=s:eu"),
                at((day * 7) % 31),
            );
            reads.note(&format!("day=d:2026-01-{day:02},region=s:us"), at(40));
        }
        let lists: Vec<&[u64]> = vec![&[1, 2, 30], &[0]];
        let walked = newest_of_combinations(&lists, &reads.upstream_lengths, 0, &reads.readable);
        // Days 2, 3 and 31, times 7, modulo 31.
        assert_eq!(walked, Some(at(21)));
        assert_eq!(
            newest_among_readable(&lists, &reads.upstream_lengths, &reads.readable),
            walked
        );
    }
}
