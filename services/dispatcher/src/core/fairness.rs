//! Fair share: the measure that orders tenants, and runs within a tenant.
//!
//! A tenant's share is its recent usage divided by its weight, and admission always serves the
//! tenant with the smallest share among those of which a task can be admitted. Usage is measured in
//! worker seconds and has three parts:
//!
//! - the seconds of finished attempts, which decay with [`HALF_LIFE`], so that a tenant is not
//!   punished for a burst of an hour ago;
//! - the seconds that live attempts have run so far;
//! - one mean task duration, taken over the tasks of all tenants, for every live attempt. Without
//!   it a claim would be free until its attempt has run for a while, and one tenant could take all
//!   free slots in a single pass.
//!
//! A tenant without work accrues nothing while the others do. If it returned with the usage it left
//! with, it would hold every slot until it had caught up. It therefore starts at the smallest usage
//! per weight of the active tenants ([`Usage::raise_to`]): it gets the next free slot, but not the
//! time it was idle.

use std::time::Duration;

use servo_model::Timestamp;

/// Time after which a finished attempt counts half.
const HALF_LIFE: Duration = Duration::from_secs(60);
/// Weight of one finished task in the running mean.
const MEAN_STEP: f64 = 1.0 / 32.0;
/// The assumed seconds of a task before the first one has ended.
const MEAN_SECONDS_FIRST: f64 = 0.1;

/// Worker seconds of one tenant: decaying ones of finished attempts and growing ones of live
/// attempts.
#[derive(Debug, Clone)]
pub(crate) struct Usage {
    finished_seconds: f64,
    /// The time that `finished_seconds` refers to.
    at: Timestamp,
    live: u32,
    /// Sum of the start times of live attempts in microseconds since 1970. Gives their total age
    /// without a loop over them.
    since_sum_us: i128,
}

impl Default for Usage {
    fn default() -> Usage {
        Usage {
            finished_seconds: 0.0,
            at: Timestamp::UNIX_EPOCH,
            live: 0,
            since_sum_us: 0,
        }
    }
}

impl Usage {
    /// Returns finished and elapsed seconds plus one mean task per live attempt, because a task
    /// that was claimed a moment ago must not be free.
    pub(crate) fn seconds(&self, now: Timestamp, mean_seconds: f64) -> f64 {
        self.accrued(now) + f64::from(self.live) * mean_seconds
    }

    /// Returns finished and elapsed seconds, without an estimate of what live attempts will still
    /// take.
    pub(crate) fn accrued(&self, now: Timestamp) -> f64 {
        let elapsed_us = i128::from(self.live) * i128::from(now.unix_us()) - self.since_sum_us;
        self.finished_at(now) + elapsed_us.max(0) as f64 / 1e6
    }

    pub(crate) fn attempt_started(&mut self, since: Timestamp) {
        self.live += 1;
        self.since_sum_us += i128::from(since.unix_us());
    }

    /// Moves an attempt that started at `since` and held its slot for `held` from live to finished.
    pub(crate) fn attempt_ended(&mut self, since: Timestamp, held: Duration, now: Timestamp) {
        self.live = self.live.saturating_sub(1);
        self.since_sum_us -= i128::from(since.unix_us());
        self.set_finished(self.finished_at(now) + held.as_secs_f64(), now);
    }

    /// Raises usage to `least` seconds, so that a tenant that was idle does not catch up on that
    /// time.
    pub(crate) fn raise_to(&mut self, least: f64, now: Timestamp) {
        let missing = least - self.accrued(now);
        if missing > 0.0 {
            self.set_finished(self.finished_at(now) + missing, now);
        }
    }

    fn finished_at(&self, now: Timestamp) -> f64 {
        let half_lives = now.since(self.at).as_secs_f64() / HALF_LIFE.as_secs_f64();
        self.finished_seconds * (-half_lives).exp2()
    }

    fn set_finished(&mut self, seconds: f64, now: Timestamp) {
        self.finished_seconds = seconds;
        self.at = self.at.max(now);
    }
}

/// Running mean of the seconds that tasks take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeanDuration(Option<f64>);

impl MeanDuration {
    pub(crate) const fn unknown() -> MeanDuration {
        MeanDuration(None)
    }

    pub(crate) fn seconds(self) -> f64 {
        self.0.unwrap_or(MEAN_SECONDS_FIRST)
    }

    pub(crate) fn learn(&mut self, held: Duration) {
        let held = held.as_secs_f64();
        let mean = self.0.unwrap_or(held);
        self.0 = Some(mean + (held - mean) * MEAN_STEP);
    }
}

/// A measure by which tenants (usage per weight) or runs (seconds) are ordered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share(pub(crate) f64);

impl Eq for Share {}

impl PartialOrd for Share {
    fn partial_cmp(&self, other: &Share) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Share {
    fn cmp(&self, other: &Share) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_unix_seconds(second)
    }

    fn near(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    #[test]
    fn finished_seconds_count_half_after_a_half_life() {
        let mut usage = Usage::default();
        usage.attempt_started(at(100));
        usage.attempt_ended(at(100), Duration::from_secs(8), at(108));
        near(usage.seconds(at(108), 1.0), 8.0);
        near(usage.seconds(at(168), 1.0), 4.0);
        near(usage.seconds(at(228), 1.0), 2.0);
    }

    #[test]
    fn live_attempts_count_elapsed_time_plus_one_mean_task() {
        let mut usage = Usage::default();
        usage.attempt_started(at(10));
        usage.attempt_started(at(12));
        near(usage.seconds(at(12), 0.5), 2.0 + 1.0);
        near(usage.seconds(at(15), 0.5), 5.0 + 3.0 + 1.0);
        usage.attempt_ended(at(10), Duration::from_secs(5), at(15));
        near(usage.seconds(at(15), 0.5), 5.0 + 3.0 + 0.5);
    }

    #[test]
    fn returning_tenant_is_raised_to_the_minimum_and_never_lowered() {
        let mut usage = Usage::default();
        usage.raise_to(7.0, at(50));
        near(usage.seconds(at(50), 1.0), 7.0);
        usage.raise_to(3.0, at(50));
        near(usage.seconds(at(50), 1.0), 7.0);
    }

    #[test]
    fn mean_follows_task_durations() {
        let mut mean = MeanDuration::unknown();
        mean.learn(Duration::from_secs(2));
        near(mean.seconds(), 2.0);
        (0..1000).for_each(|_| mean.learn(Duration::from_secs(4)));
        assert!((mean.seconds() - 4.0).abs() < 1e-6);
    }
}
