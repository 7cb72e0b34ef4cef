//! The engine: the one actor that owns admission and everything between admission and workers.
//!
//! A message travels like this. A scheduler sends snapshots and updates of its shards on the stream
//! that `loops/scheduler_streams.rs` keeps open ([`scheduler_stream`]). The reader of that
//! stream decodes each message and sends it to the engine's inbox. The engine applies it to
//! [`Admission`], which queues each ready task by its demand and marks its tenant. The demand is in
//! the run's plan, so tasks of a plan that is not in memory wait until it is loaded ([`plans`]);
//! schedulers announce new plans early to keep that short. After each batch of messages the engine
//! chooses tasks in fair order ([`claims`]) and sends a claim for each of them back on the stream
//! of the scheduler that holds the run's shard.
//!
//! No worker sees anything yet, because a claim counts only when the scheduler has folded it into
//! the run: the dispatcher stores nothing, so it could not prove after a crash that it had given
//! the attempt to a worker, and a second dispatcher could give it away again. The scheduler is the
//! single writer of a run. It refuses a claim whose task is no longer ready, whose attempt number
//! is not the offered one (ADR 13), whose admission epoch is no longer the newest, or that came on
//! an older stream, and its answer orders the claims of all dispatchers (ADR 7).
//!
//! When the scheduler accepts a claim, admission emits [`Effect::Deliver`], and [`deliver`] builds
//! the envelope. That takes the run's plan, which is read again if the cache has evicted it, and
//! the versions of the partitions that the task reads ([`input_reader`]). Both are read from
//! Postgres outside this actor and come back as messages; the versions are usually read while the
//! scheduler decides about the claim. The signed envelope then leaves on the worker's stream
//! ([`worker_streams`]) or, for a worker that is pushed to, through the queue ([`push_queue`]).
//!
//! An envelope that is lost on its way leaves its attempt without a start. The scheduler ends such
//! an attempt at its start deadline (`timeouts.dispatch_ack` of the asset, by default
//! `DISPATCH_ACK_TIMEOUT`), and the task becomes ready again.
//!
//! The engine never waits for I/O. Requests that queue up while it works are taken as one batch.

mod claims;
mod deliver;
mod input_reader;
mod plans;
mod push_queue;
mod push_workers;
mod redirects;
mod returns;
mod scheduler_stream;
#[cfg(test)]
pub(crate) mod tests;
mod worker_streams;

pub(crate) use input_reader::InputReader;
pub(crate) use plans::Plans;
pub(crate) use push_queue::{PushEndpoint, PushQueue, QueueEntry, queue_names, queue_of};
pub(crate) use push_workers::PushWorker;
pub(crate) use redirects::Redirects;
pub(crate) use scheduler_stream::SchedulerStream;
pub(crate) use worker_streams::{RESPONSES_QUEUED_MAX, WorkerConnection, WorkerStreams};

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use servo_mesh::{Error, Reason};
use servo_model::{AdmissionShard, AttemptId, DispatchId, Epoch, ShardId, TenantId, Timestamp};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::admit_request::Message as ToScheduler;
use servo_proto::v1 as pb;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::redirects::RedirectedWorker;
use crate::core::{
    Admission, Limits, LiveAttempt, Pause, PlanRef, SchedulerStreamId, Snapshot, Update, WorkerKey,
};
use crate::envelope::Signer;
use crate::inputs::EnvelopeInputs;
use crate::metrics::Metrics;
use crate::stored_plan::StoredPlan;

/// Messages that are handled as one batch before the engine chooses tasks.
const MESSAGES_PER_TURN_MAX: usize = 1024;

/// Messages that wait for the engine. Senders beyond that wait.
const INBOX_MAX: usize = 16_384;
/// Messages that wait for a scheduler to read them, see [`SchedulerConnection::send`].
pub(crate) const REQUESTS_QUEUED_MAX: usize = 4_096;

