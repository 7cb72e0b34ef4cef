//! A dispatcher instance: the real admission core in a model of its engine, leases and streams.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_dispatcher::core::{
    Admission, CLAIMS_PER_BATCH_MAX, Claim, Effect, Limits, PlanRef, SchedulerStreamId, Snapshot,
    TenantLimits, Update, Worker, WorkerKey,
};
use servo_model::{
    AdmissionShard, AttemptId, Epoch, RunId, ShardId, TenantId, Timestamp, WorkerId,
};
use servo_scheduler::core::Event;

use crate::dispatcher_streams::DispatcherStream;
use crate::env::{Env, Message, ProcessId};
use crate::ledger::{Body, Key, NewEvent};
use crate::planned_run::POOL;
use crate::scheduler::{self, ClaimRequest, Command, Reply, Submission, ToScheduler};
use crate::worker::{Envelope, ToWorker};
use crate::{LEASE_TTL, MS, ROUND};

#[derive(Debug, Clone)]
pub enum ToDispatcher {
    Snapshot(SchedulerStreamId, Box<Snapshot>),
    Update(SchedulerStreamId, Box<Update>),
    Results(SchedulerStreamId, u64, BTreeSet<u32>),
    Gone(SchedulerStreamId, ShardId),
    Closed(SchedulerStreamId),
    Connect(Box<Connect>),
    Credits(u64, WorkerId, u32),
    /// The wire of a worker broke.
    Disconnected(u64),
    ReadPlan(PlanRef),
    Leases,
    Streams,
}

/// A worker that opened its stream.
#[derive(Debug, Clone)]
pub struct Connect {
    pub worker: Worker,
    pub index: usize,
    pub wire: u64,
    pub has: BTreeSet<AttemptId>,
}

/// A stream to a scheduler.
struct OpenStream {
    stream_id: SchedulerStreamId,
    held: BTreeMap<AdmissionShard, Epoch>,
    retiring: bool,
    ended: bool,
}

pub struct Dispatcher {
    me: usize,
    pub admission: Admission,
    /// The held admission shards with their epochs.
    leases: BTreeMap<AdmissionShard, Epoch>,
    held: BTreeMap<AdmissionShard, Epoch>,
    generation: u32,
    streams: BTreeMap<usize, OpenStream>,
    /// Streams that are closed once their claims are answered.
    retiring: BTreeSet<SchedulerStreamId>,
    schedulers: BTreeMap<SchedulerStreamId, usize>,
    sessions: BTreeMap<WorkerKey, (usize, u64)>,
    batch: u64,
}

impl Dispatcher {
    pub fn new(me: usize, limits: &Limits) -> Dispatcher {
        let mut admission = Admission::default();
        admission.set_limits(limits.clone());
        Dispatcher {
            me,
            admission,
            leases: BTreeMap::new(),
            held: BTreeMap::new(),
            generation: 0,
            streams: BTreeMap::new(),
            retiring: BTreeSet::new(),
            schedulers: BTreeMap::new(),
            sessions: BTreeMap::new(),
            batch: 0,
        }
    }

    fn process_id(&self) -> ProcessId {
        ProcessId::Dispatcher(self.me)
    }

    /// Handles a message and everything that follows from it.
    pub fn take(&mut self, message: ToDispatcher, env: &mut Env) {
        let now = env.now;
        match message {
            ToDispatcher::Snapshot(stream_id, snapshot) => {
                self.admission.apply_snapshot(stream_id, *snapshot, now)
            }
            ToDispatcher::Update(stream_id, update) => {
                self.admission.apply_update(stream_id, *update, now)
            }
            ToDispatcher::Results(stream_id, number, refused) => {
                self.admission
                    .claim_results(stream_id, number, &refused, now);
            }
            ToDispatcher::Gone(stream_id, shard) => {
                self.admission.shard_gone(stream_id, shard);
                env.later(
                    MS,
                    self.process_id(),
                    Message::Dispatcher(self.me, ToDispatcher::Streams),
                );
            }
            ToDispatcher::Closed(stream_id) => self.closed(stream_id, env),
            ToDispatcher::Connect(connect) => self.connect(*connect, env),
            ToDispatcher::Credits(wire, worker, more) => {
                if let Some(key) = self.connected(wire).filter(|key| key.id == worker) {
                    self.admission.add_credits(&key, more);
                }
            }
            ToDispatcher::Disconnected(wire) => self.disconnected(wire),
            ToDispatcher::ReadPlan(plan_ref) => {
                let known = env
                    .planned_runs
                    .values()
                    .find(|known| known.plan_ref == plan_ref);
                known.into_iter().for_each(|known| {
                    self.admission
                        .plan_loaded(&plan_ref, &known.admission_plan, now)
                });
            }
            ToDispatcher::Leases => {
                self.keep_leases(env);
                self.keep_streams(env);
            }
            ToDispatcher::Streams => self.keep_streams(env),
        }
        self.act(env);
        self.choose(env);
        self.stop_retired(env);
    }

