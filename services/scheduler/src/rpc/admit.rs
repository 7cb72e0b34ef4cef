//! Admit: what is ready goes out, claims come in.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{Stream, StreamExt};
use servo_mesh::Reason;
use servo_model::idempotency::IdempotencyKey;
use servo_model::{RunId, TenantId};
use servo_proto::v1 as pb;
use servo_proto::v1::admit_request::Message as DispatcherMessage;
use servo_proto::v1::admit_response::Message as SchedulerMessage;
use servo_proto::v1::event::Body;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, Streaming};

use super::Scheduler;
use crate::core::Verdict;
use crate::route;
use crate::shards::{
    Applied, Claim, Command, CommandOutcome, DispatcherStream, DispatcherStreamId, Enqueued,
    RunEvent, event_id,
};
use crate::wire;

const CLAIMS_MAX: usize = 256;

pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<pb::AdmitResponse, Status>> + Send>>;

pub(super) fn admit(scheduler: Scheduler, requests: Streaming<pb::AdmitRequest>) -> Answers {
    let (outbox, message) = mpsc::unbounded_channel();
    tokio::spawn(listen(scheduler, requests, outbox));
    Box::pin(UnboundedReceiverStream::new(message).map(Ok))
}

async fn listen(
    scheduler: Scheduler,
    mut requests: Streaming<pb::AdmitRequest>,
    outbox: mpsc::UnboundedSender<pb::AdmitResponse>,
) {
    static NEXT_STREAM_ID: AtomicU64 = AtomicU64::new(1);
    let stream: DispatcherStreamId = NEXT_STREAM_ID.fetch_add(1, Ordering::Relaxed);
    while let Ok(Some(pb::AdmitRequest { message })) = requests.message().await {
        match message {
            Some(DispatcherMessage::Open(open)) => {
                let leases = open.leases.iter().filter_map(|lease| {
                    Some((i16::try_from(lease.admission_shard).ok()?, lease.epoch))
                });
                let stream = DispatcherStream {
                    id: stream,
                    leases: leases.collect::<BTreeMap<_, _>>(),
                    outbox: outbox.clone(),
                };
                if scheduler.shards.open_stream(&stream).is_err() {
                    break;
                }
            }
            Some(DispatcherMessage::Claims(batch)) => {
                // Batches are judged side by side: the next need not wait for this one's disk.
                let (scheduler, outbox) = (scheduler.clone(), outbox.clone());
                tokio::spawn(async move {
                    let results = claim(&scheduler, stream, batch).await;
                    let _ = outbox.send(pb::AdmitResponse {
                        message: Some(SchedulerMessage::Results(results)),
                    });
                });
            }
            Some(DispatcherMessage::Enqueued(batch)) => {
                let scheduler = scheduler.clone();
                tokio::spawn(async move { enqueued(&scheduler, stream, batch).await });
            }
            Some(DispatcherMessage::Returned(batch)) => {
                let scheduler = scheduler.clone();
                tokio::spawn(async move { returned(&scheduler, batch).await });
            }
            None => {}
        }
    }
    scheduler.shards.close_stream(stream);
}

/// Each claim goes to the shard of its run; the answer waits for all of them.
async fn claim(
    scheduler: &Scheduler,
    stream: DispatcherStreamId,
    batch: pb::ClaimBatch,
) -> pb::ClaimResults {
    let mut refused = Vec::new();
    let mut by_shard: BTreeMap<i16, Vec<(usize, Command)>> = BTreeMap::new();
    for (index, claim) in batch.claims.iter().enumerate() {
        match command(stream, claim) {
            Ok(command) if index < CLAIMS_MAX => by_shard
                .entry(command.run_id().shard())
                .or_default()
                .push((index, command)),
            Ok(_) => refused.push(refuse(
                index,
                Reason::MessageTooLarge,
                "a batch holds at most 256 claims",
            )),
            Err((reason, why)) => refused.push(refuse(index, reason, &why)),
        }
    }
    let judged = by_shard.into_iter().map(|(shard, claims)| async move {
        let (indexes, commands): (Vec<usize>, Vec<Command>) = claims.into_iter().unzip();
        let done = scheduler.shards.submit(shard, commands).await;
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
                let message = route::submit_error(&error);
                refused.extend(
                    indexes
                        .into_iter()
                        .map(|index| refuse(index, message.reason(), &message.to_string())),
                );
            }
        }
    }
    pb::ClaimResults {
        number: batch.number,
        refused,
    }
}

