//! Fair share: the measure that orders tenants, and runs within a tenant.
//!
//! A tenant's share is its recent usage divided by its weight, and admission always serves the
//! tenant with the smallest share. Usage is measured in worker seconds and has three parts:
//!
//! - the seconds of finished attempts, which decay with [`HALF_LIFE`], so that a tenant is not
//!   punished for a burst of an hour ago;
//! - the seconds that live attempts have run so far;
//! - one mean task duration for every live attempt. Without it a claim would be free until its
//!   attempt has run for a while, and one tenant could take all free slots in a single pass.
//!
//! A tenant without work accrues nothing while the others do. If it returned with the usage it left
//! with, it would hold every slot until it had caught up. It therefore starts at the smallest usage
//! per weight of the active tenants ([`Usage::raise_to`]): it gets the next free slot, but not the
//! time it was idle.

use super::Seconds;

/// Time after which a finished attempt counts half.
const HALF_LIFE: Seconds = 60.0;
/// Weight of one finished task in the running mean.
const MEAN_STEP: f64 = 1.0 / 32.0;
/// The assumed duration of a task before the first one has ended.
const MEAN_FIRST: Seconds = 0.1;

/// Worker seconds of one tenant: decaying ones of finished attempts and growing ones of live
/// attempts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage {
    finished: Seconds,
    /// The time that `finished` refers to.
    at: Seconds,
    live: u32,
    /// Sum of the start times of live attempts. Gives their total age without a loop over them.
    since_sum: f64,
}

impl Usage {
    /// Returns finished and elapsed seconds plus one mean task per live attempt, because a task
    /// that was claimed a moment ago must not be free.
    pub(crate) fn seconds(&self, now: Seconds, mean: Seconds) -> Seconds {
        self.accrued(now) + f64::from(self.live) * mean
    }

    /// Returns finished and elapsed seconds, without an estimate of what live attempts will still
    /// take.
    pub(crate) fn accrued(&self, now: Seconds) -> Seconds {
        let elapsed = f64::from(self.live) * now - self.since_sum;
        self.finished_at(now) + elapsed.max(0.0)
    }

    pub(crate) fn attempt_started(&mut self, since: Seconds) {
        self.live += 1;
        self.since_sum += since;
    }

    /// Moves an attempt that started at `since` and held its slot for `held` from live to finished.
    pub(crate) fn attempt_ended(&mut self, since: Seconds, held: Seconds, now: Seconds) {
        self.live = self.live.saturating_sub(1);
        // Resets to exactly 0, so that rounding errors do not accumulate.
        self.since_sum = if self.live == 0 {
            0.0
        } else {
            self.since_sum - since
        };
        self.set_finished(self.finished_at(now) + held.max(0.0), now);
    }

    /// Raises usage to `least`, so that a tenant that was idle does not catch up on the time it was
    /// idle.
    pub(crate) fn raise_to(&mut self, least: Seconds, now: Seconds) {
        let missing = least - self.accrued(now);
        if missing > 0.0 {
            self.set_finished(self.finished_at(now) + missing, now);
        }
    }

    fn finished_at(&self, now: Seconds) -> Seconds {
        self.finished * (-(now - self.at).max(0.0) / HALF_LIFE).exp2()
    }

    fn set_finished(&mut self, finished: Seconds, now: Seconds) {
        self.finished = finished;
        self.at = self.at.max(now);
    }
}

/// Running mean of the duration of tasks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeanDuration(Option<Seconds>);

impl MeanDuration {
    pub(crate) const fn unknown() -> MeanDuration {
        MeanDuration(None)
    }

    pub(crate) fn get(self) -> Seconds {
        self.0.unwrap_or(MEAN_FIRST)
    }

    pub(crate) fn learn(&mut self, held: Seconds) {
        let mean = self.0.unwrap_or(held);
        self.0 = Some(mean + (held - mean) * MEAN_STEP);
    }
}

/// Usage per weight with a total order.
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

    fn near(left: Seconds, right: Seconds) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    #[test]
    fn finished_seconds_count_half_after_a_half_life() {
        let mut usage = Usage::default();
        usage.attempt_started(100.0);
        usage.attempt_ended(100.0, 8.0, 108.0);
        near(usage.seconds(108.0, 1.0), 8.0);
        near(usage.seconds(168.0, 1.0), 4.0);
        near(usage.seconds(228.0, 1.0), 2.0);
    }

    #[test]
    fn live_attempts_count_elapsed_time_plus_one_mean_task() {
        let mut usage = Usage::default();
        usage.attempt_started(10.0);
        usage.attempt_started(12.0);
        near(usage.seconds(12.0, 0.5), 2.0 + 1.0);
        near(usage.seconds(15.0, 0.5), 5.0 + 3.0 + 1.0);
        usage.attempt_ended(10.0, 5.0, 15.0);
        near(usage.seconds(15.0, 0.5), 5.0 + 3.0 + 0.5);
    }

    #[test]
    fn returning_tenant_is_raised_to_the_minimum_and_never_lowered() {
        let mut usage = Usage::default();
        usage.raise_to(7.0, 50.0);
        near(usage.seconds(50.0, 1.0), 7.0);
        usage.raise_to(3.0, 50.0);
        near(usage.seconds(50.0, 1.0), 7.0);
    }

    #[test]
    fn mean_follows_task_durations() {
        let mut mean = MeanDuration::unknown();
        mean.learn(2.0);
        near(mean.get(), 2.0);
        (0..1000).for_each(|_| mean.learn(4.0));
        assert!((mean.get() - 4.0).abs() < 1e-6);
    }
}
