//! When what a partition reads came, through one link.

use std::collections::HashMap;

use servo_model::mapping::Axis;
use servo_model::partitioning::Moment;

use super::Order;
use crate::core::check::Link;
use crate::core::deployed::Deployed;
use crate::core::refusal::Refusal;

#[derive(Debug)]
pub(crate) struct Reads {
    pub(crate) upstream: u32,
    order: Order,
    axes: Vec<Axis>,
    upstream_lengths: Vec<u64>,
    lengths: Vec<u64>,
    /// When each upstream partition got the version that readers get.
    readable: HashMap<u64, i64>,
    /// For partitions that read more than one: by what decides.
    found: HashMap<Vec<u64>, Option<i64>>,
}

impl Reads {
    /// `asset` is the downstream one. Knows nothing yet of what stands upstream.
    pub(crate) fn of(
        deployed: &Deployed,
        asset: u32,
        link: &Link,
        moment: &Moment,
    ) -> Result<Reads, Refusal> {
        let axes = match (&link.mapping, deployed.partitioning(link.upstream)) {
            (Some(mapping), Some(up)) => mapping
                .axes(up, deployed.partitioning(asset), moment)
                .map_err(|error| Refusal::of_partitioning("partitions", &error))?,
            _ => Vec::new(),
        };
        let order = Order::of(deployed, link.upstream, moment)?;
        Ok(Reads {
            upstream: link.upstream,
            axes,
            upstream_lengths: order.lengths(),
            lengths: Order::of(deployed, asset, moment)?.lengths(),
            order,
            readable: HashMap::new(),
            found: HashMap::new(),
        })
    }

    /// An upstream partition has a version since then. One that no longer exists is not read.
    pub(crate) fn note(&mut self, key: &str, readable_at: i64) {
        if let Some(place) = self.order.place(key) {
            self.readable.insert(place, readable_at);
        }
    }

    /// Of all that the partition at this place reads.
    pub(super) fn newest(&mut self, place: u64) -> Option<i64> {
        let digits = digits(place, &self.lengths);
        let lists: Vec<&[u64]> = self.axes.iter().map(|axis| read(axis, &digits)).collect();
        let count = lists
            .iter()
            .map(|list| list.len() as u64)
            .fold(1, u64::saturating_mul);
        if count <= 1 {
            return walk(&lists, &self.upstream_lengths, 0, &self.readable);
        }
        let deciding: Vec<u64> = self
            .axes
            .iter()
            .map(|axis| decided_by(axis, &digits))
            .collect();
        let (readable, lengths) = (&self.readable, &self.upstream_lengths);
        *self
            .found
            .entry(deciding)
            .or_insert_with(|| match count <= readable.len() as u64 {
                true => walk(&lists, lengths, 0, readable),
                false => among(&lists, lengths, readable),
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

fn decided_by(axis: &Axis, digits: &[u64]) -> u64 {
    match axis {
        Axis::Same(at) | Axis::By(at, _) => digits[*at],
        Axis::Fixed(_) => 0,
    }
}

/// Where a place stands in each dimension; the last one changes fastest.
fn digits(mut place: u64, lengths: &[u64]) -> Vec<u64> {
    let mut digits = vec![0; lengths.len()];
    for (digit, length) in digits.iter_mut().zip(lengths).rev() {
        (*digit, place) = (place % length, place / length);
    }
    digits
}

/// Every combination, looked up.
fn walk(
    lists: &[&[u64]],
    lengths: &[u64],
    place: u64,
    readable: &HashMap<u64, i64>,
) -> Option<i64> {
    match (lists.split_first(), lengths.split_first()) {
        (Some((list, lists)), Some((length, lengths))) => list
            .iter()
            .filter_map(|at| walk(lists, lengths, place * length + at, readable))
            .max(),
        _ => readable.get(&place).copied(),
    }
}

/// Everything known, where that is less than the combinations.
fn among(lists: &[&[u64]], lengths: &[u64], readable: &HashMap<u64, i64>) -> Option<i64> {
    let is_read = |place: u64| {
        let digits = digits(place, lengths);
        digits
            .iter()
            .zip(lists)
            .all(|(digit, list)| list.binary_search(digit).is_ok())
    };
    readable
        .iter()
        .filter(|(place, _)| is_read(**place))
        .map(|(_, at)| *at)
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::samples::{asset, days, fixed, manifest, partitioning};

    /// `n/down` by region reads `n/up` by day and region.
    fn by_region() -> Reads {
        let down = partitioning(
            asset("n/down", &["n/up"]),
            vec![fixed("region", &["eu", "us"])],
        );
        let up = partitioning(
            asset("n/up", &[]),
            vec![days(), fixed("region", &["eu", "us"])],
        );
        let deployed = Deployed::new(manifest(vec![down, up])).unwrap();
        let moment = Moment {
            now: "2027-01-01T00:00:00Z".parse().unwrap(),
            ..Default::default()
        };
        let link = deployed.task_links(0).next().unwrap().clone();
        Reads::of(&deployed, 0, &link, &moment).unwrap()
    }

    #[test]
    fn the_newest_of_all_that_is_read_counts() {
        let mut reads = by_region();
        reads.note("day=d:2026-01-03,region=s:us", 8);
        reads.note("day=d:2026-01-09,region=s:us", 5);
        reads.note("day=d:2026-01-09,region=s:asia", 99);
        assert_eq!((reads.newest(0), reads.newest(1)), (None, Some(8)));
    }

    #[test]
    fn both_ways_of_looking_agree() {
        let mut reads = by_region();
        for day in 1..=31 {
            reads.note(
                &format!("day=d:2026-01-{day:02},region=s:eu"),
                (day * 7) % 31,
            );
            reads.note(&format!("day=d:2026-01-{day:02},region=s:us"), 40);
        }
        let lists: Vec<&[u64]> = vec![&[1, 2, 30], &[0]];
        let walked = walk(&lists, &reads.upstream_lengths, 0, &reads.readable);
        // Days 2, 3 and 31, times 7, modulo 31.
        assert_eq!(walked, Some(21));
        assert_eq!(
            among(&lists, &reads.upstream_lengths, &reads.readable),
            walked
        );
    }
}
