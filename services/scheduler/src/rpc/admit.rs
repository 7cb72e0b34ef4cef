//! Admit: the stream on which a dispatcher receives ready tasks and returns claims.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{Stream, StreamExt};
use servo_mesh::Reason;
use servo_model::idempotency::IdempotencyKey;
use servo_model::{AdmissionShard, Epoch, RunId, ShardId, TenantId};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::admit_request::Message as FromDispatcher;
use servo_proto::mesh::v1::admit_response::Message as ToDispatcher;
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::Scheduler;
use super::support::verdicts::{self, refuse_claim};
use crate::shards::{
    Claim, Command, DispatcherStream, DispatcherStreamId, Enqueued, RunEvent, event_id,
};
use crate::wire;

const CLAIMS_MAX: usize = 256;
/// Batches of one dispatcher that are judged at a time.
const BATCHES_IN_FLIGHT_MAX: usize = 256;
/// Messages that wait for a dispatcher to read them. One that falls further behind is disconnected
/// by the lane, see `DispatcherStreams::send_to`; it connects again and begins with snapshots.
const MESSAGES_QUEUED_MAX: usize = 16_384;

pub(super) type Answers =
    Pin<Box<dyn Stream<Item = Result<mesh_pb::AdmitResponse, Status>> + Send>>;

pub(super) fn admit(scheduler: Scheduler, requests: Streaming<mesh_pb::AdmitRequest>) -> Answers {
    let (responses, messages) = mpsc::channel(MESSAGES_QUEUED_MAX);
    servo_actor::spawn_task("admit", read_stream(scheduler, requests, responses));
    Box::pin(ReceiverStream::new(messages).map(Ok))
}

async fn read_stream(
    scheduler: Scheduler,
    mut requests: Streaming<mesh_pb::AdmitRequest>,
    responses: mpsc::Sender<mesh_pb::AdmitResponse>,
) {
    static NEXT_STREAM_ID: AtomicU64 = AtomicU64::new(1);
    let batches = Arc::new(Semaphore::new(BATCHES_IN_FLIGHT_MAX));
    let stream: DispatcherStreamId = NEXT_STREAM_ID.fetch_add(1, Ordering::Relaxed);
    let stop = CancellationToken::new();
    while let Some(Ok(Some(mesh_pb::AdmitRequest { message }))) =
        stop.run_until_cancelled(requests.message()).await
    {
        match message {
            Some(FromDispatcher::Open(open)) => {
                let leases = open.leases.iter().filter_map(|lease| {
                    let shard = AdmissionShard::new(lease.admission_shard)?;
                    Some((shard, Epoch::new(lease.epoch)))
                });
                let stream = DispatcherStream {
                    id: stream,
                    leases: leases.collect::<BTreeMap<_, _>>(),
                    responses: responses.clone(),
                    stop: stop.clone(),
                };
                if scheduler.shards.open_stream(&stream).await.is_err() {
                    break;
                }
            }
            Some(message) => {
                // In its own task, so that the next batch need not wait for this flush. Beyond the
                // limit nothing more is read until a batch is done.
                let Ok(permit) = batches.clone().acquire_owned().await else {
                    break;
                };
                let (scheduler, responses) = (scheduler.clone(), responses.clone());
                servo_actor::spawn_task("dispatcher batch", async move {
                    handle_batch(&scheduler, stream, message, &responses).await;
                    drop(permit);
                });
            }
            None => {}
        }
    }
    scheduler.shards.close_stream(stream).await;
}

async fn handle_batch(
    scheduler: &Scheduler,
    stream: DispatcherStreamId,
    message: FromDispatcher,
    responses: &mpsc::Sender<mesh_pb::AdmitResponse>,
) {
    match message {
        FromDispatcher::Claims(batch) => {
            let results = claim(scheduler, stream, batch).await;
            let message = Some(ToDispatcher::Results(results));
            let _ = responses.send(mesh_pb::AdmitResponse { message }).await;
        }
        FromDispatcher::Enqueued(batch) => enqueued(scheduler, stream, batch).await,
        FromDispatcher::Returned(batch) => returned(scheduler, batch).await,
        FromDispatcher::Open(_) => {}
    }
}

