//! ResponseFuture attempt, as the handler sees it.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use servo_proto::v1 as pb;
use tokio_util::sync::CancellationToken;

/// Executes attempts.
pub trait Handler: Send + Sync + 'static {
    /// Runs one attempt to its end. The future is dropped when the attempt must end earlier.
    fn run(&self, attempt: Attempt) -> impl Future<Output = AttemptOutcome> + Send;
}

/// The outcome of an attempt, as the handler returns it.
#[derive(Debug, Clone, Default)]
pub struct AttemptOutcome(pub(crate) pb::FinishAttemptRequest);

impl AttemptOutcome {
    pub fn succeeded() -> AttemptOutcome {
        AttemptOutcome::with(pb::Outcome::Succeeded)
    }

    /// User code decided that there is nothing to do.
    pub fn skipped(reason: impl Into<String>) -> AttemptOutcome {
        AttemptOutcome(pb::FinishAttemptRequest {
            skip_reason: reason.into(),
            ..AttemptOutcome::with(pb::Outcome::Skipped).0
        })
    }

    pub fn failed(error: pb::TaskError) -> AttemptOutcome {
        AttemptOutcome(pb::FinishAttemptRequest {
            error: Some(error),
            ..AttemptOutcome::with(pb::Outcome::Failed).0
        })
    }

    /// The attempt was cancelled and has stopped.
    pub fn cancelled() -> AttemptOutcome {
        AttemptOutcome::with(pb::Outcome::Cancelled)
    }

    /// Gives the attempt back: the task is retried, and no failure is counted.
    pub fn interrupted() -> AttemptOutcome {
        AttemptOutcome::with(pb::Outcome::Interrupted)
    }

    /// Adds details to the report, such as outputs, check results or metrics. The worker sets the
    /// attempt's identity, and the outcome itself cannot be changed here.
    #[must_use]
    pub fn with_report(
        mut self,
        report: impl FnOnce(&mut pb::FinishAttemptRequest),
    ) -> AttemptOutcome {
        let outcome = self.0.outcome;
        report(&mut self.0);
        self.0.outcome = outcome;
        self
    }

    pub(crate) fn failed_as(category: pb::ErrorCategory, message: &str) -> AttemptOutcome {
        let error = pb::TaskError {
            category: category.into(),
            message: message.to_owned(),
            ..Default::default()
        };
        AttemptOutcome::failed(error)
    }

    fn with(outcome: pb::Outcome) -> AttemptOutcome {
        AttemptOutcome(pb::FinishAttemptRequest {
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
    /// Cancelled when the worker must stop: the attempt is given back.
    pub(crate) interrupted: CancellationToken,
    pub(crate) heartbeats_disabled: AtomicBool,
    progress_ppm: AtomicU32,
    /// The presigned paths for heartbeats and logs, as renewed last.
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
        let declared = envelope
            .heartbeat_interval
            .and_then(|interval| Duration::try_from(interval).ok());
        Attempt(Arc::new(Shared {
            envelope,
            session,
            worker_id,
            cancelled: CancellationToken::new(),
            interrupted,
            heartbeats_disabled: AtomicBool::new(false),
            progress_ppm: AtomicU32::new(u32::MAX),
            paths: Mutex::new(paths),
            interval: Mutex::new(declared.unwrap_or(interval)),
        }))
    }

    /// The message that describes the task.
    pub fn envelope(&self) -> &pb::TaskEnvelope {
        &self.0.envelope
    }

    /// The session of the worker process.
    pub fn session(&self) -> &str {
        &self.0.session
    }

    pub fn worker_id(&self) -> &str {
        &self.0.worker_id
    }

    /// Waits until the attempt is cancelled. A long-running handler races its work against this.
    pub async fn cancelled(&self) {
        self.0.cancelled.cancelled().await;
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.is_cancelled()
    }

    /// Sets the progress in millionths; the next heartbeat reports it.
    pub fn progress(&self, ppm: u32) {
        self.0
            .progress_ppm
            .store(ppm.min(1_000_000), Ordering::Relaxed);
    }

    /// From now on the handler reports starts and heartbeats itself, or not at all.
    pub fn disable_heartbeats(&self) {
        self.0.heartbeats_disabled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn progress_ppm(&self) -> Option<u32> {
        Some(self.0.progress_ppm.load(Ordering::Relaxed)).filter(|ppm| *ppm != u32::MAX)
    }

    pub(crate) fn sends_heartbeats(&self) -> bool {
        !self.0.heartbeats_disabled.load(Ordering::Relaxed)
    }

    pub(crate) fn heartbeat_path(&self) -> String {
        lock(&self.0.paths).heartbeat.clone()
    }

    /// This path outlives the attempt, so that a late outcome can still be delivered.
    pub(crate) fn finish_path(&self) -> &str {
        self.envelope()
            .callbacks
            .as_ref()
            .map_or("", |paths| &paths.finished)
    }

    /// The time without a heartbeat after which the attempt counts as lost, as the envelope states
    /// it.
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

    pub(crate) fn apply_heartbeat(&self, beat: pb::HeartbeatResponse) {
        self.renew(beat.renewed);
        // The server may shorten the interval but not extend it, because the envelope knows the
        // heartbeat timeout of its asset.
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
    fn response_may_only_shorten_the_heartbeat_interval() {
        let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
        let envelope = pb::TaskEnvelope {
            heartbeat_interval: seconds(5),
            ..Default::default()
        };
        let (worker, token) = (Arc::from("x"), CancellationToken::new());
        let attempt = Attempt::new(
            envelope,
            Arc::clone(&worker),
            worker,
            token,
            Duration::from_secs(30),
        );
        for (sent, then) in [
            (seconds(30), 5),
            (seconds(0), 5),
            (None, 5),
            (seconds(2), 2),
            (seconds(30), 2),
        ] {
            attempt.apply_heartbeat(pb::HeartbeatResponse {
                interval: sent,
                ..Default::default()
            });
            assert_eq!(
                attempt.interval(),
                Duration::from_secs(then),
                "after {sent:?}"
            );
        }
    }
}
