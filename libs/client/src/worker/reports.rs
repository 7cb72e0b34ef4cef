//! Sends the reports of all attempts of a worker over one stream to the callback service.
//!
//! Every report has a number and stays open until the server has answered it. Reports are batched:
//! while one message is in flight the next one fills. When the stream breaks, the reporter opens a
//! stream to the next callback instance, after a delay that grows with repeated failures, and sends
//! all open reports again in their original order. That is safe because the server treats a
//! repeated report like the first one.
//!
//! A refusal is final unless the report can be corrected: a heartbeat or log call whose signature
//! expired during an outage is sent again with a renewal, and a refused outcome is replaced by a
//! reduced one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use servo_model::limits::MESSAGE_BYTES_MAX;
use servo_proto::v1 as pb;
use servo_proto::v1::callback_item::Call;
use servo_proto::v1::callback_result::Result as Answer;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use tracing::{debug, warn};

use super::attempt::Attempt;
use super::reduced_outcome::{reduced, replacement};
use crate::client::Client;

const ITEMS_PER_MESSAGE_MAX: usize = 256;
/// Reports that the reporter has not taken yet; an attempt waits with more.
const REPORTS_QUEUED_MAX: usize = 1_024;
/// Half of the limit of a message leaves space for everything around the items.
const BYTES_PER_MESSAGE: usize = MESSAGE_BYTES_MAX / 2;
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A report that has not been answered yet.
pub(crate) struct Report {
    attempt: Attempt,
    presigned: String,
    /// Sent with a path that has expired; empty before that.
    renewal: String,
    call: Call,
}

impl Report {
    pub(crate) fn new(attempt: &Attempt, presigned: String, call: Call) -> Report {
        Report {
            attempt: attempt.clone(),
            presigned,
            renewal: String::new(),
            call,
        }
    }
}

/// Accepts reports. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reports {
    inbox: mpsc::Sender<Report>,
    /// The number of reports without a response.
    open: watch::Receiver<usize>,
    open_count: Arc<watch::Sender<usize>>,
}

impl Reports {
    /// Sends to the first client; when its stream breaks, to the next one.
    pub(crate) fn start(callbacks: VecDeque<Client>, tenant: Arc<str>) -> Reports {
        let (inbox, reports) = mpsc::channel(REPORTS_QUEUED_MAX);
        let (open_count, open) = watch::channel(0);
        let open_count = Arc::new(open_count);
        let reporter = Reporter {
            callbacks,
            tenant,
            reports,
            open: BTreeMap::new(),
            unsent: BTreeSet::new(),
            next: 1,
            open_count: open_count.clone(),
        };
        super::spawn(reporter.run());
        Reports {
            inbox,
            open,
            open_count,
        }
    }

    /// Waits while too many reports are queued, which happens when the server is unavailable.
    pub(crate) async fn send(&self, report: Report) {
        self.open_count.send_modify(|open| *open += 1);
        // Sending cannot fail, because the reporter lives as long as this handle.
        let _ = self.inbox.send(report).await;
    }

    /// Waits until fewer than `limit` reports are open.
    pub(crate) async fn wait_below(&self, limit: usize) {
        let mut open = self.open.clone();
        let _ = open.wait_for(|open| *open < limit).await;
    }
}

struct Reporter {
    callbacks: VecDeque<Client>,
    tenant: Arc<str>,
    reports: mpsc::Receiver<Report>,
    /// By number, and therefore in their original order.
    open: BTreeMap<u64, Report>,
    /// The reports of `open` that were not sent on this stream yet.
    unsent: BTreeSet<u64>,
    next: u64,
    open_count: Arc<watch::Sender<usize>>,
}