    fn connect(&mut self, connect: Connect, env: &mut Env) {
        // The admission shard has moved since the worker registered.
        if connect
            .worker
            .tenant
            .tenant()
            .is_some_and(|tenant| !self.admission.holds(tenant))
        {
            return env.break_wire(connect.wire);
        }
        let worker = connect.worker.key();
        self.admission.connect_worker(connect.worker);
        self.sessions
            .insert(worker.clone(), (connect.index, connect.wire));
        self.admission.reconcile_worker(&worker, &connect.has);
    }

    fn disconnected(&mut self, wire: u64) {
        if let Some(worker) = self.connected(wire) {
            self.sessions.remove(&worker);
            self.admission.disconnect_worker(&worker);
        }
    }

    /// The worker of this wire, unless it has reconnected since.
    fn connected(&self, wire: u64) -> Option<WorkerKey> {
        self.sessions
            .iter()
            .find(|(_, (_, current))| *current == wire)
            .map(|(worker, _)| worker.clone())
    }

    fn closed(&mut self, stream_id: SchedulerStreamId, env: &mut Env) {
        self.admission.stream_closed(stream_id);
        self.retiring.remove(&stream_id);
        self.schedulers.remove(&stream_id);
        self.streams
            .values_mut()
            .filter(|open| open.stream_id == stream_id)
            .for_each(|open| open.ended = true);
        let delay = env.dice.between(1, 100) * MS;
        env.later(
            delay,
            self.process_id(),
            Message::Dispatcher(self.me, ToDispatcher::Streams),
        );
    }

    /// Renews the leases, acquires free shards and releases those above the share.
    fn keep_leases(&mut self, env: &mut Env) {
        env.later(
            ROUND,
            self.process_id(),
            Message::Dispatcher(self.me, ToDispatcher::Leases),
        );
        if env.database_is_down() {
            return;
        }
        // A lease is only valid on the connection that acquired it.
        if std::mem::replace(&mut self.generation, env.ledger.generation) != env.ledger.generation {
            self.leases.clear();
        }
        let (me, now) = (env.holder(self.process_id()), env.now);
        let living = |index: usize| !env.processes[&ProcessId::Dispatcher(index)].down;
        let instances = (0..2).filter(|index| living(*index)).count().max(1);
        let share = env.ledger.admission.len().div_ceil(instances);
        let rows = &mut env.ledger.admission;
        self.leases.retain(|shard, epoch| {
            let row = &mut rows[shard.index()];
            let held = row.holder == Some(me) && row.epoch == *epoch && row.lease_until > now;
            if held {
                row.lease_until = now.plus_us(LEASE_TTL);
            }
            held
        });
        while self.leases.len() > share {
            let Some((shard, _)) = self.leases.pop_last() else {
                break;
            };
            let row = &mut rows[shard.index()];
            row.holder = None;
            row.lease_until = Timestamp::UNIX_EPOCH;
        }
        for row in rows {
            if self.leases.len() < share
                && !self.leases.contains_key(&row.shard)
                && row.lease_until <= now
            {
                row.epoch = row.epoch.next();
                row.holder = Some(me);
                row.lease_until = now.plus_us(LEASE_TTL);
                self.leases.insert(row.shard, row.epoch);
            }
        }
        env.ledger.flushed();
        if self.held != self.leases {
            self.hold(env);
        }
    }

