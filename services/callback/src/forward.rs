//! Forwarding starts and outcomes to the schedulers that hold their runs' shards.
//!
//! Reports are batched: while up to [`CALLS_IN_FLIGHT_MAX`] batches wait for the schedulers'
//! flushes, further reports queue up and leave together. A batch is split by the holder of each
//! run's shard, and every holder gets one `ReportAttempts` call with its part. The holder folds the
//! reports and returns a verdict for each.
//!
//! A report gets no verdict when its shard has no known holder, when the call fails or times out,
//! or when the holder answers that it lost the shard. The lease rows are then read again and the
//! report is queued once more, until [`HOLDER_TIMEOUT`] has passed since it arrived. After that the
//! callback appends the event to the ledger itself and answers RECORDED: the report is safe, and
//! the next holder folds it when it takes the shard over. Sending a report again after a lost
//! answer is harmless, because its event id and idempotency key stay the same.
//!
//! A quarantined success is never recorded without a holder ([`needs_holder`]), because the event
//! must say whether an earlier good version exists, and only the holder looks that up. The worker
//! is asked to retry.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message;
use servo_mesh::{Error, Mesh, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::{AttemptId, EventType, RunId};
use servo_proto::v1 as pb;
use servo_proto::v1::attempt_report::Report;
use servo_proto::v1::event::Body;
use servo_store::{Ledger, NewEvent, Outcome, Store};
use tokio::sync::{Semaphore, mpsc, oneshot};
use ulid::Ulid;
use uuid::Uuid;

use crate::Config;
use crate::holders::{Holder, Holders};

const REPORTS_PER_CALL_MAX: usize = 256;
/// Batches in flight. While one waits for the disk, others can be sent.
const CALLS_IN_FLIGHT_MAX: usize = 3;
/// How long a holder may take to answer. A flush under load takes tens of milliseconds.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a shard may be without a holder before the callback appends the report itself.
const HOLDER_TIMEOUT: Duration = Duration::from_millis(100);
const RETRY_DELAY: Duration = Duration::from_millis(20);

pub(crate) type Verdict = Result<pb::AttemptVerdict, Error>;

/// The handle to the forwarder. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Forward {
    inbox: mpsc::UnboundedSender<PendingReport>,
}

/// A report and the caller that waits for its verdict.
struct PendingReport {
    run: RunId,
    attempt: AttemptId,
    report: pb::AttemptReport,
    since: Instant,
    reply: oneshot::Sender<Verdict>,
}

type Call = (Holder, Vec<PendingReport>);

struct Forwarder {
    holders: Holders,
    ledger: Ledger,
    retries: mpsc::UnboundedSender<PendingReport>,
}

impl Forward {
    pub(crate) fn start(mesh: Arc<Mesh<Config>>, store: &Store) -> Forward {
        let (inbox, reports) = mpsc::unbounded_channel();
        let forwarder = Forwarder {
            holders: Holders::new(&mesh, store),
            ledger: store.ledger().clone(),
            retries: inbox.clone(),
        };
        tokio::spawn(run(Arc::new(forwarder), reports));
        Forward { inbox }
    }

    /// Returns once the report is folded, recorded or refused.
    pub(crate) async fn report(
        &self,
        run: RunId,
        attempt: AttemptId,
        mut report: pb::AttemptReport,
    ) -> Verdict {
        report.event_id = Ulid::generate().to_string();
        let (reply, verdict) = oneshot::channel();
        let pending = PendingReport {
            run,
            attempt,
            report,
            since: Instant::now(),
            reply,
        };
        let stopping = || {
            Error::new(
                Reason::NotReady,
                "the callback service is shutting down; retry",
            )
        };
        self.inbox.send(pending).map_err(|_| stopping())?;
        verdict.await.map_err(|_| stopping())?
    }
}

