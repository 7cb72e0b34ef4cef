//! Reports, gathered: while one message is under way the next fills. What is not answered is sent again on the
//! next stream, in the order it was made.

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
use super::bare::{bare, instead};
use crate::client::Client;

const ITEMS_PER_MESSAGE_MAX: usize = 256;
/// Half of what a server takes leaves room for everything around the items.
const BYTES_PER_MESSAGE: usize = MESSAGE_BYTES_MAX / 2;
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A report on its way.
pub(crate) struct Report {
    attempt: Attempt,
    presigned: String,
    /// Shown beside a path that has expired; empty before that.
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

/// Takes reports. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reports {
    inbox: mpsc::UnboundedSender<Report>,
    /// Reports that are not answered.
    open: watch::Receiver<usize>,
    waiting: Arc<watch::Sender<usize>>,
}

impl Reports {
    /// To the first of these; when its stream breaks, to the next.
    pub(crate) fn start(callbacks: VecDeque<Client>, tenant: Arc<str>) -> Reports {
        let (inbox, reports) = mpsc::unbounded_channel();
        let (waiting, open) = watch::channel(0);
        let waiting = Arc::new(waiting);
        let reporter = Reporter {
            callbacks,
            tenant,
            reports,
            open: BTreeMap::new(),
            unsent: BTreeSet::new(),
            next: 1,
            waiting: waiting.clone(),
        };
        tokio::spawn(reporter.run());
        Reports {
            inbox,
            open,
            waiting,
        }
    }

    pub(crate) fn send(&self, report: Report) {
        self.waiting.send_modify(|open| *open += 1);
        // The reporter lives as long as this handle.
        let _ = self.inbox.send(report);
    }

    /// Waits until fewer than `most` are open.
    pub(crate) async fn below(&self, most: usize) {
        let mut open = self.open.clone();
        let _ = open.wait_for(|open| *open < most).await;
    }
}

struct Reporter {
    callbacks: VecDeque<Client>,
    tenant: Arc<str>,
    reports: mpsc::UnboundedReceiver<Report>,
    /// By number, hence in the order they were made.
    open: BTreeMap<u64, Report>,
    /// Those of `open` that this stream has not carried yet.
    unsent: BTreeSet<u64>,
    next: u64,
    waiting: Arc<watch::Sender<usize>>,
}

