//! The one task that owns admission. Everything that happens is a message to it; what gathered while it worked is
//! taken together, and then it chooses.

mod pushed;
mod returns;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use servo_mesh::{Error, Reason, continue_trace};
use servo_model::{AttemptId, DispatchId, TenantId};
use servo_proto::v1 as pb;
use servo_proto::v1::admit_request::Message as Say;
use servo_proto::v1::pull_tasks_response::Message as Tell;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tracing::debug_span;

use super::inputs::Reading;
use super::moves::Moves;
use super::plans::Plans;
use super::pushes::{Entry, Pushes, Reached};
use super::sessions::{Connect, Moved, Sessions};
use crate::core::{
    Admission, CLAIMS_PER_BATCH_MAX, Chosen, Effect, Limits, Live, Pause, PlanRef, Snapshot,
    SourceId, Update, WorkerKey,
};
use crate::envelope::{NoEnvelope, Signer, StoredPlan};
use crate::inputs::{self, Found};
use crate::metrics::Metrics;
use crate::wire;

/// What may be taken together before the engine chooses.
const MESSAGES_PER_TURN_MAX: usize = 1024;

/// Claims are answered within a flush; a scheduler that does not answer is not waited for.
const SETTLED_WITHIN: Duration = Duration::from_secs(1);

pub(crate) enum Message {
    Hold(BTreeMap<i16, u64>),
    /// These shards are about to be given away. Answers once all that was claimed for them is sent.
    Leave(Vec<i16>, oneshot::Sender<()>),
    Limits(Limits),
    Pauses(Vec<Pause>),
    Told(SourceId, Told),
    Plan(PlanRef, Option<Arc<StoredPlan>>),
    /// What these attempts read was looked up.
    Inputs(Vec<(AttemptId, Found)>),
    Connect(Connect),
    Credits(WorkerKey, u64, u32),
    Drain(WorkerKey, pb::PullDrain),
    /// The worker did not start these and does not want to.
    Returned(WorkerKey, Vec<AttemptId>),
    /// What it reads cannot be had, for this reason.
    Undeliverable(AttemptId, String),
    Disconnected(WorkerKey, u64),
    /// All workers that are reached by pushes, whoever admits for them.
    Reach(Vec<Reached>),
    /// The queue has these.
    Enqueued(Vec<Entry>),
    Beat,
    Ask(Question),
}

type Question = Box<dyn FnOnce(&Admission, &Sessions) + Send>;

/// What a stream to a scheduler brings.
pub(crate) enum Told {
    /// It was opened for these admission shards.
    Opened(Vec<i16>, Outlet),
    Snapshot(Snapshot),
    Update(Update),
    Results(u64, BTreeSet<u32>),
    /// Runs of these plans are about to come.
    Ahead(Vec<PlanRef>),
    Gone(i16),
    /// Send no more claims on it, and stop it once all are answered.
    Retire,
    Closed,
}

/// The way back on a stream.
pub(crate) struct Outlet {
    pub(crate) requests: mpsc::UnboundedSender<pb::AdmitRequest>,
    pub(crate) stop: CancellationToken,
}

/// How everybody else speaks to the engine. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Engine {
    inbox: mpsc::UnboundedSender<Message>,
    held: watch::Receiver<BTreeMap<i16, u64>>,
}

impl Engine {
    pub(crate) fn tell(&self, message: Message) {
        // It ends with the process only.
        let _ = self.inbox.send(message);
    }

    /// Asks about what stands in memory.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Admission, &Sessions) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let question: Question = Box::new(move |admission, sessions| {
            let _ = reply.send(question(admission, sessions));
        });
        self.tell(Message::Ask(question));
        answer
            .await
            .map_err(|_| Error::new(Reason::NotReady, "the dispatcher is about to stop"))
    }

    /// Chooses nothing more for these shards, and returns when all that was claimed for them is sent: whoever takes them
    /// over knows of claims only that they are there, and a worker that never got one would be waited for.
    pub(crate) async fn leave(&self, shards: Vec<i16>) {
        let (left, settled) = oneshot::channel();
        self.tell(Message::Leave(shards, left));
        let _ = tokio::time::timeout(SETTLED_WITHIN, settled).await;
    }

    /// The admission shards held here with their epochs.
    pub(crate) fn held(&self) -> watch::Receiver<BTreeMap<i16, u64>> {
        self.held.clone()
    }
}

