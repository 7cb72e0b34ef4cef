//! Runs one attempt: the handler, its reports, and the conditions that end it early.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, UNIX_EPOCH};

use futures::FutureExt;
use servo_proto::v1 as pb;
use servo_proto::v1::callback_item::Call;
use tokio::time::{Instant, sleep_until};

use super::attempt::{Attempt, AttemptOutcome, Handler};
use super::clock;
use super::reports::{Report, Reports};

/// Attempts that end sooner are not reported as started, because their outcome implies the start.
const START_REPORTED_AFTER: Duration = Duration::from_millis(100);
/// The start of an attempt is not urgent, so attempts that began around the same time report
/// together, and later send their heartbeats together.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// How long a cancelled handler may take to stop.
const CANCEL_GRACE: Duration = Duration::from_secs(10);

/// Runs the handler to its end and reports the outcome.
pub(crate) async fn run<H: Handler>(handler: Arc<H>, attempt: Attempt, reports: Reports) {
    let started = clock::now().into();
    let outcome = {
        let work = AssertUnwindSafe(handler.run(attempt.clone())).catch_unwind();
        let ended_early = ended_early(&attempt);
        tokio::pin!(work, ended_early);
        let heartbeats = send_heartbeats(&attempt, &reports, started);
        tokio::select! {
            biased;
            outcome = &mut work => outcome.unwrap_or_else(|_| AttemptOutcome::failed_as(pb::ErrorCategory::UserCode, "the handler panicked")),
            outcome = &mut ended_early => outcome,
            never = heartbeats => match never {},
        }
    };
    finish(&attempt, &reports, outcome, started).await;
}

/// Resolves when the attempt must end early: at its deadline, when the worker must stop, or when
/// the handler ignored a cancel.
async fn ended_early(attempt: &Attempt) -> AttemptOutcome {
    let late = async {
        match time_left(attempt) {
            Some(left) => tokio::time::sleep(left).await,
            None => std::future::pending().await,
        }
    };
    let cancel_ignored = async {
        attempt.cancelled().await;
        tokio::time::sleep(CANCEL_GRACE).await;
    };
    tokio::select! {
        () = late => AttemptOutcome::failed_as(pb::ErrorCategory::Timeout, "the attempt passed its deadline"),
        () = attempt.0.interrupted.cancelled() => AttemptOutcome::interrupted(),
        () = cancel_ignored => AttemptOutcome::cancelled(),
    }
}

fn time_left(attempt: &Attempt) -> Option<Duration> {
    let deadline = attempt.envelope().deadline?;
    let at = UNIX_EPOCH
        + Duration::new(
            u64::try_from(deadline.seconds).ok()?,
            u32::try_from(deadline.nanos).ok()?,
        );
    Some(at.duration_since(clock::now()).unwrap_or_default())
}

/// Reports the start of an attempt that lasts, and then sends heartbeats for ever.
async fn send_heartbeats(
    attempt: &Attempt,
    reports: &Reports,
    started: prost_types::Timestamp,
) -> std::convert::Infallible {
    let mut due = next_round(Instant::now() + START_REPORTED_AFTER);
    sleep_until(due).await;
    // A pushed attempt was confirmed before it began.
    if attempt.sends_heartbeats() && attempt.envelope().mode() != pb::DispatchMode::Push {
        report_start(attempt, reports, started).await;
    }
    loop {
        due += attempt.interval();
        sleep_until(due).await;
        if attempt.sends_heartbeats() {
            report_heartbeat(attempt, reports).await;
        }
    }
}

/// The next instant, not before `at`, at which all attempts of this process report.
fn next_round(at: Instant) -> Instant {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    let (since, every) = (
        at.duration_since(*FIRST).as_nanos(),
        REPORT_INTERVAL.as_nanos(),
    );
    let missing = (every - since % every) % every;
    at + Duration::from_nanos(missing as u64)
}

async fn report_start(attempt: &Attempt, reports: &Reports, started: prost_types::Timestamp) {
    let start = pb::StartAttemptRequest {
        start_time: Some(started),
        ..start_request(attempt)
    };
    reports
        .send(Report::new(
            attempt,
            start_path(attempt),
            Call::Start(start),
        ))
        .await;
}

pub(super) fn start_path(attempt: &Attempt) -> String {
    attempt
        .envelope()
        .callbacks
        .as_ref()
        .map(|paths| paths.start.clone())
        .unwrap_or_default()
}

pub(super) fn start_request(attempt: &Attempt) -> pb::StartAttemptRequest {
    let envelope = attempt.envelope();
    pb::StartAttemptRequest {
        tenant: envelope.tenant.clone(),
        workspace: envelope.workspace.clone(),
        run_id: envelope.run_id.clone(),
        attempt_id: envelope.attempt_id.clone(),
        task: envelope.task,
        worker_id: attempt.worker_id().to_owned(),
        session: attempt.session().to_owned(),
        mode: envelope.mode,
        start_time: None,
        heartbeat_timeout: attempt.heartbeat_timeout(),
    }
}

async fn report_heartbeat(attempt: &Attempt, reports: &Reports) {
    let envelope = attempt.envelope();
    let beat = pb::HeartbeatRequest {
        tenant: envelope.tenant.clone(),
        workspace: envelope.workspace.clone(),
        run_id: envelope.run_id.clone(),
        attempt_id: envelope.attempt_id.clone(),
        session: attempt.session().to_owned(),
        progress_ppm: attempt.progress_ppm(),
        progress_message: String::new(),
        task: envelope.task,
        heartbeat_timeout: attempt.heartbeat_timeout(),
    };
    reports
        .send(Report::new(
            attempt,
            attempt.heartbeat_path(),
            Call::Heartbeat(beat),
        ))
        .await;
}

async fn finish(
    attempt: &Attempt,
    reports: &Reports,
    outcome: AttemptOutcome,
    started: prost_types::Timestamp,
) {
    let envelope = attempt.envelope();
    let finish = pb::FinishAttemptRequest {
        tenant: envelope.tenant.clone(),
        workspace: envelope.workspace.clone(),
        run_id: envelope.run_id.clone(),
        attempt_id: envelope.attempt_id.clone(),
        task: envelope.task,
        worker_id: attempt.worker_id().to_owned(),
        session: attempt.session().to_owned(),
        start_time: Some(started),
        end_time: Some(clock::now().into()),
        ..outcome.0
    };
    reports
        .send(Report::new(
            attempt,
            attempt.finish_path().to_owned(),
            Call::Finish(finish),
        ))
        .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_starts_are_reported_together() {
        let first = next_round(Instant::now() + START_REPORTED_AFTER);
        assert_eq!(next_round(first), first);
        let (early, late) = (Duration::from_nanos(1), REPORT_INTERVAL);
        for later in [early, REPORT_INTERVAL / 2, late] {
            assert_eq!(
                next_round(first + later),
                first + REPORT_INTERVAL,
                "{later:?} later"
            );
        }
    }
}
