//! Admit: what is ready goes out, claims come in.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{Stream, StreamExt};
use servo_mesh::Reason;
use servo_model::idempotency::IdempotencyKey;
use servo_model::{RunId, TenantId};
use servo_proto::v1;
use servo_proto::v1::admit_request::Message as Said;
use servo_proto::v1::admit_response::Message as Told;
use servo_proto::v1::event::Body;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, Streaming};

use super::Scheduler;
use crate::core::Verdict;
use crate::route;
use crate::shards::{Ask, Claim, Done, DoneAs, Enqueued, Gate, GateId, RunEvent, event_id};
use crate::wire;

const CLAIMS_MAX: usize = 256;

pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<v1::AdmitResponse, Status>> + Send>>;

pub(super) fn admit(scheduler: Scheduler, said: Streaming<v1::AdmitRequest>) -> Answers {
    let (outbox, told) = mpsc::unbounded_channel();
    tokio::spawn(listen(scheduler, said, outbox));
    Box::pin(UnboundedReceiverStream::new(told).map(Ok))
}

async fn listen(
    scheduler: Scheduler,
    mut said: Streaming<v1::AdmitRequest>,
    outbox: mpsc::UnboundedSender<v1::AdmitResponse>,
) {
    static GATES: AtomicU64 = AtomicU64::new(1);
    let gate: GateId = GATES.fetch_add(1, Ordering::Relaxed);
    while let Ok(Some(v1::AdmitRequest { message })) = said.message().await {
        match message {
            Some(Said::Open(open)) => {
                let leases = open.leases.iter().filter_map(|lease| {
                    Some((i16::try_from(lease.admission_shard).ok()?, lease.epoch))
                });
                let gate = Gate {
                    id: gate,
                    leases: leases.collect::<BTreeMap<_, _>>(),
                    outbox: outbox.clone(),
                };
                if scheduler.shards.open_gate(&gate).is_err() {
                    break;
                }
            }
            Some(Said::Claims(batch)) => {
                // Batches are judged side by side: the next need not wait for this one's disk.
                let (scheduler, outbox) = (scheduler.clone(), outbox.clone());
                tokio::spawn(async move {
                    let results = claim(&scheduler, gate, batch).await;
                    let _ = outbox.send(v1::AdmitResponse {
                        message: Some(Told::Results(results)),
                    });
                });
            }
            Some(Said::Enqueued(batch)) => {
                let scheduler = scheduler.clone();
                tokio::spawn(async move { enqueued(&scheduler, gate, batch).await });
            }
            Some(Said::Returned(batch)) => {
                let scheduler = scheduler.clone();
                tokio::spawn(async move { returned(&scheduler, batch).await });
            }
            None => {}
        }
    }
    scheduler.shards.close_gate(gate);
}

/// Each claim goes to the shard of its run; the answer waits for all of them.
async fn claim(scheduler: &Scheduler, gate: GateId, batch: v1::ClaimBatch) -> v1::ClaimResults {
    let mut refused = Vec::new();
    let mut by_shard: BTreeMap<i16, Vec<(usize, Ask)>> = BTreeMap::new();
    for (index, claim) in batch.claims.iter().enumerate() {
        match ask(gate, claim) {
            Ok(ask) if index < CLAIMS_MAX => by_shard
                .entry(ask.run_id().shard())
                .or_default()
                .push((index, ask)),
            Ok(_) => refused.push(refuse(
                index,
                Reason::MessageTooLarge,
                "a batch holds at most 256 claims",
            )),
            Err((reason, why)) => refused.push(refuse(index, reason, &why)),
        }
    }
    let judged = by_shard.into_iter().map(|(shard, claims)| async move {
        let (indexes, asks): (Vec<usize>, Vec<Ask>) = claims.into_iter().unzip();
        let done = scheduler.shards.submit(shard, asks).await;
        (indexes, done)
    });
    for (indexes, done) in futures::future::join_all(judged).await {
        match done {
            Ok(done) => refused.extend(
                indexes
                    .into_iter()
                    .zip(done)
                    .filter_map(|(index, done)| verdict(index, done)),
            ),
            Err(error) => {
                let told = route::not_done(&error);
                refused.extend(
                    indexes
                        .into_iter()
                        .map(|index| refuse(index, told.reason(), &told.to_string())),
                );
            }
        }
    }
    v1::ClaimResults {
        number: batch.number,
        refused,
    }
}