pub(crate) struct EngineLoop {
    inbox: mpsc::UnboundedReceiver<Message>,
    held: watch::Sender<BTreeMap<i16, u64>>,
    admission: Admission,
    sessions: Sessions,
    outlets: HashMap<SourceId, Outlet>,
    retiring: BTreeSet<SourceId>,
    /// Who waits until nothing is under way for the shards that are left.
    leaving: Vec<oneshot::Sender<()>>,
    plans: Plans,
    pushes: Pushes,
    reading: Reading,
    moves: Moves,
    signer: Signer,
    metrics: Metrics,
    batch: u64,
}

/// The engine and its handle; `plans` and `reading` read what is asked for, `pushes` takes what is pushed.
pub(crate) fn engine(
    signer: Signer,
    metrics: Metrics,
    plans: impl FnOnce(Engine) -> Plans,
    reading: impl FnOnce(Engine) -> Reading,
    pushes: impl FnOnce(Engine) -> Pushes,
    moves: Moves,
) -> (Engine, EngineLoop) {
    let (sender, inbox) = mpsc::unbounded_channel();
    let (held, watched) = watch::channel(BTreeMap::new());
    let handle = Engine {
        inbox: sender,
        held: watched,
    };
    let engine = EngineLoop {
        inbox,
        held,
        admission: Admission::default(),
        sessions: Sessions::default(),
        outlets: HashMap::new(),
        retiring: BTreeSet::new(),
        leaving: Vec::new(),
        plans: plans(handle.clone()),
        reading: reading(handle.clone()),
        pushes: pushes(handle.clone()),
        moves,
        signer,
        metrics,
        batch: 0,
    };
    (handle, engine)
}

impl EngineLoop {
    pub(crate) async fn run(mut self) {
        let mut messages = Vec::new();
        while self
            .inbox
            .recv_many(&mut messages, MESSAGES_PER_TURN_MAX)
            .await
            > 0
        {
            messages.drain(..).for_each(|message| self.take(message));
            self.act();
            self.choose();
            self.stop_retired();
            self.sessions.flush();
            self.settle();
        }
    }

    fn settle(&mut self) {
        if !self.leaving.is_empty()
            && self
                .admission
                .is_settled(|attempt| self.reading.is_awaited(attempt))
        {
            for left in self.leaving.drain(..) {
                // Who went away does not want to know.
                let _ = left.send(());
            }
        }
    }

    fn take(&mut self, message: Message) {
        let now = wire::now();
        match message {
            Message::Hold(held) => self.hold(held),
            Message::Leave(shards, left) => {
                self.admission.leave_shards(shards);
                self.leaving.push(left);
            }
            Message::Limits(limits) => self.admission.limit(limits),
            Message::Pauses(pauses) => self.admission.pause(pauses),
            Message::Told(source, told) => self.told(source, told, now),
            Message::Plan(plan, stored) => self.read(&plan, stored, now),
            Message::Inputs(found) => {
                for (attempt, found) in found {
                    if let Some((worker, found)) = self.reading.found(attempt, found) {
                        self.deliver_with(&worker, attempt, Some(found));
                    }
                }
            }
            Message::Connect(connect) => self.connect(connect),
            Message::Credits(worker, connection, more) => {
                if self.sessions.heard(&worker, connection, now) {
                    self.admission.add_credits(&worker, more);
                }
            }
            Message::Drain(worker, drain) => {
                self.admission.drain(&worker);
                self.take_back_pushed(&worker, drain.kill);
                self.sessions.drain(&worker, drain);
            }
            Message::Returned(worker, attempts) => self.returned(&worker, &attempts, false),
            Message::Undeliverable(attempt, why) => {
                if self.reading.failed(attempt) {
                    self.give_up(attempt, why);
                }
            }
            Message::Disconnected(worker, connection) => {
                if self.sessions.disconnect(&worker, connection) {
                    self.admission.leave(&worker);
                }
            }
            Message::Reach(workers) => self.reach(workers),
            Message::Enqueued(entries) => self.enqueued(entries),
            Message::Beat => {
                self.sessions.beat();
                self.reading
                    .keep_only(|attempt| self.admission.live(attempt).is_some());
            }
            Message::Ask(question) => question(&self.admission, &self.sessions),
        }
    }

    fn hold(&mut self, held: BTreeMap<i16, u64>) {
        self.admission.hold(held.clone());
        self.held
            .send_if_modified(|before| std::mem::replace(before, held.clone()) != held);
        for moved in self.sessions.move_away(&self.admission) {
            self.admission.leave(&moved.worker);
            self.moves.tell(moved, self.held.subscribe());
        }
    }