impl Reporter {
    async fn run(mut self) {
        let mut pause = PAUSE_MIN;
        // No stream before there is something to say.
        while self.gather_first().await {
            let begun = Instant::now();
            match self.speak().await {
                Ok(()) => return,
                Err(status) => {
                    debug!(%status, open = self.open.len(), "the stream of reports broke")
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

    /// Of the beats that wait. Silence is judged from when the server is back: who then waits longer than from one beat
    /// to the next may be given up although it lives.
    fn shortest_interval(&self) -> Duration {
        self.open
            .values()
            .map(|report| report.attempt.interval())
            .min()
            .unwrap_or(PAUSE_MAX)
    }

    /// `false` when nobody can report any more.
    async fn gather_first(&mut self) -> bool {
        if !self.open.is_empty() {
            return true;
        }
        match self.reports.recv().await {
            Some(report) => {
                self.take(report);
                true
            }
            None => false,
        }
    }

    fn take(&mut self, mut report: Report) {
        // What no message can carry would break one stream after the other.
        if let Call::Finish(finish) = &mut report.call
            && finish.encoded_len() > BYTES_PER_MESSAGE
        {
            let why = format!(
                "it has {} bytes; {BYTES_PER_MESSAGE} can be sent",
                finish.encoded_len()
            );
            *finish = bare(finish, &why);
        }
        self.open.insert(self.next, report);
        self.unsent.insert(self.next);
        self.next += 1;
    }

    /// One stream, until it breaks or everything was said.
    async fn speak(&mut self) -> Result<(), Status> {
        let (requests, outgoing) = mpsc::channel(4);
        // The server answers the headers at once or with its first answer; either way requests flow meanwhile.
        let Some(callback) = self.callbacks.front() else {
            return Err(Status::unavailable("there is nobody to report to"));
        };
        let mut callback = callback.callback();
        let opening = tokio::spawn(async move {
            callback
                .stream_callbacks(ReceiverStream::new(outgoing))
                .await
        });
        self.send_unsent(&requests).await?;
        let opened = opening
            .await
            .map_err(|error| Status::internal(error.to_string()))??;
        let mut answers = opened.into_inner();
        let mut gathered = Vec::new();
        loop {
            let mut again = None;
            tokio::select! {
                count = self.reports.recv_many(&mut gathered, ITEMS_PER_MESSAGE_MAX) => {
                    if count == 0 {
                        return self.wait_for_rest(&mut answers).await;
                    }
                    gathered.drain(..).for_each(|report| self.take(report));
                }
                answer = answers.message() => {
                    let answer = answer?.ok_or_else(|| Status::unavailable("the server ended the stream"))?;
                    again = self.answered(answer);
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
            self.answered(answer);
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
                .map_err(|_| Status::unavailable("the stream of reports is gone"))?;
        }
        Ok(())
    }

    /// What the next message carries, by count and by bytes.
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

    /// Takes answers to heart; `Some` when reports must be repeated after a while.
    fn answered(&mut self, answers: pb::StreamCallbacksResponse) -> Option<Duration> {
        let mut again: Option<Duration> = None;
        for answer in answers.results {
            let Some(report) = self.open.get(&answer.number) else {
                continue;
            };
            let attempt = report.attempt.clone();
            match answer.result {
                Some(Answer::Start(start)) => attempt.renew(start.renewed),
                Some(Answer::Heartbeat(beat)) => attempt.take_beat(beat),
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
                    if let Some(instead) = said_instead(report, &refusal) {
                        self.open.insert(answer.number, instead);
                        self.unsent.insert(answer.number);
                        again.get_or_insert(Duration::ZERO);
                        continue;
                    }
                }
            }
            self.open.remove(&answer.number);
            self.waiting
                .send_modify(|open| *open = open.saturating_sub(1));
        }
        again
    }
}

/// An attempt that Servo does not know, or has given up, is not worth going on with.
fn refused(report: &Report, refusal: &pb::CallbackRefusal) {
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

/// What is said instead of a report that was refused; `None` when that is the last word.
fn said_instead(report: &Report, refusal: &pb::CallbackRefusal) -> Option<Report> {
    let returning = after_an_outage(report, refusal);
    if returning.is_none() {
        refused(report, refusal);
    }
    returning.or_else(|| failed_instead(report, refusal))
}

/// The same report with the proof that its attempt may go on: an outage lasted longer than its signature.
fn after_an_outage(report: &Report, refusal: &pb::CallbackRefusal) -> Option<Report> {
    let short_lived = matches!(report.call, Call::Heartbeat(_) | Call::Logs(_));
    let expired = refusal.reason() == pb::ErrorReason::SignatureExpired;
    let (renewal, shown) = (report.attempt.finish_path(), !report.renewal.is_empty());
    if !short_lived || !expired || shown || renewal.is_empty() {
        return None;
    }
    debug!(
        attempt = report.attempt.envelope().attempt_id,
        "a signature expired meanwhile and is renewed"
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

/// The same report with the outcome that is told instead.
fn failed_instead(report: &Report, refusal: &pb::CallbackRefusal) -> Option<Report> {
    let Call::Finish(finish) = &report.call else {
        return None;
    };
    let call = Call::Finish(instead(finish, refusal)?);
    Some(Report::new(&report.attempt, report.presigned.clone(), call))
}

fn item(number: u64, report: &Report) -> pb::CallbackItem {
    pb::CallbackItem {
        number,
        presigned: report.presigned.clone(),
        call: Some(report.call.clone()),
        trace: report.attempt.envelope().trace.clone(),
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
            reports: mpsc::unbounded_channel().1,
            open: BTreeMap::new(),
            unsent: BTreeSet::new(),
            next: 1,
            waiting: Arc::new(watch::channel(0).0),
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
    fn messages_are_cut_by_count_and_by_bytes() {
        let check = |count: usize, bytes: usize, expected: &[usize]| {
            let mut reporter = reporter();
            (0..count).for_each(|_| reporter.take(finished(bytes)));
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
        // What no message can carry is told in a few words.
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

    /// The renewals that a report is sent with when each is refused for this reason.
    fn renewals(reason: pb::ErrorReason, finished: &str, call: Call) -> Vec<String> {
        let mut reporter = reporter();
        reporter.take(Report::new(&attempt(finished), "/old".to_owned(), call));
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
            reporter.answered(pb::StreamCallbacksResponse { results });
        }
        assert!(reporter.open.is_empty(), "it is not repeated for ever");
        seen
    }

    #[test]
    fn f14_what_an_outage_outlived_is_sent_once_more_with_a_renewal() {
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
    fn who_beats_often_comes_back_soon() {
        let mut reporter = reporter();
        assert_eq!(reporter.shortest_interval(), PAUSE_MAX);
        reporter.take(Report::new(
            &attempt(""),
            String::new(),
            Call::Heartbeat(Default::default()),
        ));
        assert_eq!(reporter.shortest_interval(), Duration::from_secs(1));
    }
}
