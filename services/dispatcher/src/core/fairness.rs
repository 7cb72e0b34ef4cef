//! How much somebody had lately: the measure that orders tenants, and runs inside a tenant.

use super::Seconds;

/// Worker-seconds of finished attempts count half after this long.
const HALF_LIFE: Seconds = 60.0;
/// How much one more finished task moves the mean.
const MEAN_STEP: f64 = 1.0 / 32.0;
/// What a task is thought to take before the first one ended.
const MEAN_FIRST: Seconds = 0.1;

/// Worker-seconds of one tenant: those of finished attempts, decaying, and those of live ones, growing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage {
    finished: Seconds,
    /// When `finished` was last brought up to date.
    at: Seconds,
    live: u32,
    /// The sum of the live attempts' beginnings, so that their ages need not be added up one by one.
    since_sum: f64,
}

impl Usage {
    /// Finished seconds, elapsed seconds of live attempts, and one mean task for each of these, so that what was
    /// claimed a moment ago is not free.
    pub(crate) fn seconds(&self, now: Seconds, mean: Seconds) -> Seconds {
        self.had(now) + f64::from(self.live) * mean
    }

    /// Finished seconds and elapsed ones, without what live attempts are thought to take yet.
    pub(crate) fn had(&self, now: Seconds) -> Seconds {
        let elapsed = f64::from(self.live) * now - self.since_sum;
        self.finished_at(now) + elapsed.max(0.0)
    }

    pub(crate) fn began(&mut self, since: Seconds) {
        self.live += 1;
        self.since_sum += since;
    }

    /// The attempt that began at `since` is over; it held its slot for `held`, if that is known.
    pub(crate) fn ended(&mut self, since: Seconds, held: Seconds, now: Seconds) {
        self.live = self.live.saturating_sub(1);
        // No rounding error outlives the attempts it came from.
        self.since_sum = if self.live == 0 {
            0.0
        } else {
            self.since_sum - since
        };
        self.set_finished(self.finished_at(now) + held.max(0.0), now);
    }

    /// Somebody who was away does not come back with a claim on the time it was away.
    pub(crate) fn return_at(&mut self, least: Seconds, now: Seconds) {
        let missing = least - self.had(now);
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

/// How long a task takes, about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeanTask(Option<Seconds>);

impl MeanTask {
    pub(crate) const fn unknown() -> MeanTask {
        MeanTask(None)
    }

    pub(crate) fn get(self) -> Seconds {
        self.0.unwrap_or(MEAN_FIRST)
    }

    pub(crate) fn learn(&mut self, held: Seconds) {
        let mean = self.0.unwrap_or(held);
        self.0 = Some(mean + (held - mean) * MEAN_STEP);
    }
}

/// A share in an order that is total, so that it can be sorted by.
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
        usage.began(100.0);
        usage.ended(100.0, 8.0, 108.0);
        near(usage.seconds(108.0, 1.0), 8.0);
        near(usage.seconds(168.0, 1.0), 4.0);
        near(usage.seconds(228.0, 1.0), 2.0);
    }

    #[test]
    fn live_attempts_grow_and_count_one_mean_task_from_the_start() {
        let mut usage = Usage::default();
        usage.began(10.0);
        usage.began(12.0);
        near(usage.seconds(12.0, 0.5), 2.0 + 1.0);
        near(usage.seconds(15.0, 0.5), 5.0 + 3.0 + 1.0);
        usage.ended(10.0, 5.0, 15.0);
        near(usage.seconds(15.0, 0.5), 5.0 + 3.0 + 0.5);
    }

    #[test]
    fn who_returns_starts_at_the_minimum_and_loses_nothing_above_it() {
        let mut usage = Usage::default();
        usage.return_at(7.0, 50.0);
        near(usage.seconds(50.0, 1.0), 7.0);
        usage.return_at(3.0, 50.0);
        near(usage.seconds(50.0, 1.0), 7.0);
    }

    #[test]
    fn the_mean_follows_what_tasks_take() {
        let mut mean = MeanTask::unknown();
        mean.learn(2.0);
        near(mean.get(), 2.0);
        (0..1000).for_each(|_| mean.learn(4.0));
        assert!((mean.get() - 4.0).abs() < 1e-6);
    }
}
