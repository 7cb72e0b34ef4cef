//! Forwarding starts and outcomes to the schedulers that hold their runs' shards.
//!
//! Reports are batched: while up to [`CALLS_IN_FLIGHT_MAX`] batches wait for the schedulers'
//! flushes, further reports queue up and leave together. A batch is split by the holder of each
//! run's shard, and every holder gets one `ReportAttempts` call with its part. The holder folds the
//! reports and returns a verdict for each.
//!
//! A report gets no verdict when its shard has no known holder, when the call fails or takes longer
//! than [`CALL_TIMEOUT`], or when the holder answers that it lost the shard or could not store the
//! report. The lease rows are then read again and the report is sent once more, until
//! [`RECORD_AFTER`] has passed since it arrived. After that the callback appends the event to the
//! ledger itself and answers RECORDED: the report is safe. The time is looked at between calls, so
//! a call in progress may take longer. The present holder folds a recorded event with its next
//! flush or lease renewal, or the next holder when it takes the shard over. Sending a report again
//! after a lost answer is harmless, because its event id and idempotency key stay the same.
//!
//! A quarantined success is never recorded without a holder ([`needs_holder`]), because the event
//! must say whether an earlier good version exists, and only the holder looks that up. The worker
//! is asked to retry.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message;
use servo_actor::{BatchHandler, Batcher, Limits};
use servo_mesh::{Error, Instance, Mesh, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::presign::CallbackPath;
use servo_model::{AttemptId, EventType, RunId, Service, Stream, TenantId};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::attempt_report::Report;
use servo_proto::mesh::v1::scheduler_mesh_service_client::SchedulerMeshServiceClient;
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_service::{ShardHolders, errors};
use servo_store::{AppendResult, Ledger, NewEvent, Store};
use ulid::Ulid;
use uuid::Uuid;

use crate::Config;

const REPORTS_PER_CALL_MAX: usize = 256;
/// Reports that wait; a caller beyond it waits for capacity.
const REPORTS_QUEUED_MAX: usize = 16_384;
/// Batches in flight. While one waits for the disk, others can be sent.
const CALLS_IN_FLIGHT_MAX: usize = 3;
/// How long a holder may take to answer. A flush under load takes tens of milliseconds.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long after its arrival a report without a verdict is appended by the callback itself.
const RECORD_AFTER: Duration = Duration::from_millis(100);
const RETRY_DELAY: Duration = Duration::from_millis(20);
/// Leases rarely move, so one read of the lease rows serves all reports within this time.
const REFRESH_INTERVAL_MIN: Duration = Duration::from_millis(20);

pub(crate) type Verdict = Result<mesh_pb::AttemptVerdict, Error>;

/// The handle to the forwarder. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Forwarder {
    batcher: Batcher<PendingReport, Verdict>,
}

/// A report that waits for its verdict.
struct PendingReport {
    tenant: TenantId,
    run: RunId,
    attempt: AttemptId,
    report: mesh_pb::AttemptReport,
    since: Instant,
}

impl Forwarder {
    pub(crate) fn start(mesh: &Mesh<Config>, store: &Store) -> Forwarder {
        let holders = ShardHolders::new(mesh, store.loops(), Service::Scheduler, Stream::Execution);
        let sender = BatchSender {
            holders,
            ledger: store.ledger().clone(),
        };
        let limits = Limits::items(REPORTS_PER_CALL_MAX, REPORTS_QUEUED_MAX);
        let concurrent = CALLS_IN_FLIGHT_MAX;
        Forwarder {
            batcher: Batcher::start_concurrent("forward", limits, concurrent, sender),
        }
    }

    /// Returns once the report is folded, recorded or refused.
    pub(crate) async fn report(
        &self,
        path: &CallbackPath,
        mut report: mesh_pb::AttemptReport,
    ) -> Verdict {
        report.event_id = Ulid::generate().to_string();
        let pending = PendingReport {
            tenant: path.tenant.clone(),
            run: path.run,
            attempt: path.attempt,
            report,
            since: Instant::now(),
        };
        let verdict = self.batcher.call(pending).await;
        verdict.map_err(errors::stopped)?
    }
}

/// Sends batches of reports. Cheap to clone.
#[derive(Clone)]
struct BatchSender {
    holders: ShardHolders,
    ledger: Ledger,
}

/// The index of a report in its batch.
type Index = usize;

impl BatchHandler for BatchSender {
    type Item = PendingReport;
    type Answer = Verdict;

    async fn run(&mut self, batch: Vec<PendingReport>) -> Vec<Verdict> {
        let mut verdicts: Vec<Option<Verdict>> = batch.iter().map(|_| None).collect();
        loop {
            for (index, verdict) in self.send(&batch, &open(&verdicts)).await {
                verdicts[index] = Some(Ok(verdict));
            }
            if verdicts.iter().all(Option::is_some) {
                return verdicts.into_iter().flatten().collect();
            }
            tokio::time::sleep(RETRY_DELAY).await;
            self.holders.fresh_or_last_known(REFRESH_INTERVAL_MIN).await;
            let expired: Vec<Index> = open(&verdicts)
                .into_iter()
                .filter(|index| batch[*index].since.elapsed() >= RECORD_AFTER)
                .collect();
            let recorded = expired.iter().map(|index| self.record(&batch[*index]));
            let recorded = futures::future::join_all(recorded).await;
            for (index, verdict) in expired.into_iter().zip(recorded) {
                verdicts[index] = Some(verdict);
            }
        }
    }
}

