//! What a scheduler tells dispatchers, and whose claims count: the model of its admission.

use std::collections::BTreeMap;

use servo_dispatcher::core::{
    Ended, LiveTask, OfferedRun, OfferedTask, Snapshot, SourceId, Task, Update, Withdrawn,
};
use servo_model::states::TaskState;
use servo_model::{TenantId, WorkerId};
use servo_scheduler::core::{Cell, Changes, Run, Slot, Time};

use crate::bugs::Bug;
use crate::dispatcher::ToDispatcher;
use crate::env::{Env, Message};
use crate::plan::Plan;

/// A dispatcher's stream.
#[derive(Debug, Clone)]
pub struct Gate {
    pub source: SourceId,
    pub dispatcher: usize,
    pub leases: BTreeMap<i16, u64>,
}

#[derive(Debug, Default)]
pub struct Gates {
    open: Vec<Gate>,
    /// The newest epoch of each admission shard; older claims no longer count.
    epochs: BTreeMap<i16, u64>,
    updates: BTreeMap<(SourceId, i16), Update>,
    /// Streams that were opened here before, for the bug that forgets them.
    pub seen: u32,
}

impl Gates {
    /// Whether a claim counts: its stream is the newest that admits for the tenant, under the newest epoch.
    pub fn admits(&self, source: SourceId, admission_shard: i16, epoch: u64, bug: Bug) -> bool {
        let newest = self.epochs.get(&admission_shard).copied().unwrap_or(0);
        let current = epoch >= newest
            && self
                .holder(admission_shard)
                .is_some_and(|gate| gate.source == source);
        current || bug == Bug::ClaimNotChecked
    }

    /// Claims of older epochs no longer count.
    pub fn learn(&mut self, admission_shard: i16, epoch: u64) {
        let newest = self.epochs.entry(admission_shard).or_default();
        *newest = (*newest).max(epoch);
    }

    pub fn open(&mut self, gate: Gate) {
        gate.leases
            .iter()
            .for_each(|(shard, epoch)| self.learn(*shard, *epoch));
        self.close(gate.source);
        self.open.push(gate);
        self.seen += 1;
    }

    pub fn close(&mut self, source: SourceId) {
        self.open.retain(|open| open.source != source);
    }

    pub fn sources(&self) -> Vec<SourceId> {
        self.open.iter().map(|gate| gate.source).collect()
    }

    pub fn leases_of(&self, source: SourceId) -> impl Iterator<Item = (&i16, &u64)> {
        self.open
            .iter()
            .filter(move |gate| gate.source == source)
            .flat_map(|gate| &gate.leases)
    }

    /// Notes what changed in a run, for the gate of its tenant.
    pub fn tell(&mut self, run: &Run, changes: &Changes, plan: &Plan, starts: &[Time]) {
        let Some(gate) = self.of(&run.header.tenant) else {
            return;
        };
        let shard = run.header.run_id.shard();
        let key = (gate.source, shard);
        let ready = if run.admits() {
            still_ready(run, &changes.ready)
        } else {
            Vec::new()
        };
        if ready.is_empty()
            && !changes.withdrawn
            && changes.ended.is_empty()
            && changes.cancelled.is_empty()
        {
            return;
        }
        let update = self.updates.entry(key).or_insert_with(|| Update {
            shard,
            ..Update::default()
        });
        if changes.withdrawn {
            let (tenant, run) = (run.header.tenant.clone(), run.header.run_id);
            update.withdrawn.push(Withdrawn {
                tenant,
                run,
                tasks: Vec::new(),
            });
        }
        let ended = |(attempt_id, held_us): &(_, i64)| Ended {
            attempt_id: *attempt_id,
            held: (*held_us / 1_000) as f64 / 1e3,
        };
        update.ended.extend(changes.ended.iter().map(ended));
        let attempt = |slot: &Slot| {
            run.cell(*slot)
                .filter(|cell| cell.state.has_attempt())?
                .attempt_id
        };
        update
            .cancelled
            .extend(changes.cancelled.iter().filter_map(attempt));
        update.ready.extend(ready_run(run, &ready, plan, starts));
    }

    /// Sends what was noted.
    pub fn send(&mut self, env: &mut Env) {
        for ((source, _), update) in std::mem::take(&mut self.updates) {
            self.send_to(source, ToDispatcher::Update(source, Box::new(update)), env);
        }
    }

