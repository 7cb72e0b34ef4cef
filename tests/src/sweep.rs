//! How many attempts ran at the same time: a sweep over the beginnings and ends of all of them.
//!
//! The times are those of the workers, which stand on one machine and so share one clock. The ledger's would not do:
//! each lane of a scheduler stamps with its own idea of the database's time, and those differ by milliseconds.

use servo_client::api::{Attempt, GetTaskResponse, Outcome};

/// When user code began and ended, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    pub from: i64,
    pub to: i64,
}

/// When the attempts of a task ran whose outcome counted. Others had lost their slot before they ended.
pub fn ran(told: &GetTaskResponse) -> Vec<Ran> {
    let micros =
        |time: prost_types::Timestamp| time.seconds * 1_000_000 + i64::from(time.nanos) / 1_000;
    let counted = |attempt: &&Attempt| attempt.outcome() != Outcome::Unspecified && !attempt.late;
    let stretch = |attempt: &Attempt| {
        Some(Ran {
            from: attempt.start_time.map(micros)?,
            to: attempt.end_time.map(micros)?,
        })
    };
    told.attempts
        .iter()
        .filter(counted)
        .filter_map(stretch)
        .collect()
}

/// The most that ran at any instant. One that ends when another begins has made room for it.
pub fn peak(all: &[Ran]) -> usize {
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
        let all: Vec<Ran> = all
            .iter()
            .map(|(from, to)| Ran {
                from: *from,
                to: *to,
            })
            .collect();
        assert_eq!(peak(&all), expected, "{all:?}");
    }

    #[test]
    fn overlaps_are_counted_and_neighbours_are_not() {
        check(&[], 0);
        check(&[(0, 5), (5, 9)], 1);
        check(&[(0, 5), (4, 9), (4, 6)], 3);
        check(&[(0, 9), (1, 2), (3, 4)], 2);
    }
}
