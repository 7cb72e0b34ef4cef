//! Summarizes partitions: how many are in each state, and ranges of neighbouring partitions.

use std::collections::BTreeMap;

use servo_proto::mesh::v1::SummarizePartitionsResponse;
use servo_proto::v1::{PartitionState, PartitionStateCount, PartitionStretch};

use super::PartitionOrder;

/// A range of neighbouring partitions by index, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stretch {
    first: u64,
    last: u64,
    counts: BTreeMap<PartitionState, u64>,
}

/// Partitions in neither `known` nor `live` are missing. Returns at most `stretches_max` ranges,
/// which must not be 0.
pub(crate) fn summarize(
    order: &PartitionOrder,
    known: Vec<(u64, PartitionState)>,
    live: &[u64],
    stretches_max: usize,
) -> SummarizePartitionsResponse {
    let stretches = stretches(order.len(), known, live);
    let mut counts = BTreeMap::new();
    stretches
        .iter()
        .for_each(|stretch| add(&mut counts, &stretch.counts));
    let show = |stretch: Stretch| PartitionStretch {
        first_key: order.key(stretch.first),
        last_key: order.key(stretch.last),
        counts: to_proto(&stretch.counts),
    };
    SummarizePartitionsResponse {
        total: order.len(),
        counts: to_proto(&counts),
        stretches: merged(stretches, stretches_max)
            .into_iter()
            .map(show)
            .collect(),
    }
}

fn stretches(total: u64, known: Vec<(u64, PartitionState)>, live: &[u64]) -> Vec<Stretch> {
    let in_progress = live
        .iter()
        .map(|index| (*index, PartitionState::InProgress));
    // The sort is stable and `dedup` keeps the first entry, so an attempt in flight takes
    // precedence over any other state.
    let mut states: Vec<(u64, PartitionState)> = in_progress.chain(known).collect();
    states.sort_by_key(|(index, _)| *index);
    states.dedup_by_key(|(index, _)| *index);
    let mut stretches = Vec::new();
    let mut next = 0;
    for (index, state) in states {
        push_missing(&mut stretches, next, index);
        push(&mut stretches, index, index, state);
        next = index + 1;
    }
    push_missing(&mut stretches, next, total);
    stretches
}

fn push_missing(stretches: &mut Vec<Stretch>, from: u64, until: u64) {
    if from < until {
        push(stretches, from, until - 1, PartitionState::Missing);
    }
}

fn push(stretches: &mut Vec<Stretch>, first: u64, last: u64, state: PartitionState) {
    let count = last - first + 1;
    match stretches
        .last_mut()
        .filter(|before| before.counts.contains_key(&state))
    {
        Some(before) => {
            before.last = last;
            *before.counts.entry(state).or_default() += count;
        }
        None => stretches.push(Stretch {
            first,
            last,
            counts: BTreeMap::from([(state, count)]),
        }),
    }
}

/// Merges neighbouring ranges evenly until at most `max` are left.
fn merged(stretches: Vec<Stretch>, max: usize) -> Vec<Stretch> {
    let together = stretches.len().div_ceil(max.max(1)).max(1);
    let merge = |some: &[Stretch]| {
        let mut counts = BTreeMap::new();
        some.iter()
            .for_each(|stretch| add(&mut counts, &stretch.counts));
        Some(Stretch {
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

fn to_proto(counts: &BTreeMap<PartitionState, u64>) -> Vec<PartitionStateCount> {
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

    /// Each expected stretch is given by its ends and state.
    fn check(
        total: u64,
        known: &[(u64, PartitionState)],
        live: &[u64],
        expected: &[(u64, u64, PartitionState)],
    ) {
        let found = stretches(total, known.to_vec(), live);
        let expected: Vec<Stretch> = expected
            .iter()
            .map(|(first, last, state)| Stretch {
                first: *first,
                last: *last,
                counts: BTreeMap::from([(*state, last - first + 1)]),
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn neighbours_in_one_state_form_one_stretch_and_gaps_are_missing() {
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
    fn in_progress_takes_precedence_over_other_states() {
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
            (0..10).map(|index| (index * 2, UpToDate)).collect();
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