impl Reporter {
    async fn run(mut self) {
        let mut pause = PAUSE_MIN;
        // Opens a stream only when there is a report to send.
        while self.wait_for_report().await {
            let begun = Instant::now();
            match self.run_stream().await {
                Ok(()) => return,
                Err(status) => {
                    debug!(%status, open = self.open.len(), "the report stream broke; reconnecting")
                }
            }
            self.unsent = self.open.keys().copied().collect();
            self.callbacks.rotate_left(1);
            pause = if begun.elapsed() > PAUSE_MAX {
                PAUSE_MIN
            } else {
                (pause * 2).min(PAUSE_MAX)
            };
            let pause = pause.min(self.shortest_interval());
            tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..1.0))).await;
        }
    }

    /// The shortest heartbeat interval of the open reports. After an outage the server counts
    /// silence from its restart, so a worker that waits longer than one interval could lose a live
    /// attempt.
    fn shortest_interval(&self) -> Duration {
        self.open
            .values()
            .map(|report| report.attempt.interval())
            .min()
            .unwrap_or(PAUSE_MAX)
    }

    /// Returns false when no more reports can come.
    async fn wait_for_report(&mut self) -> bool {
        if !self.open.is_empty() {
            return true;
        }
        match self.reports.recv().await {
            Some(report) => {
                self.enqueue(report);
                true
            }
            None => false,
        }
    }

    fn enqueue(&mut self, mut report: Report) {
        // A report that does not fit into any message would break one stream after another.
        if let Call::Finish(finish) = &mut report.call
            && finish.encoded_len() > BYTES_PER_MESSAGE
        {
            let why = format!(
                "it has {} bytes, and {BYTES_PER_MESSAGE} can be sent",
                finish.encoded_len()
            );
            *finish = reduced(finish, &why);
        }
        self.open.insert(self.next, report);
        self.unsent.insert(self.next);
        self.next += 1;
    }

    /// Runs one stream until it breaks or every report has been answered.
    async fn run_stream(&mut self) -> Result<(), Status> {
        let (requests, outgoing) = mpsc::channel(4);
        // Sends requests while the stream opens, because the server may return its headers only
        // with its first response.
        let Some(callback) = self.callbacks.front() else {
            return Err(Status::unavailable("no callback service is configured"));
        };
        let mut callback = callback.callback();
        let opening = super::spawn(async move {
            callback
                .stream_callbacks(ReceiverStream::new(outgoing))
                .await
        });
        self.send_unsent(&requests).await?;
        let opened = opening
            .await
            .map_err(|error| Status::internal(error.to_string()))??;
        let mut answers = opened.into_inner();
        let mut received = Vec::new();
        loop {
            let mut again = None;
            tokio::select! {
                count = self.reports.recv_many(&mut received, ITEMS_PER_MESSAGE_MAX) => {
                    if count == 0 {
                        return self.wait_for_rest(&mut answers).await;
                    }
                    received.drain(..).for_each(|report| self.enqueue(report));
                }
                answer = answers.message() => {
                    let answer = answer?.ok_or_else(|| Status::unavailable("the server ended the stream"))?;
                    again = self.apply_results(answer);
                }
            }
            if let Some(pause) = again {
                tokio::time::sleep(pause).await;
            }
            self.send_unsent(&requests).await?;
        }
    }

    async fn wait_for_rest(
        &mut self,
        answers: &mut Streaming<pb::StreamCallbacksResponse>,
    ) -> Result<(), Status> {
        while !self.open.is_empty() {
            let answer = answers
                .message()
                .await?
                .ok_or_else(|| Status::unavailable("the server ended the stream"))?;
            self.apply_results(answer);
        }
        Ok(())
    }

    async fn send_unsent(
        &mut self,
        requests: &mpsc::Sender<pb::StreamCallbacksRequest>,
    ) -> Result<(), Status> {
        while let Some(items) = self.next_items() {
            let message = pb::StreamCallbacksRequest {
                tenant: self.tenant.to_string(),
                items,
            };
            requests
                .send(message)
                .await
                .map_err(|_| Status::unavailable("the report stream is closed"))?;
        }
        Ok(())
    }

    /// The items of the next message, limited by count and by bytes.
    fn next_items(&mut self) -> Option<Vec<pb::CallbackItem>> {
        let (mut items, mut bytes) = (Vec::new(), 0);
        while items.len() < ITEMS_PER_MESSAGE_MAX
            && let Some(number) = self.unsent.pop_first()
        {
            let Some(item) = self.open.get(&number).map(|report| item(number, report)) else {
                continue;
            };
            bytes += item.encoded_len();
            if bytes > BYTES_PER_MESSAGE && !items.is_empty() {
                self.unsent.insert(number);
                break;
            }
            items.push(item);
        }
        (!items.is_empty()).then_some(items)
    }

    /// Applies the results; returns a delay when reports must be sent again after it.
    fn apply_results(&mut self, answers: pb::StreamCallbacksResponse) -> Option<Duration> {
        let mut again: Option<Duration> = None;
        for answer in answers.results {
            let Some(report) = self.open.get(&answer.number) else {
                continue;
            };
            let attempt = report.attempt.clone();
            match answer.result {
                Some(Answer::Start(start)) => attempt.renew(start.renewed),
                Some(Answer::Heartbeat(beat)) => attempt.apply_heartbeat(beat),
                Some(Answer::Logs(_) | Answer::Finish(_)) | None => {}
                Some(Answer::Refusal(refusal)) => {
                    if let Some(pause) = refusal
                        .retry_after
                        .and_then(|pause| Duration::try_from(pause).ok())
                    {
                        self.unsent.insert(answer.number);
                        again = Some(again.map_or(pause, |other| other.min(pause)));
                        continue;
                    }
                    if let Some(replaced) = replacement_report(report, &refusal) {
                        self.open.insert(answer.number, replaced);
                        self.unsent.insert(answer.number);
                        again.get_or_insert(Duration::ZERO);
                        continue;
                    }
                }
            }
            self.open.remove(&answer.number);
            self.open_count
                .send_modify(|open| *open = open.saturating_sub(1));
        }
        again
    }
}

