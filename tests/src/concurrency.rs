//! How many attempts ran at the same time.
//!
//! The times are those of the workers, which run on one machine and share its clock. The ledger's
//! times would not do, because each lane of a scheduler estimates the database's clock on its own
//! and the estimates differ by milliseconds.

use servo_client::api::{Attempt, GetTaskResponse, Outcome};

/// When user code began and ended, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    pub from: i64,
    pub to: i64,
}

/// The intervals of the attempts of a task whose outcome counted. Other attempts had lost their
/// slot before they ended.
pub fn intervals(task: &GetTaskResponse) -> Vec<Interval> {
    let micros =
        |time: prost_types::Timestamp| time.seconds * 1_000_000 + i64::from(time.nanos) / 1_000;
    let counted = |attempt: &&Attempt| attempt.outcome() != Outcome::Unspecified && !attempt.late;
    let interval = |attempt: &Attempt| {
        Some(Interval {
            from: attempt.start_time.map(micros)?,
            to: attempt.end_time.map(micros)?,
        })
    };
    task.attempts
        .iter()
        .filter(counted)
        .filter_map(interval)
        .collect()
}

/// The largest number of overlapping intervals. One that ends when another begins does not overlap.
pub fn peak(all: &[Interval]) -> usize {
    let ends = all.iter().map(|one| (one.to, -1i64));
    let mut changes: Vec<(i64, i64)> = all.iter().map(|one| (one.from, 1)).chain(ends).collect();
    changes.sort_unstable();
    let mut now = 0;
    let counts = changes.into_iter().map(|(_, change)| {
        now += change;
        now
    });
    usize::try_from(counts.max().unwrap_or(0)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(all: &[(i64, i64)], expected: usize) {
        let all: Vec<Interval> = all
            .iter()
            .map(|(from, to)| Interval {
                from: *from,
                to: *to,
            })
            .collect();
        assert_eq!(peak(&all), expected, "{all:?}");
    }

    #[test]
    fn overlapping_intervals_count_and_adjacent_ones_do_not() {
        check(&[], 0);
        check(&[(0, 5), (5, 9)], 1);
        check(&[(0, 5), (4, 9), (4, 6)], 3);
        check(&[(0, 9), (1, 2), (3, 4)], 2);
    }
}
