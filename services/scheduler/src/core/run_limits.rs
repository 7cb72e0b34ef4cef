//! How many runs a tenant may have: which start, which wait, which are refused.

use std::fmt;

use servo_model::PerTenant;
use servo_model::limits::TASKS_PER_RUN_MAX;

/// What holds for every tenant. Until the authority on limits has answered runs are accepted, but wait.
pub type Limits = PerTenant<RunLimits>;

/// A day, for tenants of whom nothing else is said.
const DURATION_SECONDS: i64 = 24 * 3_600;

/// What holds for the runs of one tenant. The default has no caps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLimits {
    pub max_concurrent_runs: Option<u32>,
    pub max_queued_runs: Option<u32>,
    pub max_daily_runs: Option<u32>,
    pub max_tasks_per_run: u32,
    pub max_run_duration_us: i64,
}

impl Default for RunLimits {
    fn default() -> RunLimits {
        RunLimits {
            max_concurrent_runs: None,
            max_queued_runs: None,
            max_daily_runs: None,
            max_tasks_per_run: TASKS_PER_RUN_MAX as u32,
            max_run_duration_us: DURATION_SECONDS * 1_000_000,
        }
    }
}

impl RunLimits {
    /// Whether it takes a count to tell if a run may be accepted or started. Nobody counts for the others.
    pub fn counts(&self) -> bool {
        self.max_concurrent_runs.is_some() || self.max_daily_runs.is_some()
    }

    /// Whether a run may have any task at all.
    pub fn check_any(&self) -> Result<(), &'static str> {
        match self.max_tasks_per_run {
            0 => Err("max_tasks_per_run is 0, so the tenant runs nothing; raise the limit"),
            _ => Ok(()),
        }
    }

    /// Places that are free for runs which wait.
    pub fn free(&self, in_use: &InUse) -> u32 {
        self.max_concurrent_runs
            .map_or(u32::MAX, |max| max.saturating_sub(in_use.under_way))
    }
}

/// What a tenant uses of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InUse {
    /// Runs that started and have not ended.
    pub under_way: u32,
    /// Runs that were accepted and have not started.
    pub waiting: u32,
    /// Runs that were accepted since midnight, UTC.
    pub today: u32,
}

/// What becomes of a run that somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Starts,
    Waits,
    Refused(Excess),
}

/// A limit that would be passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    Queued { max: u32 },
    Daily { max: u32 },
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Excess::Queued { max } => write!(
                f,
                "max_queued_runs is {max} and as many runs wait for a place under max_concurrent_runs; try again \
                 when some have ended, cancel what is not needed, or raise one of the two limits"
            ),
            Excess::Daily { max } => write!(
                f,
                "max_daily_runs is {max} and as many runs were accepted today; try again after midnight, UTC, or \
                 raise the limit"
            ),
        }
    }
}

/// Judges a new run and counts it in. It starts only when nobody waits before it.
pub fn enter(limits: &RunLimits, in_use: &mut InUse) -> Entry {
    if let Some(max) = limits.max_daily_runs.filter(|max| in_use.today >= *max) {
        return Entry::Refused(Excess::Daily { max });
    }
    let free = limits.max_concurrent_runs.is_none() || limits.free(in_use) > in_use.waiting;
    if let Some(max) = limits
        .max_queued_runs
        .filter(|max| !free && in_use.waiting >= *max)
    {
        return Entry::Refused(Excess::Queued { max });
    }
    in_use.today += 1;
    match free {
        true => in_use.under_way += 1,
        false => in_use.waiting += 1,
    }
    if free { Entry::Starts } else { Entry::Waits }
}

/// Lets a run that waited start, if there is a place for it.
pub fn take_place(limits: &RunLimits, in_use: &mut InUse) -> bool {
    let free = limits.free(in_use) > 0;
    if free {
        in_use.under_way += 1;
        in_use.waiting = in_use.waiting.saturating_sub(1);
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(concurrent: Option<u32>, queued: Option<u32>, daily: Option<u32>) -> RunLimits {
        RunLimits {
            max_concurrent_runs: concurrent,
            max_queued_runs: queued,
            max_daily_runs: daily,
            ..RunLimits::default()
        }
    }

    #[test]
    fn runs_start_then_wait_then_are_refused() {
        let limits = limits(Some(2), Some(1), None);
        let mut in_use = InUse::default();
        let entered: Vec<Entry> = (0..4).map(|_| enter(&limits, &mut in_use)).collect();
        let refused = Entry::Refused(Excess::Queued { max: 1 });
        assert_eq!(
            entered,
            [Entry::Starts, Entry::Starts, Entry::Waits, refused]
        );
        assert_eq!(
            in_use,
            InUse {
                under_way: 2,
                waiting: 1,
                today: 3
            }
        );
    }

    #[test]
    fn a_new_run_does_not_overtake_those_who_wait() {
        let limits = limits(Some(2), None, None);
        let mut in_use = InUse {
            under_way: 1,
            waiting: 1,
            today: 2,
        };
        assert_eq!(enter(&limits, &mut in_use), Entry::Waits);
        assert!(take_place(&limits, &mut in_use));
        assert!(!take_place(&limits, &mut in_use));
        assert_eq!(
            in_use,
            InUse {
                under_way: 2,
                waiting: 1,
                today: 3
            }
        );
    }

    #[test]
    fn a_limit_of_zero_stops_and_a_lower_limit_lets_the_surplus_run_out() {
        assert_eq!(
            enter(&limits(Some(0), None, None), &mut InUse::default()),
            Entry::Waits
        );
        let refused = Entry::Refused(Excess::Daily { max: 0 });
        assert_eq!(
            enter(&limits(None, None, Some(0)), &mut InUse::default()),
            refused
        );
        let mut above = InUse {
            under_way: 5,
            ..InUse::default()
        };
        assert!(!take_place(&limits(Some(2), None, None), &mut above));
    }

    #[test]
    fn the_queue_has_a_limit_only_where_runs_must_wait() {
        let mut in_use = InUse {
            waiting: 9,
            ..InUse::default()
        };
        assert_eq!(
            enter(&limits(None, Some(0), Some(1)), &mut in_use),
            Entry::Starts
        );
        assert!(
            !limits(None, Some(1_000), None).counts(),
            "the default queue limit costs nobody a count"
        );
    }
}