/// How long a handover waits for the answers to its claims. A scheduler answers within one flush;
/// one that does not is not waited for.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) enum Message {
    /// The admission shards that this instance holds now, with their epochs.
    HeldShards(BTreeMap<AdmissionShard, Epoch>),
    /// These shards are about to be released. Replies once every claim for them is answered and
    /// every envelope is sent.
    HandOver(Vec<AdmissionShard>, oneshot::Sender<()>),
    Limits(Limits),
    Pauses(Vec<Pause>),
    Scheduler(SchedulerStreamId, StreamMessage),
    /// A plan was loaded; `None` when loading failed and must be retried.
    PlanLoaded(PlanRef, Option<Arc<StoredPlan>>),
    InputsResolved(Vec<(AttemptId, EnvelopeInputs)>),
    WorkerConnected(WorkerConnection),
    /// Worker, connection number and additional credits.
    CreditsGranted(WorkerKey, u64, u32),
    DrainWorker(WorkerKey, pb::PullDrain),
    /// Attempts that the worker did not start and gives back.
    AttemptsReturned(WorkerKey, Vec<AttemptId>),
    /// The envelope cannot be built, for this reason.
    Undeliverable(AttemptId, String),
    WorkerDisconnected(WorkerKey, u64),
    /// All workers that receive pushes, including those of tenants that are admitted elsewhere.
    PushWorkers(Vec<PushWorker>),
    /// Envelopes that the queue has stored.
    Enqueued(Vec<QueueEntry>),
    /// Sends keepalives to workers and evicts lookups of ended attempts.
    Tick,
    Query(Query),
}

type Query = Box<dyn FnOnce(&Admission, &WorkerStreams) + Send>;

/// A message from a scheduler's stream, or a change of the stream itself.
pub(crate) enum StreamMessage {
    /// The stream was opened for these admission shards.
    Opened(Vec<AdmissionShard>, SchedulerConnection),
    Snapshot(Snapshot),
    Update(Update),
    /// Number of a batch of claims and the indexes of the refused ones.
    ClaimResults(u64, BTreeSet<u32>),
    /// An announcement: plans whose runs are about to be stored and then sent.
    PlansAnnounced(Vec<PlanRef>),
    /// The scheduler no longer holds this shard.
    ShardGone(ShardId),
    /// Send no more claims on the stream, and stop it once all claims are answered.
    Retire,
    Closed,
}

/// The sending side of a stream to a scheduler.
pub(crate) struct SchedulerConnection {
    pub(crate) requests: mpsc::Sender<mesh_pb::AdmitRequest>,
    pub(crate) stop: CancellationToken,
}

impl SchedulerConnection {
    /// Sends without waiting, because the engine never waits. A scheduler that does not read for
    /// [`REQUESTS_QUEUED_MAX`] messages is disconnected; the stream is opened again and begins with
    /// snapshots, which repair whatever was not sent.
    pub(crate) fn send(&self, message: ToScheduler) {
        let request = mesh_pb::AdmitRequest {
            message: Some(message),
        };
        if let Err(mpsc::error::TrySendError::Full(_)) = self.requests.try_send(request) {
            warn!("a scheduler does not read its stream; opening it again");
            self.stop.cancel();
        }
    }
}

/// The handle to the engine. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Engine {
    inbox: mpsc::Sender<Message>,
    held: watch::Receiver<BTreeMap<AdmissionShard, Epoch>>,
}

impl Engine {
    /// Queues a message. While the inbox is full the caller waits, which slows down the stream or
    /// loop that it serves; the engine itself never waits for them.
    pub(crate) async fn send(&self, message: Message) {
        // The engine runs until the process exits, so a failed send needs no handling.
        let _ = self.inbox.send(message).await;
    }

    /// Runs a read-only query on the engine's memory.
    pub(crate) async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Admission, &WorkerStreams) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let query: Query = Box::new(move |admission, worker_streams| {
            let _ = reply.send(query(admission, worker_streams));
        });
        self.send(Message::Query(query)).await;
        answer
            .await
            .map_err(|_| Error::new(Reason::NotReady, "the dispatcher is shutting down; retry"))
    }

    /// Stops choosing tasks for these shards and returns when every claim for them has been
    /// delivered. The next holder learns from the schedulers only that claims exist, so an envelope
    /// that was never sent would leave its task waiting until its start deadline.
    pub(crate) async fn hand_over(&self, shards: Vec<AdmissionShard>) {
        let (done, handed_over) = oneshot::channel();
        self.send(Message::HandOver(shards, done)).await;
        let _ = tokio::time::timeout(HANDOVER_TIMEOUT, handed_over).await;
    }

    /// The admission shards held here, with their epochs.
    pub(crate) fn held(&self) -> watch::Receiver<BTreeMap<AdmissionShard, Epoch>> {
        self.held.clone()
    }
}

