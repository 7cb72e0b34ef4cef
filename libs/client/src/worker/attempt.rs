//! One attempt, as the handler sees it.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use servo_proto::v1 as pb;
use tokio_util::sync::CancellationToken;

/// The work itself.
pub trait Handler: Send + Sync + 'static {
    /// Runs one attempt to its end. It is dropped when the attempt must end before.
    fn run(&self, attempt: Attempt) -> impl Future<Output = Done> + Send;
}

/// How an attempt ended.
#[derive(Debug, Clone, Default)]
pub struct Done(pub(crate) pb::FinishAttemptRequest);

impl Done {
    pub fn succeeded() -> Done {
        Done::with(pb::Outcome::Succeeded)
    }

    /// User code decided that there is nothing to do.
    pub fn skipped(reason: impl Into<String>) -> Done {
        Done(pb::FinishAttemptRequest {
            skip_reason: reason.into(),
            ..Done::with(pb::Outcome::Skipped).0
        })
    }

    pub fn failed(error: pb::TaskError) -> Done {
        Done(pb::FinishAttemptRequest {
            error: Some(error),
            ..Done::with(pb::Outcome::Failed).0
        })
    }

    /// It was asked to stop, and did.
    pub fn cancelled() -> Done {
        Done::with(pb::Outcome::Cancelled)
    }

    /// Gives the attempt back: it is tried again, which counts as no failure.
    pub fn interrupted() -> Done {
        Done::with(pb::Outcome::Interrupted)
    }

    /// What was made, checked, used or found. Whose attempt it is, and how it ended, is not for this to say.
    #[must_use]
    pub fn reporting(mut self, report: impl FnOnce(&mut pb::FinishAttemptRequest)) -> Done {
        let outcome = self.0.outcome;
        report(&mut self.0);
        self.0.outcome = outcome;
        self
    }

    pub(crate) fn failed_as(category: pb::ErrorCategory, message: &str) -> Done {
        let error = pb::TaskError {
            category: category.into(),
            message: message.to_owned(),
            ..Default::default()
        };
        Done::failed(error)
    }

    fn with(outcome: pb::Outcome) -> Done {
        Done(pb::FinishAttemptRequest {
            outcome: outcome.into(),
            ..Default::default()
        })
    }
}

/// An attempt that is running. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Attempt(pub(crate) Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) envelope: pb::TaskEnvelope,
    pub(crate) session: Arc<str>,
    pub(crate) worker_id: Arc<str>,
    pub(crate) cancelled: CancellationToken,
    /// The worker must leave: the attempt is given back.
    pub(crate) interrupted: CancellationToken,
    pub(crate) silent: AtomicBool,
    progress_ppm: AtomicU32,
    /// Presigned paths for beats and logs, as renewed last.
    paths: Mutex<pb::RenewedPaths>,
    interval: Mutex<Duration>,
}

impl Attempt {
    pub(crate) fn new(
        envelope: pb::TaskEnvelope,
        session: Arc<str>,
        worker_id: Arc<str>,
        interrupted: CancellationToken,
        interval: Duration,
    ) -> Attempt {
        let callbacks = envelope.callbacks.clone().unwrap_or_default();
        let paths = pb::RenewedPaths {
            heartbeat: callbacks.heartbeat,
            logs: callbacks.logs,
        };
        let said = envelope
            .heartbeat_interval
            .and_then(|interval| Duration::try_from(interval).ok());
        Attempt(Arc::new(Shared {
            envelope,
            session,
            worker_id,
            cancelled: CancellationToken::new(),
            interrupted,
            silent: AtomicBool::new(false),
            progress_ppm: AtomicU32::new(u32::MAX),
            paths: Mutex::new(paths),
            interval: Mutex::new(said.unwrap_or(interval)),
        }))
    }

    /// The work order.
    pub fn envelope(&self) -> &pb::TaskEnvelope {
        &self.0.envelope
    }

    /// The worker process.
    pub fn session(&self) -> &str {
        &self.0.session
    }

    pub fn worker_id(&self) -> &str {
        &self.0.worker_id
    }

    /// Waits until the attempt is to stop. Handlers that last race their work against it.
    pub async fn cancelled(&self) {
        self.0.cancelled.cancelled().await;
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.is_cancelled()
    }

    /// How far the work is, in millionths; the next beat tells it.
    pub fn progress(&self, ppm: u32) {
        self.0
            .progress_ppm
            .store(ppm.min(1_000_000), Ordering::Relaxed);
    }

    /// From now on the handler reports starts and beats by itself, or not at all.
    pub fn stop_beating(&self) {
        self.0.silent.store(true, Ordering::Relaxed);
    }

    pub(crate) fn progress_ppm(&self) -> Option<u32> {
        Some(self.0.progress_ppm.load(Ordering::Relaxed)).filter(|ppm| *ppm != u32::MAX)
    }

    pub(crate) fn beats(&self) -> bool {
        !self.0.silent.load(Ordering::Relaxed)
    }

    pub(crate) fn beat_path(&self) -> String {
        lock(&self.0.paths).heartbeat.clone()
    }

    /// It lives as long as the attempt may, and longer.
    pub(crate) fn finish_path(&self) -> &str {
        self.envelope()
            .callbacks
            .as_ref()
            .map_or("", |paths| &paths.finished)
    }

    /// After which silence it counts as lost, as the envelope says it.
    pub(crate) fn heartbeat_timeout(&self) -> Option<prost_types::Duration> {
        self.envelope()
            .timeouts
            .as_ref()
            .and_then(|timeouts| timeouts.heartbeat)
    }

    pub(crate) fn interval(&self) -> Duration {
        *lock(&self.0.interval)
    }

    pub(crate) fn renew(&self, renewed: Option<pb::RenewedPaths>) {
        if let Some(renewed) = renewed.filter(|renewed| !renewed.heartbeat.is_empty()) {
            *lock(&self.0.paths) = renewed;
        }
    }

    pub(crate) fn take_beat(&self, beat: pb::HeartbeatResponse) {
        self.renew(beat.renewed);
        // It may ask for more beats, not for fewer: the envelope knows after which silence its asset counts as lost.
        if let Some(interval) = beat
            .interval
            .and_then(|interval| Duration::try_from(interval).ok())
            && !interval.is_zero()
        {
            let mut current = lock(&self.0.interval);
            *current = interval.min(*current);
        }
        if beat.should_cancel {
            self.0.cancelled.cancel();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_ask_for_more_beats_but_not_for_fewer() {
        let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
        let envelope = pb::TaskEnvelope {
            heartbeat_interval: seconds(5),
            ..Default::default()
        };
        let (nobody, token) = (Arc::from("x"), CancellationToken::new());
        let attempt = Attempt::new(
            envelope,
            Arc::clone(&nobody),
            nobody,
            token,
            Duration::from_secs(30),
        );
        for (told, then) in [
            (seconds(30), 5),
            (seconds(0), 5),
            (None, 5),
            (seconds(2), 2),
            (seconds(30), 2),
        ] {
            attempt.take_beat(pb::HeartbeatResponse {
                interval: told,
                ..Default::default()
            });
            assert_eq!(
                attempt.interval(),
                Duration::from_secs(then),
                "after {told:?}"
            );
        }
    }
}