    fn hold(&mut self, env: &mut Env) {
        let leases: BTreeMap<u32, u64> = (self.leases.iter())
            .map(|(shard, epoch)| (u32::from(*shard), epoch.get()))
            .collect();
        env.note(format_args!("dispatcher {} admits for {leases:?}", self.me));
        env.stats.admission_moved += 1;
        self.held = self.leases.clone();
        self.admission.set_held(self.held.clone());
        let elsewhere = |worker: &Worker| {
            worker
                .tenant
                .tenant()
                .is_some_and(|tenant| !self.admission.holds(tenant))
        };
        let moved: Vec<WorkerKey> = self
            .admission
            .workers()
            .filter(|worker| elsewhere(worker))
            .map(Worker::key)
            .collect();
        for worker in moved {
            self.admission.disconnect_worker(&worker);
            if let Some((_, wire)) = self.sessions.remove(&worker) {
                env.break_wire(wire);
            }
        }
        env.later(
            MS,
            self.process_id(),
            Message::Dispatcher(self.me, ToDispatcher::Streams),
        );
    }

    /// Opens missing streams and retires obsolete ones.
    fn keep_streams(&mut self, env: &mut Env) {
        if env.database_is_down() {
            return;
        }
        let mut wanted = BTreeSet::new();
        if !self.held.is_empty() {
            wanted.extend(
                env.ledger
                    .shards
                    .iter()
                    .filter(|row| row.lease_until > env.now)
                    .filter_map(|row| row.holder),
            );
        }
        let wanted: BTreeSet<usize> = wanted.into_iter().map(|(index, _)| index).collect();
        self.streams.retain(|_, open| !open.ended);
        let held = self.held.clone();
        let mut retired = Vec::new();
        for (scheduler, open) in self.streams.iter_mut().filter(|(_, open)| !open.retiring) {
            let nothing_new = held
                .iter()
                .all(|(shard, epoch)| open.held.get(shard) == Some(epoch));
            if !wanted.contains(scheduler) || !nothing_new {
                open.retiring = true;
                retired.push(open.stream_id);
            } else if open.held != held {
                open.held.clone_from(&held);
                self.admission
                    .stream_opened(open.stream_id, held.keys().copied());
                let stream = DispatcherStream {
                    stream_id: open.stream_id,
                    dispatcher: self.me,
                    leases: held.clone(),
                };
                env.on_wire(
                    open.stream_id.0,
                    1,
                    0,
                    Message::Scheduler(*scheduler, ToScheduler::Open(stream)),
                );
            }
        }
        for stream_id in retired {
            self.admission.stream_retired(stream_id);
            self.retiring.insert(stream_id);
        }
        for scheduler in wanted {
            if !self.streams.contains_key(&scheduler) {
                self.open(scheduler, env);
            }
        }
    }

    fn open(&mut self, scheduler: usize, env: &mut Env) {
        if env.processes[&ProcessId::Scheduler(scheduler)].down {
            return;
        }
        let stream_id =
            SchedulerStreamId(env.open_wire(self.process_id(), ProcessId::Scheduler(scheduler)));
        let held = self.held.clone();
        self.admission
            .stream_opened(stream_id, held.keys().copied());
        self.schedulers.insert(stream_id, scheduler);
        let stream = DispatcherStream {
            stream_id,
            dispatcher: self.me,
            leases: held.clone(),
        };
        env.on_wire(
            stream_id.0,
            1,
            0,
            Message::Scheduler(scheduler, ToScheduler::Open(stream)),
        );
        self.streams.insert(
            scheduler,
            OpenStream {
                stream_id,
                held,
                retiring: false,
                ended: false,
            },
        );
    }

    fn act(&mut self, env: &mut Env) {
        for effect in self.admission.take_effects() {
            match effect {
                Effect::Deliver { worker, attempt } => self.deliver(&worker, attempt, env),
                Effect::Cancel { worker, attempt } => {
                    self.to_worker(&worker, ToWorker::Cancel(attempt), env)
                }
                Effect::LoadPlan(plan_ref) => {
                    let delay = env.dice.between(1, 30) * MS;
                    env.later(
                        delay,
                        self.process_id(),
                        Message::Dispatcher(self.me, ToDispatcher::ReadPlan(plan_ref)),
                    );
                }
            }
        }
    }

    fn to_worker(&self, worker: &WorkerKey, message: ToWorker, env: &mut Env) {
        if let Some((index, wire)) = self.sessions.get(worker) {
            env.on_wire(*wire, 1, 0, Message::Worker(*index, message));
        }
    }

