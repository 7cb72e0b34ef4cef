//! Partitions summed up: how many are in each state, and stretches of neighbours.

use std::collections::BTreeMap;

use servo_proto::v1::{
    PartitionState, PartitionStateCount, PartitionStretch, SummarizePartitionsResponse,
};

use super::Order;

/// Neighbours by their places, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ValueSelection {
    first: u64,
    last: u64,
    counts: BTreeMap<PartitionState, u64>,
}

/// What stands in neither is missing. At most `stretches_max`, which is not 0.
pub(crate) fn summary(
    order: &Order,
    known: Vec<(u64, PartitionState)>,
    live: &[u64],
    stretches_max: usize,
) -> SummarizePartitionsResponse {
    let stretches = stretches(order.len(), known, live);
    let mut counts = BTreeMap::new();
    stretches
        .iter()
        .for_each(|stretch| add(&mut counts, &stretch.counts));
    let show = |stretch: ValueSelection| PartitionStretch {
        first_key: order.key(stretch.first),
        last_key: order.key(stretch.last),
        counts: shown(&stretch.counts),
    };
    SummarizePartitionsResponse {
        total: order.len(),
        counts: shown(&counts),
        stretches: merged(stretches, stretches_max)
            .into_iter()
            .map(show)
            .collect(),
    }
}

fn stretches(total: u64, known: Vec<(u64, PartitionState)>, live: &[u64]) -> Vec<ValueSelection> {
    let under_way = live
        .iter()
        .map(|place| (*place, PartitionState::InProgress));
    // A stable sort: whatever else is known of a partition, that an attempt is under way comes first.
    let mut states: Vec<(u64, PartitionState)> = under_way.chain(known).collect();
    states.sort_by_key(|(place, _)| *place);
    states.dedup_by_key(|(place, _)| *place);
    let mut stretches = Vec::new();
    let mut next = 0;
    for (place, state) in states {
        fill(&mut stretches, next, place);
        push(&mut stretches, place, place, state);
        next = place + 1;
    }
    fill(&mut stretches, next, total);
    stretches
}

fn fill(stretches: &mut Vec<ValueSelection>, from: u64, until: u64) {
    if from < until {
        push(stretches, from, until - 1, PartitionState::Missing);
    }
}

fn push(stretches: &mut Vec<ValueSelection>, first: u64, last: u64, state: PartitionState) {
    let count = last - first + 1;
    match stretches
        .last_mut()
        .filter(|before| before.counts.contains_key(&state))
    {
        Some(before) => {
            before.last = last;
            *before.counts.entry(state).or_default() += count;
        }
        None => stretches.push(ValueSelection {
            first,
            last,
            counts: BTreeMap::from([(state, count)]),
        }),
    }
}

/// Neighbours together, as many in each as are needed.
fn merged(stretches: Vec<ValueSelection>, max: usize) -> Vec<ValueSelection> {
    let together = stretches.len().div_ceil(max.max(1)).max(1);
    let merge = |some: &[ValueSelection]| {
        let mut counts = BTreeMap::new();
        some.iter()
            .for_each(|stretch| add(&mut counts, &stretch.counts));
        Some(ValueSelection {
            first: some.first()?.first,
            last: some.last()?.last,
            counts,
        })
    };
    stretches.chunks(together).filter_map(merge).collect()
}

fn add(counts: &mut BTreeMap<PartitionState, u64>, more: &BTreeMap<PartitionState, u64>) {
    more.iter()
        .for_each(|(state, count)| *counts.entry(*state).or_default() += count);
}

fn shown(counts: &BTreeMap<PartitionState, u64>) -> Vec<PartitionStateCount> {
    counts
        .iter()
        .map(|(state, count)| PartitionStateCount {
            state: (*state).into(),
            count: *count,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use PartitionState::{InProgress, Missing, Stale, UpToDate};

    use super::*;

    /// Each stretch as its ends and counts.
    fn check(
        total: u64,
        known: &[(u64, PartitionState)],
        live: &[u64],
        expected: &[(u64, u64, PartitionState)],
    ) {
        let found = stretches(total, known.to_vec(), live);
        let expected: Vec<ValueSelection> = expected
            .iter()
            .map(|(first, last, state)| ValueSelection {
                first: *first,
                last: *last,
                counts: BTreeMap::from([(*state, last - first + 1)]),
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn neighbours_of_one_state_stand_together_and_gaps_are_missing() {
        check(0, &[], &[], &[]);
        check(3, &[], &[], &[(0, 2, Missing)]);
        check(
            3,
            &[(0, UpToDate), (1, UpToDate), (2, UpToDate)],
            &[],
            &[(0, 2, UpToDate)],
        );
        let known = [(1, UpToDate), (2, Stale), (5, Stale)];
        let expected = [
            (0, 0, Missing),
            (1, 1, UpToDate),
            (2, 2, Stale),
            (3, 4, Missing),
            (5, 5, Stale),
            (6, 6, Missing),
        ];
        check(7, &known, &[], &expected);
    }

    #[test]
    fn what_is_under_way_is_told_before_the_rest() {
        let known = [(0, UpToDate), (1, Stale)];
        check(
            4,
            &known,
            &[1, 2],
            &[(0, 0, UpToDate), (1, 2, InProgress), (3, 3, Missing)],
        );
    }

    #[test]
    fn too_many_stretches_are_merged_without_losing_a_partition() {
        let known: Vec<(u64, PartitionState)> =
            (0..10).map(|place| (place * 2, UpToDate)).collect();
        let all = stretches(20, known, &[]);
        assert_eq!(all.len(), 20);
        let merged = merged(all, 3);
        let ends: Vec<(u64, u64)> = merged
            .iter()
            .map(|stretch| (stretch.first, stretch.last))
            .collect();
        assert_eq!(ends, [(0, 6), (7, 13), (14, 19)]);
        assert_eq!(
            merged[0].counts,
            BTreeMap::from([(UpToDate, 4), (Missing, 3)])
        );
    }
}
