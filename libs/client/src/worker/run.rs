//! Running one attempt: the handler, the reports beside it, and the ways it can be cut short.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt;
use servo_proto::v1 as pb;
use servo_proto::v1::callback_item::Call;
use tokio::time::{Instant, sleep_until};

use super::attempt::{Attempt, Done, Handler};
use super::reports::{Report, Reports};

/// Attempts that end sooner are not reported as started: their outcome says it all.
const START_REPORTED_AFTER: Duration = Duration::from_millis(100);
/// Nobody waits for the news that an attempt has started, so what began around the same time is reported together, and
/// later beats together.
const REPORTED_EVERY: Duration = Duration::from_millis(100);
/// Time for a handler to stop by itself.
const CANCEL_GRACE: Duration = Duration::from_secs(10);

/// Runs the handler to its end and reports the outcome.
pub(crate) async fn run<H: Handler>(handler: Arc<H>, attempt: Attempt, reports: Reports) {
    let started = now();
    let done = {
        let work = AssertUnwindSafe(handler.run(attempt.clone())).catch_unwind();
        let cut_short = cut_short(&attempt);
        tokio::pin!(work, cut_short);
        let beside = beat(&attempt, &reports, started);
        tokio::select! {
            biased;
            done = &mut work => done.unwrap_or_else(|_| Done::failed_as(pb::ErrorCategory::UserCode, "the handler panicked")),
            done = &mut cut_short => done,
            never = beside => match never {},
        }
    };
    finish(&attempt, &reports, done, started);
}

/// What ends an attempt from outside: its deadline, a worker that must leave, or a cancel that was not heeded.
async fn cut_short(attempt: &Attempt) -> Done {
    let late = async {
        match time_left(attempt) {
            Some(left) => tokio::time::sleep(left).await,
            None => std::future::pending().await,
        }
    };
    let not_heeded = async {
        attempt.cancelled().await;
        tokio::time::sleep(CANCEL_GRACE).await;
    };
    tokio::select! {
        () = late => Done::failed_as(pb::ErrorCategory::Timeout, "the attempt passed its deadline"),
        () = attempt.0.interrupted.cancelled() => Done::interrupted(),
        () = not_heeded => Done::cancelled(),
    }
}

fn time_left(attempt: &Attempt) -> Option<Duration> {
    let deadline = attempt.envelope().deadline?;
    let at = UNIX_EPOCH
        + Duration::new(
            u64::try_from(deadline.seconds).ok()?,
            u32::try_from(deadline.nanos).ok()?,
        );
    Some(at.duration_since(SystemTime::now()).unwrap_or_default())
}

/// Reports the start of an attempt that lasts, then beats. Never ends by itself.
async fn beat(
    attempt: &Attempt,
    reports: &Reports,
    started: prost_types::Timestamp,
) -> std::convert::Infallible {
    let mut due = next_round(Instant::now() + START_REPORTED_AFTER);
    sleep_until(due).await;
    // A pushed one asked before it began.
    if attempt.beats() && attempt.envelope().mode() != pb::DispatchMode::Push {
        report_start(attempt, reports, started);
    }
    loop {
        due += attempt.interval();
        sleep_until(due).await;
        if attempt.beats() {
            report_beat(attempt, reports);
        }
    }
}

/// The next instant, not before `at`, at which all attempts of this process report.
fn next_round(at: Instant) -> Instant {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    let (since, every) = (
        at.duration_since(*FIRST).as_nanos(),
        REPORTED_EVERY.as_nanos(),
    );
    let missing = (every - since % every) % every;
    at + Duration::from_nanos(missing as u64)
}

fn report_start(attempt: &Attempt, reports: &Reports, started: prost_types::Timestamp) {
    let start = pb::StartAttemptRequest {
        start_time: Some(started),
        ..start_request(attempt)
    };
    reports.send(Report::new(
        attempt,
        start_path(attempt),
        Call::Start(start),
    ));
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

fn report_beat(attempt: &Attempt, reports: &Reports) {
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
    reports.send(Report::new(
        attempt,
        attempt.beat_path(),
        Call::Heartbeat(beat),
    ));
}

fn finish(attempt: &Attempt, reports: &Reports, done: Done, started: prost_types::Timestamp) {
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
        end_time: Some(now()),
        ..done.0
    };
    reports.send(Report::new(
        attempt,
        attempt.finish_path().to_owned(),
        Call::Finish(finish),
    ));
}

fn now() -> prost_types::Timestamp {
    SystemTime::now().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_around_the_same_time_is_reported_together() {
        let first = next_round(Instant::now() + START_REPORTED_AFTER);
        assert_eq!(next_round(first), first);
        let (early, late) = (Duration::from_nanos(1), REPORTED_EVERY);
        for later in [early, REPORTED_EVERY / 2, late] {
            assert_eq!(
                next_round(first + later),
                first + REPORTED_EVERY,
                "{later:?} later"
            );
        }
    }
}