/// Nobody waits for an answer: what does not count, or is lost, the next snapshot shows as waiting still.
async fn enqueued(scheduler: &Scheduler, gate: GateId, batch: v1::EnqueuedBatch) {
    let mut by_shard: BTreeMap<i16, Vec<Ask>> = BTreeMap::new();
    for entry in batch.entries.into_iter().take(CLAIMS_MAX) {
        let (Ok(run_id), Some(task)) = (entry.run_id.parse::<RunId>(), entry.task) else {
            continue;
        };
        let task = wire::slot(task);
        let enqueued = Enqueued {
            gate,
            run_id,
            task,
            event_id: event_id(),
            entry,
        };
        by_shard
            .entry(run_id.shard())
            .or_default()
            .push(Ask::Enqueued(Arc::new(enqueued)));
    }
    let told = by_shard
        .into_iter()
        .map(|(shard, asks)| scheduler.shards.submit(shard, asks));
    for error in futures::future::join_all(told)
        .await
        .into_iter()
        .filter_map(Result::err)
    {
        tracing::debug!(%error, "what a queue took could not be noted");
    }
}

/// What a worker gave back was interrupted before it began; what no envelope can be made for has failed. Nobody waits for an
/// answer: what is lost is free again when nobody starts it in time.
async fn returned(scheduler: &Scheduler, batch: v1::ReturnedBatch) {
    let mut by_shard: BTreeMap<i16, Vec<Ask>> = BTreeMap::new();
    for entry in batch.entries.into_iter().take(CLAIMS_MAX) {
        let (Ok(run_id), Ok(attempt)) = (entry.run_id.parse::<RunId>(), entry.attempt_id.parse())
        else {
            continue;
        };
        let finished = v1::TaskFinished {
            run_id: entry.run_id,
            task: entry.task,
            attempt_id: entry.attempt_id,
            worker_id: entry.worker_id,
            outcome: match entry.error {
                Some(_) => v1::Outcome::Failed.into(),
                None => v1::Outcome::Interrupted.into(),
            },
            error: entry.error,
            ..v1::TaskFinished::default()
        };
        let event = RunEvent {
            tenant: entry.tenant,
            run_id,
            event_id: event_id(),
            idempotency_key: IdempotencyKey::task_finished(&attempt).to_string(),
            body: Body::TaskFinished(finished),
            trace: None,
        };
        by_shard
            .entry(run_id.shard())
            .or_default()
            .push(Ask::Event(Arc::new(event)));
    }
    let told = by_shard
        .into_iter()
        .map(|(shard, asks)| scheduler.shards.submit(shard, asks));
    for error in futures::future::join_all(told)
        .await
        .into_iter()
        .filter_map(Result::err)
    {
        tracing::debug!(%error, "what a worker gave back could not be noted");
    }
}

fn ask(gate: GateId, claim: &v1::Claim) -> Result<Ask, (Reason, String)> {
    let bad = |what: &str| (Reason::InvalidField, format!("{what} is malformed"));
    let tenant: TenantId = claim.tenant.parse().map_err(|_| bad("tenant"))?;
    Ok(Ask::Claim(Arc::new(Claim {
        gate,
        run_id: claim.run_id.parse().map_err(|_| bad("run_id"))?,
        admission_shard: tenant.admission_shard(),
        task: wire::slot(claim.task.ok_or_else(|| bad("task"))?),
        event_id: event_id(),
        claim: claim.clone(),
    })))
}

fn verdict(index: usize, done: Done) -> Option<v1::RefusedClaim> {
    match done.verdict {
        DoneAs::Core(Verdict::Folded | Verdict::Duplicate | Verdict::Late) => None,
        DoneAs::Core(Verdict::Refused(refusal)) => {
            Some(refuse(index, route::reason(&refusal), &refusal.to_string()))
        }
        DoneAs::StaleAdmission => Some(refuse(
            index,
            Reason::NotHolder,
            "another dispatcher admits for this tenant now",
        )),
        DoneAs::SetAside => Some(refuse(index, Reason::InvalidState, route::SET_ASIDE)),
        DoneAs::RunUnknown => Some(refuse(index, Reason::RunNotFound, "the run is not known")),
        other => Some(refuse(
            index,
            Reason::Internal,
            &format!("the shard answered {other:?}"),
        )),
    }
}

fn refuse(index: usize, reason: Reason, message: &str) -> v1::RefusedClaim {
    v1::RefusedClaim {
        index: index as u32,
        reason: reason.into(),
        message: message.to_owned(),
    }
}