/// Logs the refusal, and cancels an attempt that Servo does not know or has given up.
fn note_refusal(report: &Report, refusal: &pb::CallbackRefusal) {
    let attempt = &report.attempt;
    warn!(
        attempt = attempt.envelope().attempt_id,
        reason = refusal.reason().as_str_name(),
        message = refusal.message,
        "a report was refused"
    );
    let over = matches!(
        refusal.reason(),
        pb::ErrorReason::StaleAttempt
            | pb::ErrorReason::AttemptUnknown
            | pb::ErrorReason::AttemptCancelled
            | pb::ErrorReason::AlreadyStarted
    );
    if over {
        attempt.0.cancelled.cancel();
    }
}

/// The report to send in place of a refused one; `None` when the refusal is final.
fn replacement_report(report: &Report, refusal: &pb::CallbackRefusal) -> Option<Report> {
    let returning = with_renewal(report, refusal);
    if returning.is_none() {
        note_refusal(report, refusal);
    }
    returning.or_else(|| with_replacement_outcome(report, refusal))
}

/// The same report with proof that its attempt may continue, because an outage outlasted its
/// signature.
fn with_renewal(report: &Report, refusal: &pb::CallbackRefusal) -> Option<Report> {
    let short_lived = matches!(report.call, Call::Heartbeat(_) | Call::Logs(_));
    let expired = refusal.reason() == pb::ErrorReason::SignatureExpired;
    let (renewal, shown) = (report.attempt.finish_path(), !report.renewal.is_empty());
    if !short_lived || !expired || shown || renewal.is_empty() {
        return None;
    }
    debug!(
        attempt = report.attempt.envelope().attempt_id,
        "a signature expired and is renewed"
    );
    let again = Report::new(
        &report.attempt,
        report.presigned.clone(),
        report.call.clone(),
    );
    Some(Report {
        renewal: renewal.to_owned(),
        ..again
    })
}

/// The same report with a replacement for its outcome.
fn with_replacement_outcome(report: &Report, refusal: &pb::CallbackRefusal) -> Option<Report> {
    let Call::Finish(finish) = &report.call else {
        return None;
    };
    let call = Call::Finish(replacement(finish, refusal)?);
    Some(Report::new(&report.attempt, report.presigned.clone(), call))
}