pub(crate) struct EngineActor {
    inbox: mpsc::Receiver<Message>,
    held: watch::Sender<BTreeMap<AdmissionShard, Epoch>>,
    admission: Admission,
    worker_streams: WorkerStreams,
    connections: HashMap<SchedulerStreamId, SchedulerConnection>,
    retiring: BTreeSet<SchedulerStreamId>,
    /// Callers that wait until every claim for the shards they hand over is answered and delivered.
    handovers: Vec<oneshot::Sender<()>>,
    plans: Plans,
    push_queue: PushQueue,
    input_reader: InputReader,
    redirects: Redirects,
    signer: Signer,
    metrics: Metrics,
    /// Number of the last batch of claims.
    batch: u64,
}

/// Builds the engine and its handle. The three constructors get the handle because their actors
/// report back to the engine.
pub(crate) fn engine(
    signer: Signer,
    metrics: Metrics,
    plans: impl FnOnce(Engine) -> Plans,
    input_reader: impl FnOnce(Engine) -> InputReader,
    push_queue: impl FnOnce(Engine) -> PushQueue,
    redirects: Redirects,
) -> (Engine, EngineActor) {
    let (sender, inbox) = mpsc::channel(INBOX_MAX);
    let (held, held_watch) = watch::channel(BTreeMap::new());
    let handle = Engine {
        inbox: sender,
        held: held_watch,
    };
    let actor = EngineActor {
        inbox,
        held,
        admission: Admission::default(),
        worker_streams: WorkerStreams::default(),
        connections: HashMap::new(),
        retiring: BTreeSet::new(),
        handovers: Vec::new(),
        plans: plans(handle.clone()),
        input_reader: input_reader(handle.clone()),
        push_queue: push_queue(handle.clone()),
        redirects,
        signer,
        metrics,
        batch: 0,
    };
    (handle, actor)
}

impl EngineActor {
    pub(crate) async fn run(mut self) {
        let mut messages = Vec::new();
        while self
            .inbox
            .recv_many(&mut messages, MESSAGES_PER_TURN_MAX)
            .await
            > 0
        {
            messages.drain(..).for_each(|message| self.handle(message));
            self.run_effects();
            self.claim_ready();
            self.stop_retired();
            self.flush_worker_streams();
            self.finish_handovers();
        }
    }

    fn handle(&mut self, message: Message) {
        let now = servo_mesh::now();
        match message {
            Message::HeldShards(held) => self.set_held(held),
            Message::HandOver(shards, done) => {
                self.admission.begin_handover(shards);
                self.handovers.push(done);
            }
            Message::Limits(limits) => self.admission.set_limits(limits),
            Message::Pauses(pauses) => self.admission.set_pauses(pauses),
            Message::Scheduler(stream_id, message) => {
                self.handle_scheduler(stream_id, message, now)
            }
            Message::PlanLoaded(plan, stored) => self.plan_loaded(&plan, stored, now),
            Message::InputsResolved(resolved) => self.inputs_resolved(resolved),
            Message::WorkerConnected(connection) => self.connect_worker(connection),
            Message::CreditsGranted(worker, connection, more) => {
                if self.worker_streams.touch(&worker, connection, now) {
                    self.admission.add_credits(&worker, more);
                }
            }
            Message::DrainWorker(worker, drain) => {
                self.admission.drain_worker(&worker);
                self.withdraw_pushed(&worker, drain.kill);
                self.worker_streams.drain(&worker, drain);
            }
            Message::AttemptsReturned(worker, attempts) => {
                self.report_returned(&worker, &attempts, false);
            }
            Message::Undeliverable(attempt, reason) => {
                if self.input_reader.failed(attempt) {
                    self.fail_attempt(attempt, reason);
                }
            }
            Message::WorkerDisconnected(worker, connection) => {
                if self.worker_streams.disconnect(&worker, connection) {
                    self.admission.disconnect_worker(&worker);
                }
            }
            Message::PushWorkers(workers) => self.set_push_workers(workers),
            Message::Enqueued(entries) => self.report_enqueued(entries),
            Message::Tick => {
                self.worker_streams.send_keepalives();
                self.input_reader
                    .retain(|attempt| self.admission.live(attempt).is_some());
            }
            Message::Query(query) => query(&self.admission, &self.worker_streams),
        }
    }

