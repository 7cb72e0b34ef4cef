//! PullTasks: the stream on which a worker gets its envelopes.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use prost::Message as _;
use servo_mesh::{Error, Reason};
use servo_model::{AttemptId, WorkerId};
use servo_proto::v1 as pb;
use servo_proto::v1::PullReturn;
use servo_proto::v1::pull_tasks_request::Message as Say;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::codegen::BoxStream;
use tonic::{Status, Streaming};
use tracing::info;

use super::{Dispatcher, unavailable, worker_of};
use crate::core::WorkerKey;
use crate::loops::engine::Message;
use crate::loops::sessions::Connect;
use crate::store::{self, WorkerRow};
use crate::wire;

/// Credits that one message may grant.
const CREDITS_MAX: u32 = 10_000;

impl Dispatcher {
    pub(super) async fn pull(
        &self,
        mut requests: Streaming<pb::PullTasksRequest>,
    ) -> Result<BoxStream<pb::PullTasksResponse>, Status> {
        let first = requests.message().await?;
        let (request, open) = opening(first)?;
        let worker = worker_of(&request.worker_id)?;
        let tenant = self.scope(&request.tenant)?;
        if let Some(tenant) = tenant.as_ref().filter(|tenant| !self.holds(tenant)) {
            return Err(self.not_holder(tenant).await.into());
        }
        let row = self
            .registered(&request.tenant, worker, &open.session)
            .await?;
        let info = pb::WorkerInfo::decode(&*row.info).map_err(|error| {
            Error::new(Reason::Internal, format!("the registry's entry: {error}"))
        })?;
        if !info.push_url.is_empty() {
            let message = format!(
                "worker {worker} is registered for pushes; register it without push_url to pull"
            );
            return Err(Error::new(Reason::InvalidState, message).into());
        }
        let described = wire::worker(
            worker,
            &open.session,
            tenant,
            &info,
            open.credits.min(CREDITS_MAX),
        )
        .map_err(|bad| Error::bad_field(bad.field, bad.fault))?;
        let key = described.key();
        let (out, responses) = mpsc::unbounded_channel();
        let connection = self.connections.fetch_add(1, Ordering::Relaxed);
        self.engine.tell(Message::Connect(Connect {
            worker: described,
            key: self
                .signer
                .worker_key(&request.tenant, worker, &open.session),
            connection,
            has: attempts(&open.attempt_ids)?,
            out,
            heard: wire::now(),
        }));
        if row.command != 0 {
            let deadline = row.cut_off_at.map(wire::stored_time);
            let drain = pb::PullDrain {
                deadline,
                kill: false,
            };
            self.engine.tell(Message::Drain(key.clone(), drain));
        }
        let reading = Reading {
            dispatcher: self.clone(),
            worker: key,
            connection,
            tenant: request.tenant,
            session: open.session,
        };
        tokio::spawn(reading.run(requests));
        Ok(Box::pin(UnboundedReceiverStream::new(responses).map(Ok)))
    }

    async fn registered(
        &self,
        tenant: &str,
        worker: WorkerId,
        session: &str,
    ) -> Result<WorkerRow, Error> {
        let mut tx = self
            .store
            .requests()
            .begin(tenant)
            .await
            .map_err(unavailable)?;
        let row = store::find_worker(&mut tx, tenant, worker)
            .await
            .map_err(unavailable)?;
        let row = row.filter(|row| row.session == session).ok_or_else(|| {
            let message = format!(
                "worker {worker} with this session is not registered; call RegisterWorker first"
            );
            Error::new(Reason::WorkerNotFound, message)
        })?;
        if row.command == pb::WorkerCommand::Kill as i16 {
            let message = format!(
                "worker {worker} was told to leave; register it under a new session to use it again"
            );
            return Err(Error::new(Reason::InvalidState, message));
        }
        Ok(row)
    }
}

fn opening(
    first: Option<pb::PullTasksRequest>,
) -> Result<(pb::PullTasksRequest, pb::PullOpen), Error> {
    let absent = || Error::bad_field("open", "must be the first message of the stream");
    let mut request = first.ok_or_else(absent)?;
    match request.message.take() {
        Some(Say::Open(open)) => Ok((request, open)),
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

/// What a worker goes on to say.
struct Reading {
    dispatcher: Dispatcher,
    worker: WorkerKey,
    connection: u64,
    tenant: String,
    session: String,
}

impl Reading {
    async fn run(self, mut requests: Streaming<pb::PullTasksRequest>) {
        let engine = &self.dispatcher.engine;
        let mut left = false;
        while let Ok(Some(request)) = requests.message().await {
            match request.message {
                Some(Say::Credits(credits)) => {
                    let more = credits.count.min(CREDITS_MAX);
                    engine.tell(Message::Credits(self.worker.clone(), self.connection, more));
                }
                Some(Say::Returned(returned)) => {
                    let PullReturn {
                        attempt_ids,
                        comment,
                    } = returned;
                    info!(worker = %self.worker.id, attempts = ?attempt_ids, comment, "a worker returned envelopes");
                    // What is no attempt's id is nobody's attempt.
                    let attempts = attempt_ids
                        .iter()
                        .filter_map(|id| id.parse().ok())
                        .collect();
                    engine.tell(Message::Returned(self.worker.clone(), attempts));
                }
                Some(Say::Leave(_)) => {
                    left = true;
                    let drain = pb::PullDrain::default();
                    engine.tell(Message::Drain(self.worker.clone(), drain));
                }
                Some(Say::Open(_)) | None => break,
            }
        }
        engine.tell(Message::Disconnected(self.worker.clone(), self.connection));
        if left && let Err(error) = self.note_gone().await {
            info!(worker = %self.worker.id, %error, "a worker left; the registry will find it lost");
        }
    }

    async fn note_gone(&self) -> Result<(), servo_store::StoreError> {
        let mut tx = self.dispatcher.store.requests().begin(&self.tenant).await?;
        store::worker_gone(&mut tx, &self.tenant, self.worker.id, &self.session).await?;
        tx.commit().await
    }
}