/// Submits each claim to the shard of its run and answers when all of them are judged.
async fn claim(
    scheduler: &Scheduler,
    stream: DispatcherStreamId,
    batch: mesh_pb::ClaimBatch,
) -> mesh_pb::ClaimResults {
    let mut refused = Vec::new();
    let mut by_shard: BTreeMap<ShardId, Vec<(usize, Command)>> = BTreeMap::new();
    for (index, claim) in batch.claims.iter().enumerate() {
        match command(stream, claim) {
            Ok(command) if index < CLAIMS_MAX => by_shard
                .entry(command.run_id().shard())
                .or_default()
                .push((index, command)),
            Ok(_) => refused.push(refuse_claim(
                index,
                Reason::MessageTooLarge,
                "a batch holds at most 256 claims",
            )),
            Err((reason, why)) => refused.push(refuse_claim(index, reason, &why)),
        }
    }
    let judged = by_shard.into_iter().map(|(shard, claims)| async move {
        let (indexes, commands): (Vec<usize>, Vec<Command>) = claims.into_iter().unzip();
        (indexes, scheduler.shards.submit(shard, commands).await)
    });
    for (indexes, result) in futures::future::join_all(judged).await {
        match result {
            Ok(applied) => refused.extend(
                indexes
                    .into_iter()
                    .zip(applied)
                    .filter_map(|(index, applied)| verdicts::refused_claim(index, applied)),
            ),
            Err(error) => {
                let error = verdicts::submit_error(&error);
                refused.extend(
                    indexes
                        .into_iter()
                        .map(|index| refuse_claim(index, error.reason(), &error.to_string())),
                );
            }
        }
    }
    mesh_pb::ClaimResults {
        number: batch.number,
        refused,
    }
}

/// Records which attempts the push queue accepted. There is no answer: an attempt whose report is
/// lost appears in the next snapshot as not accepted.
async fn enqueued(
    scheduler: &Scheduler,
    stream: DispatcherStreamId,
    batch: mesh_pb::EnqueuedBatch,
) {
    let mut by_shard: BTreeMap<ShardId, Vec<Command>> = BTreeMap::new();
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
    let submissions = by_shard
        .into_iter()
        .map(|(shard, commands)| scheduler.shards.submit(shard, commands));
    for error in futures::future::join_all(submissions)
        .await
        .into_iter()
        .filter_map(Result::err)
    {
        tracing::debug!(%error, "failed to record what the push queue accepted");
    }
}

/// Records attempts that a worker returned before it began them, and attempts for which no envelope
/// can be made. There is no answer: an attempt whose report is lost expires when no worker starts
/// it.
async fn returned(scheduler: &Scheduler, batch: mesh_pb::ReturnedBatch) {
    let mut by_shard: BTreeMap<ShardId, Vec<Command>> = BTreeMap::new();
    for entry in batch.entries.into_iter().take(CLAIMS_MAX) {
        let (Ok(tenant), Ok(run_id), Ok(attempt)) = (
            entry.tenant.parse(),
            entry.run_id.parse::<RunId>(),
            entry.attempt_id.parse(),
        ) else {
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
            tenant,
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
    let submissions = by_shard
        .into_iter()
        .map(|(shard, commands)| scheduler.shards.submit(shard, commands));
    for error in futures::future::join_all(submissions)
        .await
        .into_iter()
        .filter_map(Result::err)
    {
        tracing::debug!(%error, "failed to record returned attempts");
    }
}

fn command(
    stream: DispatcherStreamId,
    claim: &mesh_pb::Claim,
) -> Result<Command, (Reason, String)> {
    let bad = |what: &str| (Reason::InvalidField, format!("{what} is malformed"));
    let tenant: TenantId = claim.tenant.parse().map_err(|_| bad("tenant"))?;
    Ok(Command::Claim(Arc::new(Claim {
        stream,
        run_id: claim.run_id.parse().map_err(|_| bad("run_id"))?,
        admission_shard: tenant.admission_shard(),
        tenant,
        task: wire::task_ref_from_proto(claim.task.ok_or_else(|| bad("task"))?),
        event_id: event_id(),
        message: claim.clone(),
    })))
}