    fn told(&mut self, source: SourceId, told: Told, now: f64) {
        match told {
            Told::Opened(shards, outlet) => {
                self.admission.opened(source, shards);
                self.outlets.insert(source, outlet);
            }
            Told::Snapshot(snapshot) => self.admission.snapshot(source, snapshot, now),
            Told::Update(update) => {
                self.drop_ended(&update);
                self.admission.update(source, update, now);
            }
            Told::Results(number, refused) => {
                self.metrics.refused.inc_by(refused.len() as u64);
                self.admission.results(source, number, &refused, now);
            }
            Told::Ahead(plans) => {
                for plan in plans
                    .iter()
                    .filter(|plan| self.admission.holds(&plan.tenant))
                {
                    self.plans.get(plan);
                }
            }
            Told::Gone(shard) => self.admission.gone(source, shard),
            Told::Retire => {
                self.admission.retired(source);
                self.retiring.insert(source);
            }
            Told::Closed => {
                self.admission.closed(source);
                self.outlets.remove(&source);
                self.retiring.remove(&source);
            }
        }
    }

    fn connect(&mut self, connect: Connect) {
        let (worker, has) = (connect.worker.key(), connect.has.clone());
        let tenant = worker.tenant.as_ref();
        let elsewhere = tenant
            .filter(|tenant| !self.admission.holds(tenant))
            .map(TenantId::admission_shard);
        // Its tenant's shard went while it was let in, and those who went with it were told already.
        if let Some(admission_shard) = elsewhere {
            let moved = Moved {
                worker,
                admission_shard,
                out: connect.out,
            };
            return self.moves.tell(moved, self.held.subscribe());
        }
        self.admission.join(connect.worker.clone());
        self.sessions.connect(connect);
        self.admission.compare(&worker, &has);
    }

    fn read(&mut self, plan: &PlanRef, stored: Option<Arc<StoredPlan>>, now: f64) {
        let waiting = self.plans.arrived(plan, stored.as_ref());
        if let Some(stored) = stored {
            self.admission.read(plan, &stored.shape, now);
            waiting
                .into_iter()
                .for_each(|(worker, attempt)| self.deliver(&worker, attempt));
        }
    }