/// Nobody waits for an answer: what does not count, or is lost, the next snapshot shows as waiting still.
async fn enqueued(scheduler: &Scheduler, stream: DispatcherStreamId, batch: pb::EnqueuedBatch) {
    let mut by_shard: BTreeMap<i16, Vec<Command>> = BTreeMap::new();
    for entry in batch.entries.into_iter().take(CLAIMS_MAX) {
        let (Ok(run_id), Some(task)) = (entry.run_id.parse::<RunId>(), entry.task) else {
            continue;
        };
        let task = wire::task_ref_from_proto(task);
        let enqueued = Enqueued {
            stream,
            run_id,
            task,
            event_id: event_id(),
            entry,
        };
        by_shard
            .entry(run_id.shard())
            .or_default()
            .push(Command::Enqueued(Arc::new(enqueued)));
    }
    let message = by_shard
        .into_iter()
        .map(|(shard, commands)| scheduler.shards.submit(shard, commands));
    for error in futures::future::join_all(message)
        .await
        .into_iter()
        .filter_map(Result::err)
    {
        tracing::debug!(%error, "what a queue took could not be noted");
    }
}

/// What a worker gave back was interrupted before it began; what no envelope can be made for has failed. Nobody waits for an
/// answer: what is lost is free again when nobody starts it in time.
async fn returned(scheduler: &Scheduler, batch: pb::ReturnedBatch) {
    let mut by_shard: BTreeMap<i16, Vec<Command>> = BTreeMap::new();
    for entry in batch.entries.into_iter().take(CLAIMS_MAX) {
        let (Ok(run_id), Ok(attempt)) = (entry.run_id.parse::<RunId>(), entry.attempt_id.parse())
        else {
            continue;
        };
        let finished = pb::TaskFinished {
            run_id: entry.run_id,
            task: entry.task,
            attempt_id: entry.attempt_id,
            worker_id: entry.worker_id,
            outcome: match entry.error {
                Some(_) => pb::Outcome::Failed.into(),
                None => pb::Outcome::Interrupted.into(),
            },
            error: entry.error,
            ..pb::TaskFinished::default()
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
            .push(Command::Event(Arc::new(event)));
    }
    let message = by_shard
        .into_iter()
        .map(|(shard, commands)| scheduler.shards.submit(shard, commands));
    for error in futures::future::join_all(message)
        .await
        .into_iter()
        .filter_map(Result::err)
    {
        tracing::debug!(%error, "what a worker gave back could not be noted");
    }
}

fn command(stream: DispatcherStreamId, claim: &pb::Claim) -> Result<Command, (Reason, String)> {
    let bad = |what: &str| (Reason::InvalidField, format!("{what} is malformed"));
    let tenant: TenantId = claim.tenant.parse().map_err(|_| bad("tenant"))?;
    Ok(Command::Claim(Arc::new(Claim {
        stream,
        run_id: claim.run_id.parse().map_err(|_| bad("run_id"))?,
        admission_shard: tenant.admission_shard(),
        task: wire::task_ref_from_proto(claim.task.ok_or_else(|| bad("task"))?),
        event_id: event_id(),
        claim: claim.clone(),
    })))
}

fn verdict(index: usize, done: Applied) -> Option<pb::RefusedClaim> {
    match done.outcome {
        CommandOutcome::Fold(Verdict::Folded | Verdict::Duplicate | Verdict::Late) => None,
        CommandOutcome::Fold(Verdict::Refused(refusal)) => {
            Some(refuse(index, route::reason(&refusal), &refusal.to_string()))
        }
        CommandOutcome::StaleAdmission => Some(refuse(
            index,
            Reason::NotHolder,
            "another dispatcher admits for this tenant now",
        )),
        CommandOutcome::SetAside => Some(refuse(index, Reason::InvalidState, route::SET_ASIDE)),
        CommandOutcome::RunUnknown => {
            Some(refuse(index, Reason::RunNotFound, "the run is not known"))
        }
        other => Some(refuse(
            index,
            Reason::Internal,
            &format!("the shard answered {other:?}"),
        )),
    }
}

fn refuse(index: usize, reason: Reason, message: &str) -> pb::RefusedClaim {
    pb::RefusedClaim {
        index: index as u32,
        reason: reason.into(),
        message: message.to_owned(),
    }
}
