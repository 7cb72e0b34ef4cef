//! Background work. A service provides a `run_once`; pace, drain and logging are implemented here.

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

/// The result of a pass, which decides when the next one begins: immediately after a pass that
/// worked, otherwise after [`Progress::again_in`] or at the loop's pace.
pub trait Progress {
    fn worked(&self) -> bool;

    /// When an idle loop runs again, if that is sooner than its pace.
    fn again_in(&self) -> Option<Duration> {
        None
    }
}

/// For passes that know when to run again.
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

/// How often an idle loop runs, and which doorbell wakes it earlier.
#[derive(Debug, Clone)]
pub struct Pace {
    every: Duration,
    retry_max: Duration,
    doorbell: Doorbell,
    interrupted_by_drain: bool,
}

impl Pace {
    pub fn every(every: Duration) -> Pace {
        Pace {
            every,
            retry_max: FAILURE_DELAY_MAX,
            doorbell: Doorbell::default(),
            interrupted_by_drain: false,
        }
    }

    /// Limits the delay after a failure, for loops that must not pause for long.
    #[must_use]
    pub fn retried_within(self, retry_max: Duration) -> Pace {
        Pace { retry_max, ..self }
    }

    /// Ends a pass in progress when the process drains, for loops whose passes follow a stream and
    /// would otherwise use up the grace period.
    #[must_use]
    pub fn interrupted_by_drain(self) -> Pace {
        Pace {
            interrupted_by_drain: true,
            ..self
        }
    }

    #[must_use]
    pub fn woken_by(self, doorbell: &Doorbell) -> Pace {
        Pace {
            doorbell: doorbell.clone(),
            ..self
        }
    }
}

/// Wakes one loop. Rings are not counted: any number of them causes one pass.
#[derive(Debug, Clone, Default)]
pub struct Doorbell(Arc<Notify>);

impl Doorbell {
    pub fn new() -> Doorbell {
        Doorbell::default()
    }

    pub fn ring(&self) {
        self.0.notify_one();
    }
}

/// Repeats `run_once` until the process drains; a pass in progress is finished unless the pace says
/// otherwise.
pub(crate) async fn repeat<F, Fut, P, E>(
    name: &'static str,
    pace: Pace,
    context: LoopContext,
    mut run_once: F,
) where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<P, E>>,
    P: Progress,
    E: Display,
{
    let mut streak = FailureStreak {
        name,
        last: None,
        failures: 0,
    };
    while !context.shutdown.is_draining() {
        let outcome = tokio::select! {
            outcome = AssertUnwindSafe(run_once()).catch_unwind() => outcome,
            () = context.shutdown.draining(), if pace.interrupted_by_drain => break,
        };
        let outcome = outcome.map_or_else(
            |_| Err("it panicked".to_owned()),
            |pass| pass.map_err(|e| e.to_string()),
        );
        context.count(name, &outcome);
        let wait = streak.next_delay(outcome, &pace);
        tokio::select! {
            () = context.shutdown.draining() => break,
            () = tokio::time::sleep(wait) => {}
            // A doorbell does not shorten the delay after a failure, because more work does not
            // repair the cause.
            () = pace.doorbell.0.notified(), if streak.failures == 0 => {}
        }
    }
}

pub(crate) struct LoopContext {
    pub(crate) shutdown: Shutdown,
    pub(crate) metrics: Metrics,
}

impl LoopContext {
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

/// Consecutive failures; only the first of equal failures is logged as a warning.
struct FailureStreak {
    name: &'static str,
    last: Option<String>,
    failures: u32,
}

impl FailureStreak {
    /// Records the outcome and returns the delay before the next pass.
    fn next_delay<P: Progress>(&mut self, outcome: Result<P, String>, pace: &Pace) -> Duration {
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
            info!(name = self.name, failures = self.failures, "loop recovered");
            self.failures = 0;
            self.last = None;
        }
    }

    fn failed(&mut self, error: String) -> Duration {
        if self.last.as_ref() == Some(&error) {
            debug!(name = self.name, error, "loop pass failed again");
        } else {
            warn!(
                name = self.name,
                error, "loop pass failed, retrying with growing delays"
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
    fn failed_passes_are_retried_with_growing_delays_up_to_the_loops_limit() {
        let longest = |pace: Pace| {
            let mut streak = FailureStreak {
                name: "test",
                last: None,
                failures: 0,
            };
            let failed = |_| streak.next_delay::<()>(Err("down".to_owned()), &pace);
            (0..40).map(failed).max().unwrap_or_default()
        };
        let (every, most) = (Duration::from_secs(1), Duration::from_secs(2));
        assert!(longest(Pace::every(every)) > Duration::from_secs(10));
        assert_eq!(longest(Pace::every(every).retried_within(most)), most);
    }
}