async fn run(forwarder: Arc<Forwarder>, mut reports: mpsc::UnboundedReceiver<PendingReport>) {
    let calls = Arc::new(Semaphore::new(CALLS_IN_FLIGHT_MAX));
    while let Some(first) = reports.recv().await {
        let Ok(permit) = calls.clone().acquire_owned().await else {
            return;
        };
        tokio::task::yield_now().await;
        let mut batch = vec![first];
        while batch.len() < REPORTS_PER_CALL_MAX
            && let Ok(more) = reports.try_recv()
        {
            batch.push(more);
        }
        let forwarder = forwarder.clone();
        tokio::spawn(async move {
            forwarder.send(batch).await;
            drop(permit);
        });
    }
}

impl Forwarder {
    async fn send(&self, batch: Vec<PendingReport>) {
        let (calls, unassigned) = self.by_holder(batch);
        futures::future::join_all(
            calls
                .into_values()
                .map(|(holder, reports)| self.call(holder, reports)),
        )
        .await;
        if !unassigned.is_empty() {
            self.retry_or_record(unassigned).await;
        }
    }

    /// Splits a batch by the address of the holder, and returns the reports without a holder
    /// separately.
    fn by_holder(&self, batch: Vec<PendingReport>) -> (HashMap<String, Call>, Vec<PendingReport>) {
        let (mut calls, mut unassigned) = (HashMap::new(), Vec::new());
        for report in batch {
            match self.holders.of(report.run.shard()) {
                Some(holder) => {
                    let call = calls
                        .entry(holder.address.clone())
                        .or_insert_with(|| (holder, Vec::new()));
                    call.1.push(report);
                }
                None => unassigned.push(report),
            }
        }
        (calls, unassigned)
    }

