//! Background work: a `run_once` that somebody else repeats. Pace, drain and logging live here.

use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::Notify;
use tracing::{debug, info, warn};

use crate::metrics::{LoopLabels, Metrics};
use crate::shutdown::Shutdown;

const FAILURE_DELAY_MIN: Duration = Duration::from_millis(100);
const FAILURE_DELAY_MAX: Duration = Duration::from_secs(30);

/// The result of a pass, which decides when the next one begins: at once after a pass that worked,
/// otherwise after [`Progress::again_in`] or at the loop's pace.
pub trait Progress {
    fn worked(&self) -> bool;

    /// When an idle loop looks again, if that is sooner than its pace.
    fn again_in(&self) -> Option<Duration> {
        None
    }
}

/// When to look again, for passes that know it.
impl Progress for Option<Duration> {
    fn worked(&self) -> bool {
        false
    }

    fn again_in(&self) -> Option<Duration> {
        *self
    }
}

impl Progress for () {
    fn worked(&self) -> bool {
        false
    }
}

impl Progress for bool {
    fn worked(&self) -> bool {
        *self
    }
}

impl Progress for usize {
    fn worked(&self) -> bool {
        *self > 0
    }
}

impl Progress for u64 {
    fn worked(&self) -> bool {
        *self > 0
    }
}

/// How often an idle loop looks by itself, and what wakes it earlier.
#[derive(Debug, Clone)]
pub struct Pace {
    every: Duration,
    retry_max: Duration,
    bell: Doorbell,
}

impl Pace {
    pub fn every(every: Duration) -> Pace {
        Pace {
            every,
            retry_max: FAILURE_DELAY_MAX,
            bell: Doorbell::default(),
        }
    }

    /// For what must not wait for long whatever fails: it is tried again within this time.
    #[must_use]
    pub fn retried_within(self, retry_max: Duration) -> Pace {
        Pace { retry_max, ..self }
    }

    #[must_use]
    pub fn woken_by(self, bell: &Doorbell) -> Pace {
        Pace {
            bell: bell.clone(),
            ..self
        }
    }
}

/// How soon those who share something look again while it changes hands.
pub const REBALANCE_DELAY: Duration = Duration::from_millis(100);

/// Wakes a loop. Rings are not counted: however often it rang, the loop looks once. It is for one loop.
#[derive(Debug, Clone, Default)]
pub struct Doorbell(Arc<Notify>);

impl Doorbell {
    pub fn new() -> Doorbell {
        Doorbell::default()
    }

    pub fn ring(&self) {
        self.0.notify_one();
    }

    /// Rings once this time has passed.
    pub fn ring_in(&self, delay: Duration) {
        let bell = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            bell.ring();
        });
    }
}

/// Repeats `run_once` until the process drains; a pass under way is finished.
pub(crate) async fn repeat<F, Fut, P, E>(
    name: &'static str,
    pace: Pace,
    watch: Watch,
    mut run_once: F,
) where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<P, E>>,
    P: Progress,
    E: Display,
{
    let mut streak = Streak {
        name,
        last: None,
        failures: 0,
    };
    while !watch.shutdown.is_draining() {
        let outcome = AssertUnwindSafe(run_once()).catch_unwind().await;
        let outcome = outcome.map_or_else(
            |_| Err("it panicked".to_owned()),
            |pass| pass.map_err(|e| e.to_string()),
        );
        watch.count(name, &outcome);
        let wait = streak.judge(outcome, &pace);
        tokio::select! {
            () = watch.shutdown.draining() => break,
            () = tokio::time::sleep(wait) => {}
            // A doorbell does not cut the delay after a failure short: what broke is not mended by more work.
            () = pace.bell.0.notified(), if streak.failures == 0 => {}
        }
    }
}

pub(crate) struct Watch {
    pub(crate) shutdown: Shutdown,
    pub(crate) metrics: Metrics,
}

impl Watch {
    fn count<P: Progress>(&self, name: &'static str, outcome: &Result<P, String>) {
        let outcome = match outcome {
            Ok(pass) if pass.worked() => "worked",
            Ok(_) => "idle",
            Err(_) => "failed",
        };
        self.metrics
            .loop_passes
            .get_or_create(&LoopLabels { name, outcome })
            .inc();
    }
}

/// Failures in a row, of which only the first of a kind is worth a line.
struct Streak {
    name: &'static str,
    last: Option<String>,
    failures: u32,
}

impl Streak {
    /// How long to wait before the next pass.
    fn judge<P: Progress>(&mut self, outcome: Result<P, String>, pace: &Pace) -> Duration {
        match outcome {
            Ok(pass) => {
                self.recovered();
                if pass.worked() {
                    Duration::ZERO
                } else {
                    pass.again_in()
                        .map_or(pace.every, |again| again.min(pace.every))
                }
            }
            Err(error) => self.failed(error).min(pace.retry_max),
        }
    }

    fn recovered(&mut self) {
        if self.failures > 0 {
            info!(
                name = self.name,
                failures = self.failures,
                "loop works again"
            );
            (self.failures, self.last) = (0, None);
        }
    }

    fn failed(&mut self, error: String) -> Duration {
        if self.last.as_ref() == Some(&error) {
            debug!(name = self.name, error, "loop pass failed again");
        } else {
            warn!(
                name = self.name,
                error, "loop pass failed, it is repeated with growing delays"
            );
        }
        self.last = Some(error);
        self.failures = self.failures.saturating_add(1);
        let doubled = FAILURE_DELAY_MIN.saturating_mul(1 << (self.failures - 1).min(16));
        doubled
            .min(FAILURE_DELAY_MAX)
            .mul_f64(rand::random_range(0.5..1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_repeated_later_and_later_up_to_what_the_loop_allows() {
        let longest = |pace: Pace| {
            let mut streak = Streak {
                name: "test",
                last: None,
                failures: 0,
            };
            let failed = |_| streak.judge::<()>(Err("down".to_owned()), &pace);
            (0..40).map(failed).max().unwrap_or_default()
        };
        let (every, most) = (Duration::from_secs(1), Duration::from_secs(2));
        assert!(longest(Pace::every(every)) > Duration::from_secs(10));
        assert_eq!(longest(Pace::every(every).retried_within(most)), most);
    }
}