    fn deliver(&self, worker: &WorkerKey, attempt: AttemptId, env: &mut Env) {
        let Some(live) = self.admission.live(attempt) else {
            return;
        };
        let (run, task) = (live.run, live.task);
        let Some(planned) = env.planned_runs.get(&run).cloned() else {
            return;
        };
        env.note(format_args!(
            "dispatcher {} delivers {attempt} to {}",
            self.me, worker.id
        ));
        let pushed = planned.is_pushed(task);
        let envelope = Envelope {
            run,
            task,
            attempt_id: attempt,
            attempt: live.attempt,
            pushed,
        };
        self.to_worker(worker, ToWorker::Envelope(envelope), env);
        if pushed {
            self.report_enqueued(run, task, attempt, env);
        }
    }

    /// Reports that the push queue accepted the attempt.
    fn report_enqueued(
        &self,
        run: RunId,
        task: servo_model::TaskRef,
        attempt_id: AttemptId,
        env: &mut Env,
    ) {
        let shard = run.shard();
        let Some(holder) = scheduler::holder_of(shard, env) else {
            return;
        };
        let event = NewEvent {
            id: env.number(),
            shard,
            run,
            key: Key::Enqueued(attempt_id),
            body: Body::Core(Event::DispatchEnqueued { task, attempt_id }),
            admission_epoch: Epoch::NEVER,
            judged_at: Timestamp::UNIX_EPOCH,
        };
        let submission = Submission {
            shard,
            commands: vec![Command::Event(event)],
            reply: Reply::Nobody,
        };
        env.call(Message::Scheduler(
            holder,
            ToScheduler::Submission(submission),
        ));
    }

    /// Claims all admissible tasks, in batches per stream.
    fn choose(&mut self, env: &mut Env) {
        loop {
            let chosen = self.admission.choose(env.now, CLAIMS_PER_BATCH_MAX);
            if chosen.is_empty() {
                return;
            }
            let mut batches = BTreeMap::<SchedulerStreamId, Vec<Claim>>::new();
            for claim in chosen {
                batches.entry(claim.stream_id).or_default().push(claim);
            }
            batches
                .into_iter()
                .for_each(|(stream_id, claims)| self.claim(stream_id, claims, env));
        }
    }

    fn claim(&mut self, stream_id: SchedulerStreamId, claims: Vec<Claim>, env: &mut Env) {
        self.batch += 1;
        self.admission.claims_sent(
            stream_id,
            self.batch,
            claims.iter().map(|claim| claim.attempt_id).collect(),
        );
        env.note(format_args!(
            "dispatcher {} claims {} on {}",
            self.me,
            claims.len(),
            stream_id.0
        ));
        let request = |claim: Claim| ClaimRequest {
            run: claim.run,
            task: claim.task,
            attempt: claim.attempt,
            stream_id,
            epoch: claim.admission_epoch,
            worker: claim.worker,
        };
        let claims = claims.into_iter().map(request).collect();
        if let Some(scheduler) = self.schedulers.get(&stream_id) {
            let claims = ToScheduler::Claims(stream_id, self.batch, claims);
            env.on_wire(stream_id.0, 1, 0, Message::Scheduler(*scheduler, claims));
        }
    }

    fn stop_retired(&mut self, env: &mut Env) {
        let answered: Vec<SchedulerStreamId> = self
            .retiring
            .iter()
            .copied()
            .filter(|stream_id| self.admission.has_no_pending_claims(*stream_id))
            .collect();
        for stream_id in answered {
            env.break_wire(stream_id.0);
            self.closed(stream_id, env);
        }
    }
}

/// The limits of the tenants: the first has a task limit and a small pool, the others only a pool.
pub fn limits(tenants: &[TenantId]) -> Limits {
    let mut limits = Limits::none();
    for (index, tenant) in tenants.iter().enumerate() {
        let pool = BTreeMap::from([(Arc::from(POOL), 2)]);
        let max_concurrent_tasks = (index == 0).then_some(4);
        let limited = TenantLimits {
            max_concurrent_tasks,
            pools: pool,
            ..TenantLimits::default()
        };
        limits.tenants.insert(tenant.clone(), Arc::new(limited));
    }
    limits
}