    /// Does what admission wants done.
    fn act(&mut self) {
        loop {
            let effects = self.admission.take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::Deliver { worker, attempt } => self.deliver(&worker, attempt),
                    Effect::Cancel { worker, attempt } => self.cancel(&worker, attempt),
                    Effect::Read(plan) => {
                        if let Some(stored) = self.plans.get(&plan) {
                            self.admission.read(&plan, &stored.shape, wire::now());
                        }
                    }
                }
            }
        }
    }

    fn deliver(&mut self, worker: &WorkerKey, attempt: AttemptId) {
        self.deliver_with(worker, attempt, None);
    }

    /// What a task reads or compares with is waited for, unless it was found.
    fn deliver_with(&mut self, worker: &WorkerKey, attempt: AttemptId, found: Option<Found>) {
        let Some(live) = self.admission.live(attempt) else {
            return;
        };
        // While its plan or what it reads was looked up; its worker was told to stop what it never got.
        if live.cancelling {
            return self.admission.not_sent(attempt);
        }
        let target = self.pushes.target(worker);
        let key = target
            .map(|target| *target.key())
            .or_else(|| self.sessions.key(worker));
        let Some(key) = key else { return };
        let Some(stored) = self.plans.get_for(&live.plan, worker.clone(), attempt) else {
            return;
        };
        let ordinal = live.task.ordinal;
        let found = match found {
            Some(found) => found,
            None if !inputs::needs_any(&stored, ordinal) => Found::NOTHING,
            None => match self
                .reading
                .take(worker.clone(), attempt, stored.clone(), ordinal)
            {
                Some(found) => found,
                None => return,
            },
        };
        let dispatch = debug_span!(
            "servo.dispatch_task",
            tenant_id = %live.tenant,
            run_id = %live.run,
            attempt_id = %attempt,
            task_id = stored.shape.key(live.task).map(|key| tracing::field::display(key.id())),
            asset_key = asset_key(&stored, ordinal),
            partition_key = stored.plan.tasks.get(ordinal as usize).map(|task| task.partition_key.as_str())
        );
        continue_trace(
            &dispatch,
            live.order.as_ref().map_or("", |order| &order.trace.0),
        );
        let _dispatch = dispatch.entered();
        let envelope = match self
            .signer
            .envelope(&stored, live, &found, &key, wire::now())
        {
            Ok(envelope) => envelope,
            Err(NoEnvelope::TooLarge(_)) if found.inputs.fill_an_envelope() => {
                let uri = self.signer.inputs_uri(live);
                return self.reading.store(worker.clone(), attempt, uri, found);
            }
            Err(error) => {
                let why = error.to_string();
                return self.give_up(attempt, why);
            }
        };
        match (target, dispatch_id(&self.admission, live)) {
            (Some(target), Some(dispatch)) => {
                self.pushes.create(live, &dispatch, target, &envelope)
            }
            _ => self.sessions.send(worker, envelope),
        }
    }

    /// Who is pushed to learns it from its next beat.
    fn cancel(&mut self, worker: &WorkerKey, attempt: AttemptId) {
        match self.admission.live(attempt) {
            Some(live) if live.pushed => {
                let dispatch = dispatch_id(&self.admission, live);
                dispatch
                    .iter()
                    .for_each(|dispatch| self.pushes.drop_entry(dispatch));
            }
            Some(_) | None => self.sessions.cancel(worker, attempt),
        }
    }

    /// Claims all that may go, in batches per stream. The next round gathers while these are under way.
    fn choose(&mut self) {
        loop {
            let chosen = self.admission.choose(wire::now(), CLAIMS_PER_BATCH_MAX);
            if chosen.is_empty() {
                return;
            }
            let mut batches = BTreeMap::<SourceId, Vec<Chosen>>::new();
            for claim in chosen {
                batches.entry(claim.source).or_default().push(claim);
            }
            batches
                .into_iter()
                .for_each(|(source, claims)| self.claim(source, claims));
        }
    }

    fn claim(&mut self, source: SourceId, claims: Vec<Chosen>) {
        self.batch += 1;
        self.metrics.claimed.inc_by(claims.len() as u64);
        self.admission.sent(
            source,
            self.batch,
            claims.iter().map(|claim| claim.attempt_id).collect(),
        );
        claims.iter().for_each(|claim| self.look_ahead(claim));
        let batch = pb::ClaimBatch {
            number: self.batch,
            claims: claims.into_iter().map(claim).collect(),
        };
        if let Some(outlet) = self.outlets.get(&source) {
            // A stream that is gone says so by itself, and its claims are unsure then.
            let _ = outlet.requests.send(pb::AdmitRequest {
                message: Some(Say::Claims(batch)),
            });
        }
    }

    /// Looks up what a task reads while its claim is under way. What it depends on is folded since before it was ready.
    fn look_ahead(&mut self, chosen: &Chosen) {
        let Some(live) = self.admission.live(chosen.attempt_id) else {
            return;
        };
        let Some(stored) = self.plans.get(&live.plan) else {
            return;
        };
        if inputs::needs_any(&stored, chosen.task.ordinal) {
            self.reading
                .begin(chosen.attempt_id, stored, chosen.task.ordinal);
        }
    }

    fn stop_retired(&mut self) {
        for source in &self.retiring {
            if self.admission.is_answered(*source)
                && let Some(outlet) = self.outlets.get(source)
            {
                outlet.stop.cancel();
            }
        }
    }
}

/// The name of an attempt's dispatch, once its plan is read.
pub(crate) fn dispatch_id(admission: &Admission, live: &Live) -> Option<DispatchId> {
    let key = admission.task_key(&live.plan, live.task)?;
    Some(DispatchId::new(&live.run, &key, live.attempt))
}

fn asset_key(stored: &StoredPlan, ordinal: u32) -> Option<&str> {
    let task = stored.plan.tasks.get(ordinal as usize)?;
    stored
        .plan
        .assets
        .get(task.asset as usize)
        .map(|asset| asset.asset_key.as_str())
}

fn claim(chosen: Chosen) -> pb::Claim {
    pb::Claim {
        tenant: chosen.tenant.to_string(),
        run_id: chosen.run.to_string(),
        task: Some(wire::task_ref(chosen.task)),
        attempt: chosen.attempt,
        admission_epoch: chosen.admission_epoch,
        mode: if chosen.pushed {
            pb::DispatchMode::Push
        } else {
            pb::DispatchMode::Pull
        }
        .into(),
        worker_id: chosen.worker.to_string(),
    }
}

/// One message to a worker.
pub(crate) fn tell(message: Tell) -> pb::PullTasksResponse {
    pb::PullTasksResponse {
        message: Some(message),
    }
}
