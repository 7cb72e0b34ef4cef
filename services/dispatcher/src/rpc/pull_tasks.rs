//! PullTasks: the stream on which a worker receives its envelopes.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use prost::Message as _;
use servo_mesh::{Caller, Error, Reason};
use servo_model::{AttemptId, TenantScope, WorkerId};
use servo_proto::v1::PullReturn;
use servo_proto::v1::pull_tasks_request::Message as FromWorker;
use servo_proto::{proto_time, v1 as pb};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::BoxStream;
use tonic::{Status, Streaming};
use tracing::info;

use super::Dispatcher;
use super::support::forward::{holds, not_holder};
use super::support::parse::{parse_worker_id, worker_tenant};
use super::support::workspaces::check_workspaces;
use crate::core::WorkerKey;
use crate::engine::{Message, RESPONSES_QUEUED_MAX, WorkerConnection};
use crate::store::{self, WorkerRow};
use crate::wire;
use servo_service::errors;

/// Credits that one message may grant.
const CREDITS_MAX: u32 = 10_000;

pub(super) async fn pull_tasks(
    dispatcher: &Dispatcher,
    caller: &Caller,
    mut requests: Streaming<pb::PullTasksRequest>,
) -> Result<BoxStream<pb::PullTasksResponse>, Status> {
    let first = requests.message().await?;
    let (request, open) = opening(first)?;
    let worker = parse_worker_id(&request.worker_id)?;
    let tenant = worker_tenant(dispatcher, &request.tenant)?;
    if let Some(tenant) = tenant.tenant().filter(|tenant| !holds(dispatcher, tenant)) {
        return Err(not_holder(dispatcher, tenant).await.into());
    }
    let row = registered_worker(dispatcher, &tenant, worker, &open.session).await?;
    let info = pulling_worker(worker, &row)?;
    check_workspaces(caller, &info)?;
    let described = wire::worker(
        worker,
        &open.session,
        tenant.clone(),
        &info,
        open.credits.min(CREDITS_MAX),
    )
    .map_err(|bad| Error::bad_field(bad.field, bad.fault))?;
    let key = described.key();
    let (responses, received) = mpsc::channel(RESPONSES_QUEUED_MAX);
    let number = dispatcher.connections.fetch_add(1, Ordering::Relaxed);
    dispatcher
        .engine
        .send(Message::WorkerConnected(WorkerConnection {
            worker: described,
            key: dispatcher.signer.worker_key(&tenant, worker, &open.session),
            number,
            attempts: attempts(&open.attempt_ids)?,
            responses,
            last_seen: servo_mesh::now(),
        }))
        .await;
    if row.command != 0 {
        let drain = pb::PullDrain {
            deadline: row.cut_off_at.map(proto_time),
            kill: false,
        };
        let drain = Message::DrainWorker(key.clone(), drain);
        dispatcher.engine.send(drain).await;
    }
    let reader = WorkerRequests {
        dispatcher: dispatcher.clone(),
        worker: key,
        connection: number,
        tenant,
        session: open.session,
    };
    servo_actor::spawn_task("worker requests", reader.run(requests));
    Ok(Box::pin(ReceiverStream::new(received).map(Ok)))
}

/// Returns the description of a registered worker, unless it is pushed to.
fn pulling_worker(worker: WorkerId, row: &WorkerRow) -> Result<pb::WorkerInfo, Error> {
    let info = pb::WorkerInfo::decode(&*row.info).map_err(|error| {
        Error::new(
            Reason::Internal,
            format!("the worker's row cannot be decoded: {error}"),
        )
    })?;
    if info.push_url.is_empty() {
        return Ok(info);
    }
    let message =
        format!("worker {worker} is registered for pushes; register it without push_url to pull");
    Err(Error::new(Reason::InvalidState, message))
}

async fn registered_worker(
    dispatcher: &Dispatcher,
    tenant: &TenantScope,
    worker: WorkerId,
    session: &str,
) -> Result<WorkerRow, Error> {
    let mut tx = dispatcher
        .store
        .requests()
        .begin_in(tenant)
        .await
        .map_err(errors::store)?;
    let row = store::find_worker(&mut tx, tenant, worker)
        .await
        .map_err(errors::store)?;
    let row = row.filter(|row| row.session == session).ok_or_else(|| {
        let message = format!(
            "worker {worker} with this session is not registered; call RegisterWorker first"
        );
        Error::new(Reason::WorkerNotFound, message)
    })?;
    if row.command == pb::WorkerCommand::Kill as i16 {
        let message =
            format!("worker {worker} was killed; register it with a new session to use it again");
        return Err(Error::new(Reason::InvalidState, message));
    }
    Ok(row)
}

fn opening(
    first: Option<pb::PullTasksRequest>,
) -> Result<(pb::PullTasksRequest, pb::PullOpen), Error> {
    let absent = || Error::bad_field("open", "must be the first message of the stream");
    let mut request = first.ok_or_else(absent)?;
    match request.message.take() {
        Some(FromWorker::Open(open)) => Ok((request, open)),
        _ => Err(absent()),
    }
}

fn attempts(ids: &[String]) -> Result<BTreeSet<AttemptId>, Error> {
    let parse = |id: &String| {
        id.parse()
            .map_err(|error: servo_model::ids::IdError| error.to_string())
    };
    ids.iter()
        .map(parse)
        .collect::<Result<_, _>>()
        .map_err(|fault| Error::bad_field("attempt_ids", fault))
}

/// Reads the requests that follow the opening one.
struct WorkerRequests {
    dispatcher: Dispatcher,
    worker: WorkerKey,
    connection: u64,
    tenant: TenantScope,
    session: String,
}

impl WorkerRequests {
    async fn run(self, mut requests: Streaming<pb::PullTasksRequest>) {
        let engine = &self.dispatcher.engine;
        let mut left = false;
        while let Ok(Some(request)) = requests.message().await {
            match request.message {
                Some(FromWorker::Credits(credits)) => {
                    let more = credits.count.min(CREDITS_MAX);
                    let worker = self.worker.clone();
                    let granted = Message::CreditsGranted(worker, self.connection, more);
                    engine.send(granted).await;
                }
                Some(FromWorker::Returned(returned)) => {
                    let PullReturn {
                        attempt_ids,
                        comment,
                    } = returned;
                    info!(worker = %self.worker.id, attempts = ?attempt_ids, comment, "worker returned envelopes");
                    // Ids that cannot be parsed belong to no attempt.
                    let attempts = attempt_ids
                        .iter()
                        .filter_map(|id| id.parse().ok())
                        .collect();
                    let returned = Message::AttemptsReturned(self.worker.clone(), attempts);
                    engine.send(returned).await;
                }
                Some(FromWorker::Leave(_)) => {
                    left = true;
                    let drain = pb::PullDrain::default();
                    let drain = Message::DrainWorker(self.worker.clone(), drain);
                    engine.send(drain).await;
                }
                Some(FromWorker::Open(_)) | None => break,
            }
        }
        let disconnected = Message::WorkerDisconnected(self.worker.clone(), self.connection);
        engine.send(disconnected).await;
        if left && let Err(error) = self.record_leave().await {
            info!(worker = %self.worker.id, %error, "failed to record that a worker left; it will be marked as lost");
        }
    }

    async fn record_leave(&self) -> Result<(), servo_store::StoreError> {
        let mut tx = self
            .dispatcher
            .store
            .requests()
            .begin_in(&self.tenant)
            .await?;
        store::worker_gone(&mut tx, &self.tenant, self.worker.id, &self.session).await?;
        tx.commit().await
    }
}