/// The reports that have no verdict yet.
fn open(verdicts: &[Option<Verdict>]) -> Vec<Index> {
    let without = verdicts.iter().enumerate();
    let without = without.filter(|(_, verdict)| verdict.is_none());
    without.map(|(index, _)| index).collect()
}

impl BatchSender {
    /// Sends these reports to the holders of their shards and returns the verdicts that came back.
    async fn send(
        &self,
        batch: &[PendingReport],
        open: &[Index],
    ) -> Vec<(Index, mesh_pb::AttemptVerdict)> {
        let mut calls: HashMap<Arc<str>, (Instance, Vec<Index>)> = HashMap::new();
        for index in open {
            if let Some(holder) = self.holders.of(batch[*index].run.shard()) {
                let call = calls.entry(holder.address.clone());
                call.or_insert_with(|| (holder, Vec::new())).1.push(*index);
            }
        }
        let calls = calls
            .into_values()
            .map(|(holder, indices)| call(holder, batch, indices));
        futures::future::join_all(calls).await.concat()
    }

    /// Appends the report to the ledger without a holder.
    async fn record(&self, report: &PendingReport) -> Verdict {
        if needs_holder(&report.report) {
            let message = "no scheduler currently holds this run's shard, and a quarantined outcome \
                           cannot be recorded without one; retry";
            return Err(Error::new(Reason::NotReady, message));
        }
        let appended = self.ledger.append(vec![new_event(report)?]).await;
        let appended = appended.map_err(errors::append)?;
        let result = appended.into_iter().next().map(|one| one.result);
        result
            .map(|result| recorded(&report.report, result))
            .ok_or_else(|| Error::new(Reason::Internal, "the ledger returned no result"))
    }
}

/// Calls one holder. A report that the holder could not judge gets no verdict.
async fn call(
    holder: Instance,
    batch: &[PendingReport],
    indices: Vec<Index>,
) -> Vec<(Index, mesh_pb::AttemptVerdict)> {
    let report = |index: &Index| batch[*index].report.clone();
    let reports = indices.iter().map(report).collect();
    let mut client = SchedulerMeshServiceClient::new(holder.peer);
    let call = client.report_attempts(mesh_pb::ReportAttemptsRequest { reports });
    // After a failure it is unknown whether the reports were folded; the repeated event ids tell.
    let Ok(Ok(answer)) = tokio::time::timeout(CALL_TIMEOUT, call).await else {
        return Vec::new();
    };
    let is_judged = |verdict: &mesh_pb::AttemptVerdict| {
        !matches!(verdict.refusal(), Reason::NotHolder | Reason::NotReady)
    };
    let verdicts = indices.into_iter().zip(answer.into_inner().verdicts);
    verdicts.filter(|(_, verdict)| is_judged(verdict)).collect()
}

/// The verdict on a report that was appended without a holder.
fn recorded(report: &mesh_pb::AttemptReport, result: AppendResult) -> mesh_pb::AttemptVerdict {
    let verdict = |acceptance: pb::Acceptance, event_id: String| mesh_pb::AttemptVerdict {
        acceptance: acceptance.into(),
        event_id,
        ..Default::default()
    };
    let ulid = |id: Uuid| Ulid::from(id.as_u128()).to_string();
    let is_start = matches!(report.report, Some(Report::Started(_)));
    match result {
        AppendResult::New => verdict(pb::Acceptance::Recorded, report.event_id.clone()),
        // It is unknown whether the first one was folded. DUPLICATE would let a pushed attempt run
        // that no scheduler has confirmed.
        AppendResult::Duplicate { event_id } if is_start => {
            verdict(pb::Acceptance::Recorded, ulid(event_id))
        }
        AppendResult::Duplicate { event_id } => verdict(pb::Acceptance::Duplicate, ulid(event_id)),
        AppendResult::Conflict { event_id } => mesh_pb::AttemptVerdict {
            refusal: Reason::OutcomeConflict.into(),
            message: "the attempt was reported before with a different outcome".to_owned(),
            ..verdict(pb::Acceptance::Refused, ulid(event_id))
        },
    }
}

/// Returns whether the outcome may only be recorded by the holder of its shard. That is a
/// quarantined success: the holder looks up whether an earlier good version exists. Without that,
/// everything downstream would be skipped.
fn needs_holder(report: &mesh_pb::AttemptReport) -> bool {
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
        tenant: (&report.tenant).into(),
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
            let report = mesh_pb::AttemptReport {
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