    fn handle_scheduler(
        &mut self,
        stream_id: SchedulerStreamId,
        message: StreamMessage,
        now: Timestamp,
    ) {
        match message {
            StreamMessage::Opened(shards, connection) => {
                self.admission.stream_opened(stream_id, shards);
                self.connections.insert(stream_id, connection);
            }
            StreamMessage::Snapshot(snapshot) => {
                self.admission.apply_snapshot(stream_id, snapshot, now);
            }
            StreamMessage::Update(update) => {
                self.cancel_ended_pushes(&update);
                self.admission.apply_update(stream_id, update, now);
            }
            StreamMessage::ClaimResults(number, refused) => {
                self.metrics.refused.inc_by(refused.len() as u64);
                self.admission
                    .claim_results(stream_id, number, &refused, now);
            }
            StreamMessage::PlansAnnounced(plans) => {
                for plan in plans
                    .iter()
                    .filter(|plan| self.admission.holds(&plan.tenant))
                {
                    self.plans.get(plan);
                }
            }
            StreamMessage::ShardGone(shard) => self.admission.shard_gone(stream_id, shard),
            StreamMessage::Retire => {
                self.admission.stream_retired(stream_id);
                self.retiring.insert(stream_id);
            }
            StreamMessage::Closed => {
                self.admission.stream_closed(stream_id);
                self.connections.remove(&stream_id);
                self.retiring.remove(&stream_id);
            }
        }
    }

    fn set_held(&mut self, held: BTreeMap<AdmissionShard, Epoch>) {
        self.admission.set_held(held.clone());
        self.held
            .send_if_modified(|before| std::mem::replace(before, held.clone()) != held);
        for redirected in self.worker_streams.take_redirected(&self.admission) {
            self.admission.disconnect_worker(&redirected.worker);
            self.redirects.redirect(redirected, self.held.subscribe());
        }
    }

    fn connect_worker(&mut self, connection: WorkerConnection) {
        let worker = connection.worker.key();
        let attempts = connection.attempts.clone();
        let tenant = worker.tenant.tenant();
        let lost_shard = tenant
            .filter(|tenant| !self.admission.holds(tenant))
            .map(TenantId::admission_shard);
        // The shard moved after the RPC checked it. The other workers of the tenant were redirected
        // by `set_held`, which did not see this one.
        if let Some(admission_shard) = lost_shard {
            let redirected = RedirectedWorker {
                worker,
                admission_shard,
                responses: connection.responses,
            };
            return self.redirects.redirect(redirected, self.held.subscribe());
        }
        self.admission.connect_worker(connection.worker.clone());
        self.worker_streams.connect(connection);
        self.admission.reconcile_worker(&worker, &attempts);
    }

    fn plan_loaded(&mut self, plan: &PlanRef, stored: Option<Arc<StoredPlan>>, now: Timestamp) {
        let waiting = self.plans.loaded(plan, stored.as_ref());
        if let Some(stored) = stored {
            self.admission.plan_loaded(plan, &stored.admission, now);
            waiting
                .into_iter()
                .for_each(|(worker, attempt)| self.deliver(&worker, attempt));
        }
    }

    /// Sends the collected envelopes, and disconnects the workers that do not read theirs. A worker
    /// that connects again with the same session reports its attempts and is sent those it never
    /// received ([`Admission::reconcile_worker`]); without that, the start deadline ends them.
    fn flush_worker_streams(&mut self) {
        for worker in self.worker_streams.flush() {
            warn!(worker = %worker.id, "a worker does not read its stream; disconnecting it");
            self.admission.disconnect_worker(&worker);
        }
    }

    fn finish_handovers(&mut self) {
        if !self.handovers.is_empty()
            && self.admission.is_handed_over(|attempt| {
                self.plans.is_awaited(attempt) || self.input_reader.is_awaited(attempt)
            })
        {
            for done in self.handovers.drain(..) {
                // The receiver is gone when the caller's timeout has passed.
                let _ = done.send(());
            }
        }
    }
}

/// The name of an attempt's dispatch, once its plan is loaded.
fn dispatch_id(admission: &Admission, live: &LiveAttempt) -> Option<DispatchId> {
    let key = admission.task_key(&live.plan, live.task)?;
    Some(DispatchId::new(&live.run, &key, live.attempt))
}