    async fn call(&self, holder: Holder, reports: Vec<PendingReport>) {
        let messages = reports.iter().map(|report| report.report.clone()).collect();
        let mut client = holder.client.clone();
        let call = client.report_attempts(pb::ReportAttemptsRequest { reports: messages });
        let answer = tokio::time::timeout(CALL_TIMEOUT, call).await;
        let verdicts = match answer {
            Ok(Ok(answer)) => answer.into_inner().verdicts,
            // It is unknown whether the reports were folded; the repeated event ids tell.
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        let mut verdicts = verdicts.into_iter();
        let mut unanswered = Vec::new();
        for report in reports {
            match verdicts.next() {
                Some(verdict)
                    if !matches!(verdict.refusal(), Reason::NotHolder | Reason::NotReady) =>
                {
                    let _ = report.reply.send(Ok(verdict));
                }
                _ => unanswered.push(report),
            }
        }
        if !unanswered.is_empty() {
            self.retry_or_record(unanswered).await;
        }
    }

    /// Refreshes the holders and queues the reports again, or records those that have waited too
    /// long.
    async fn retry_or_record(&self, reports: Vec<PendingReport>) {
        tokio::time::sleep(RETRY_DELAY).await;
        if let Err(error) = self.holders.refresh().await {
            tracing::warn!(%error, "failed to refresh shard holders; using the last known set");
        }
        let (retried, expired): (Vec<PendingReport>, Vec<PendingReport>) = reports
            .into_iter()
            .partition(|report| report.since.elapsed() < HOLDER_TIMEOUT);
        for report in retried {
            let _ = self.retries.send(report);
        }
        futures::future::join_all(expired.into_iter().map(|report| self.record(report))).await;
    }

    /// Appends the report to the ledger without a holder.
    async fn record(&self, report: PendingReport) {
        let answer = self.append(&report).await;
        let _ = report.reply.send(answer);
    }

    async fn append(&self, report: &PendingReport) -> Verdict {
        if needs_holder(&report.report) {
            let message = "no scheduler currently holds this run's shard, and a quarantined outcome \
                           cannot be recorded without one; retry";
            return Err(Error::new(Reason::NotReady, message));
        }
        let appended = self.ledger.append(vec![new_event(report)?]).await;
        match appended.map(|answers| answers.into_iter().next()) {
            Ok(Some(appended)) => Ok(recorded(&report.report, appended.outcome)),
            Ok(None) => Err(Error::new(
                Reason::Internal,
                "the ledger returned no result",
            )),
            Err(error) => Err(Error::new(Reason::NotReady, error.to_string())),
        }
    }
}

/// The verdict on a report that was appended without a holder.
fn recorded(report: &pb::AttemptReport, outcome: Outcome) -> pb::AttemptVerdict {
    let verdict = |acceptance: pb::Acceptance, event_id: String| pb::AttemptVerdict {
        acceptance: acceptance.into(),
        event_id,
        ..Default::default()
    };
    let ulid = |id: Uuid| Ulid::from(id.as_u128()).to_string();
    let is_start = matches!(report.report, Some(Report::Started(_)));
    match outcome {
        Outcome::New => verdict(pb::Acceptance::Recorded, report.event_id.clone()),
        // It is unknown whether the first one was folded. DUPLICATE would let a pushed attempt run
        // that no scheduler has confirmed.
        Outcome::Duplicate { event_id } if is_start => {
            verdict(pb::Acceptance::Recorded, ulid(event_id))
        }
        Outcome::Duplicate { event_id } => verdict(pb::Acceptance::Duplicate, ulid(event_id)),
        Outcome::Conflict { event_id } => pb::AttemptVerdict {
            refusal: Reason::OutcomeConflict.into(),
            message: "the attempt was reported before with a different outcome".to_owned(),
            ..verdict(pb::Acceptance::Refused, ulid(event_id))
        },
    }
}

/// Returns whether the outcome may only be recorded by the holder of its shard. That is a
/// quarantined success: the holder looks up whether an earlier good version exists. Without that,
/// everything downstream would be skipped.
fn needs_holder(report: &pb::AttemptReport) -> bool {
    let Some(Report::Finished(finished)) = &report.report else {
        return false;
    };
    finished.outcome() == pb::Outcome::Succeeded && finished.gating() == pb::Gating::Quarantine
}

fn new_event(report: &PendingReport) -> Result<NewEvent, Error> {
    let malformed = || Error::new(Reason::Internal, "a report has no body");
    let (kind, key, body) = match report.report.report.clone().ok_or_else(malformed)? {
        Report::Started(started) => (
            EventType::TaskStarted,
            IdempotencyKey::task_started(&report.attempt),
            Body::TaskStarted(started),
        ),
        Report::Finished(finished) => (
            EventType::TaskFinished,
            IdempotencyKey::task_finished(&report.attempt),
            Body::TaskFinished(finished),
        ),
    };
    let event_id: Ulid = report.report.event_id.parse().map_err(|_| malformed())?;
    Ok(NewEvent {
        event_id: Uuid::from_u128(event_id.into()),
        kind,
        version: 1,
        shard: report.run.shard(),
        tenant: report.report.tenant.clone(),
        workspace: report.report.workspace.clone(),
        idempotency_key: key.to_string(),
        correlation_id: Some(Uuid::from_bytes(*report.run.as_bytes())),
        causation_id: None,
        // Without the trace of the call, because it differs in every call and a repeated event must
        // have the same payload.
        payload: pb::Event {
            version: 1,
            trace: None,
            body: Some(body),
        }
        .encode_to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_quarantined_success_needs_a_holder() {
        use pb::{Gating, Outcome};
        let finished = |outcome: Outcome, gating: Gating| {
            let (outcome, gating) = (outcome.into(), gating.into());
            Report::Finished(pb::TaskFinished {
                outcome,
                gating,
                ..Default::default()
            })
        };
        let check = |report: Report, needs: bool| {
            let report = pb::AttemptReport {
                report: Some(report),
                ..Default::default()
            };
            assert_eq!(needs_holder(&report), needs, "{report:?}");
        };
        check(finished(Outcome::Succeeded, Gating::Quarantine), true);
        check(finished(Outcome::Succeeded, Gating::Block), false);
        check(finished(Outcome::Succeeded, Gating::Allow), false);
        check(finished(Outcome::Failed, Gating::Quarantine), false);
        check(Report::Started(pb::TaskStarted::default()), false);
    }
}