    pub fn gone(&mut self, shard: i16, env: &mut Env) {
        for source in self.sources() {
            self.send_to(source, ToDispatcher::Gone(source, shard), env);
        }
    }

    pub fn is_of(&self, source: SourceId, tenant: &TenantId) -> bool {
        self.of(tenant).is_some_and(|gate| gate.source == source)
    }

    fn of(&self, tenant: &TenantId) -> Option<&Gate> {
        self.holder(tenant.admission_shard())
    }

    /// The newest holder, should an older one still be connected.
    fn holder(&self, admission_shard: i16) -> Option<&Gate> {
        let holders = self
            .open
            .iter()
            .filter(|gate| gate.leases.contains_key(&admission_shard));
        holders.max_by_key(|gate| (gate.leases[&admission_shard], gate.source))
    }

    pub fn send_to(&self, source: SourceId, told: ToDispatcher, env: &mut Env) {
        let Some(gate) = self.open.iter().find(|gate| gate.source == source) else {
            return;
        };
        env.on_wire(source.0, 0, 0, Message::Dispatcher(gate.dispatcher, told));
    }
}

/// All of a shard, for one gate.
pub fn snapshot<'a>(
    shard: i16,
    epoch: i64,
    runs: impl Iterator<Item = &'a Run>,
    env: &Env,
) -> Snapshot {
    let mut whole = Snapshot {
        shard,
        epoch: epoch.unsigned_abs(),
        first: true,
        last: true,
        ..Snapshot::default()
    };
    for run in runs {
        let Some(plan) = env.plans.get(&run.header.run_id) else {
            continue;
        };
        let ready = run
            .cells()
            .filter(|(_, cell)| cell.state == TaskState::Ready)
            .map(|(slot, _)| slot);
        let ready: Vec<Slot> = ready.collect();
        whole.live.extend(
            run.cells()
                .filter_map(|(slot, cell)| live(run, slot, cell, plan)),
        );
        if run.admits() {
            whole
                .ready
                .extend(ready_run(run, &ready, plan, &env.ledger.starts));
        }
    }
    whole
}

fn still_ready(run: &Run, slots: &[Slot]) -> Vec<Slot> {
    let is_ready = |slot: &Slot| {
        run.cell(*slot)
            .is_some_and(|cell| cell.state == TaskState::Ready)
    };
    let mut ready: Vec<Slot> = slots.iter().copied().filter(is_ready).collect();
    ready.sort_unstable();
    ready.dedup();
    ready
}

fn ready_run(run: &Run, slots: &[Slot], plan: &Plan, starts: &[Time]) -> Option<OfferedRun> {
    let task = |slot: &Slot| {
        let cell = run.cell(*slot)?;
        Some(OfferedTask {
            task: task_of(*slot),
            attempt: cell.next_attempt(starts),
            failures: cell.failures,
            since: cell.ready_at.unwrap_or(0) as f64 / 1e6,
            item_json: String::new(),
        })
    };
    (!slots.is_empty()).then(|| OfferedRun {
        run: run.header.run_id,
        plan: plan.plan.clone(),
        backfill: run.header.backfill,
        trace: Default::default(),
        tasks: slots.iter().filter_map(task).collect(),
    })
}

fn live(run: &Run, slot: Slot, cell: &Cell, plan: &Plan) -> Option<LiveTask> {
    cell.state.has_attempt().then_some(())?;
    Some(LiveTask {
        attempt_id: cell.attempt_id?,
        run: run.header.run_id,
        plan: plan.plan.clone(),
        task: task_of(slot),
        attempt: cell.attempt,
        worker: cell.worker.map(WorkerId::from_bytes),
        since: cell.claimed_at.unwrap_or(0) as f64 / 1e6,
        cancelling: cell.cancelling,
        backfill: run.header.backfill,
        pushed: false,
        waiting: None,
    })
}

pub fn task_of(slot: Slot) -> Task {
    Task {
        ordinal: slot.ordinal,
        map_index: slot.item,
    }
}

pub fn slot_of(task: Task) -> Slot {
    Slot {
        ordinal: task.ordinal,
        item: task.map_index,
    }
}
