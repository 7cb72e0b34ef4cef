//! Limits on the runs of a tenant: which runs start, wait or are refused.

use std::fmt;

use servo_model::PerTenant;
use servo_model::limits::TASKS_PER_RUN_MAX;

/// The limits of all tenants. Until the quota service has sent them, runs are accepted but wait.
pub type Limits = PerTenant<RunLimits>;

/// The default maximum duration: one day.
const DURATION_SECONDS: i64 = 24 * 3_600;

/// The limits of one tenant. The default has no limit on the number of runs.
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
    /// Whether runs must be counted to decide if a run may be accepted or started.
    pub fn counts(&self) -> bool {
        self.max_concurrent_runs.is_some() || self.max_daily_runs.is_some()
    }

    /// Fails if runs may not have any tasks.
    pub fn check_runs_anything(&self) -> Result<(), &'static str> {
        match self.max_tasks_per_run {
            0 => Err("max_tasks_per_run is 0, so the tenant cannot run tasks; raise the limit"),
            _ => Ok(()),
        }
    }

    /// How many more runs may start now.
    pub fn capacity(&self, in_use: &InUse) -> u32 {
        self.max_concurrent_runs
            .map_or(u32::MAX, |max| max.saturating_sub(in_use.concurrent))
    }
}

/// The usage of a tenant's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InUse {
    /// Runs that started and have not ended.
    pub concurrent: u32,
    /// Runs that were accepted and have not started.
    pub waiting: u32,
    /// Runs that were accepted since midnight, UTC.
    pub today: u32,
}

/// The decision about a new run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartDecision {
    Start,
    Wait,
    Refuse(Excess),
}

/// A limit that would be exceeded.
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
                "max_queued_runs is {max} and as many runs wait because of max_concurrent_runs; try again \
                 when some have ended, cancel runs that are not needed, or raise one of the two limits"
            ),
            Excess::Daily { max } => write!(
                f,
                "max_daily_runs is {max} and as many runs were accepted today; try again after midnight, UTC, or \
                 raise the limit"
            ),
        }
    }
}

/// Decides about a new run and counts it. It starts only if the capacity exceeds the number of runs
/// that wait already, because these are older.
pub fn decide_start(limits: &RunLimits, in_use: &mut InUse) -> StartDecision {
    if let Some(max) = limits.max_daily_runs.filter(|max| in_use.today >= *max) {
        return StartDecision::Refuse(Excess::Daily { max });
    }
    let free = limits.max_concurrent_runs.is_none() || limits.capacity(in_use) > in_use.waiting;
    if let Some(max) = limits
        .max_queued_runs
        .filter(|max| !free && in_use.waiting >= *max)
    {
        return StartDecision::Refuse(Excess::Queued { max });
    }
    in_use.today += 1;
    if free {
        in_use.concurrent += 1;
        StartDecision::Start
    } else {
        in_use.waiting += 1;
        StartDecision::Wait
    }
}

/// Starts a waiting run if there is capacity for it.
pub fn take_capacity(limits: &RunLimits, in_use: &mut InUse) -> bool {
    let free = limits.capacity(in_use) > 0;
    if free {
        in_use.concurrent += 1;
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
        let entered: Vec<StartDecision> =
            (0..4).map(|_| decide_start(&limits, &mut in_use)).collect();
        let refused = StartDecision::Refuse(Excess::Queued { max: 1 });
        assert_eq!(
            entered,
            [
                StartDecision::Start,
                StartDecision::Start,
                StartDecision::Wait,
                refused
            ]
        );
        assert_eq!(
            in_use,
            InUse {
                concurrent: 2,
                waiting: 1,
                today: 3
            }
        );
    }

    #[test]
    fn a_new_run_does_not_overtake_waiting_runs() {
        let limits = limits(Some(2), None, None);
        let mut in_use = InUse {
            concurrent: 1,
            waiting: 1,
            today: 2,
        };
        assert_eq!(decide_start(&limits, &mut in_use), StartDecision::Wait);
        assert!(take_capacity(&limits, &mut in_use));
        assert!(!take_capacity(&limits, &mut in_use));
        assert_eq!(
            in_use,
            InUse {
                concurrent: 2,
                waiting: 1,
                today: 3
            }
        );
    }

    #[test]
    fn a_limit_of_zero_blocks_and_a_lowered_limit_lets_running_runs_end() {
        assert_eq!(
            decide_start(&limits(Some(0), None, None), &mut InUse::default()),
            StartDecision::Wait
        );
        let refused = StartDecision::Refuse(Excess::Daily { max: 0 });
        assert_eq!(
            decide_start(&limits(None, None, Some(0)), &mut InUse::default()),
            refused
        );
        let mut above = InUse {
            concurrent: 5,
            ..InUse::default()
        };
        assert!(!take_capacity(&limits(Some(2), None, None), &mut above));
    }

    #[test]
    fn the_queue_limit_applies_only_where_runs_must_wait() {
        let mut in_use = InUse {
            waiting: 9,
            ..InUse::default()
        };
        assert_eq!(
            decide_start(&limits(None, Some(0), Some(1)), &mut in_use),
            StartDecision::Start
        );
        assert!(
            !limits(None, Some(1_000), None).counts(),
            "a queue limit alone needs no count"
        );
    }
}