fn item(number: u64, report: &Report) -> pb::CallbackItem {
    pb::CallbackItem {
        number,
        presigned: report.presigned.clone(),
        call: Some(report.call.clone()),
        renewal: report.renewal.clone(),
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn reporter() -> Reporter {
        Reporter {
            callbacks: VecDeque::new(),
            tenant: "acme".into(),
            reports: mpsc::channel(1).1,
            open: BTreeMap::new(),
            unsent: BTreeSet::new(),
            next: 1,
            open_count: Arc::new(watch::channel(0).0),
        }
    }

    fn finished(bytes: usize) -> Report {
        let skip_reason = "x".repeat(bytes);
        let finish = pb::FinishAttemptRequest {
            skip_reason,
            ..Default::default()
        };
        let token = CancellationToken::new();
        let attempt = Attempt::new(Default::default(), "s".into(), "w".into(), token, PAUSE_MAX);
        Report::new(&attempt, String::new(), Call::Finish(finish))
    }

    #[test]
    fn messages_are_limited_by_count_and_bytes() {
        let check = |count: usize, bytes: usize, expected: &[usize]| {
            let mut reporter = reporter();
            (0..count).for_each(|_| reporter.enqueue(finished(bytes)));
            let cut: Vec<_> = std::iter::from_fn(|| reporter.next_items()).collect();
            let numbers: Vec<u64> = cut.iter().flatten().map(|item| item.number).collect();
            assert!(numbers.is_sorted() && numbers.len() == count);
            assert_eq!(cut.iter().map(Vec::len).collect::<Vec<_>>(), expected);
            let message = |items| pb::StreamCallbacksRequest {
                tenant: "acme".to_owned(),
                items,
            };
            assert!(
                cut.into_iter()
                    .all(|items| message(items).encoded_len() < MESSAGE_BYTES_MAX)
            );
        };
        check(300, 10, &[256, 44]);
        check(5, BYTES_PER_MESSAGE / 2 - 100, &[2, 2, 1]);
        check(3, BYTES_PER_MESSAGE - 100, &[1, 1, 1]);
        // An outcome that does not fit into any message is reduced.
        check(3, 2 * MESSAGE_BYTES_MAX, &[3]);
    }

    fn attempt(finished: &str) -> Attempt {
        let callbacks = pb::CallbackPaths {
            finished: finished.to_owned(),
            ..Default::default()
        };
        let beat_every = Some(prost_types::Duration {
            seconds: 1,
            nanos: 0,
        });
        let envelope = pb::TaskEnvelope {
            callbacks: Some(callbacks),
            heartbeat_interval: beat_every,
            ..Default::default()
        };
        Attempt::new(
            envelope,
            "s".into(),
            "w".into(),
            CancellationToken::new(),
            PAUSE_MAX,
        )
    }

    /// The renewals that a report is sent with when it is always refused for this reason.
    fn renewals(reason: pb::ErrorReason, finished: &str, call: Call) -> Vec<String> {
        let mut reporter = reporter();
        reporter.enqueue(Report::new(&attempt(finished), "/old".to_owned(), call));
        let mut seen = Vec::new();
        while let Some(items) = reporter.next_items() {
            assert_eq!((items.len(), items[0].presigned.as_str()), (1, "/old"));
            seen.push(items[0].renewal.clone());
            let refusal = pb::CallbackRefusal {
                reason: reason.into(),
                ..Default::default()
            };
            let result = Some(Answer::Refusal(refusal));
            let results = vec![pb::CallbackResult {
                number: items[0].number,
                result,
            }];
            reporter.apply_results(pb::StreamCallbacksResponse { results });
        }
        assert!(reporter.open.is_empty(), "it is not repeated forever");
        seen
    }

    #[test]
    fn f14_expired_heartbeats_and_logs_are_resent_with_a_renewal() {
        use pb::ErrorReason::{SignatureExpired, SignatureInvalid, StaleAttempt};
        let beat = || Call::Heartbeat(pb::HeartbeatRequest::default());
        let logs = || Call::Logs(pb::AppendLogsRequest::default());
        assert_eq!(
            renewals(SignatureExpired, "/finished", beat()),
            ["", "/finished"]
        );
        assert_eq!(
            renewals(SignatureExpired, "/finished", logs()),
            ["", "/finished"]
        );
        assert_eq!(renewals(SignatureExpired, "", beat()), [""]);
        assert_eq!(renewals(SignatureInvalid, "/finished", beat()), [""]);
        assert_eq!(renewals(StaleAttempt, "/finished", beat()), [""]);
        let start = Call::Start(pb::StartAttemptRequest::default());
        assert_eq!(renewals(SignatureExpired, "/finished", start), [""]);
        let finish = Call::Finish(pb::FinishAttemptRequest::default());
        assert_eq!(renewals(SignatureExpired, "/finished", finish), [""]);
    }

    #[test]
    fn short_heartbeat_interval_shortens_the_reconnect_delay() {
        let mut reporter = reporter();
        assert_eq!(reporter.shortest_interval(), PAUSE_MAX);
        reporter.enqueue(Report::new(
            &attempt(""),
            String::new(),
            Call::Heartbeat(Default::default()),
        ));
        assert_eq!(reporter.shortest_interval(), Duration::from_secs(1));
    }
}
