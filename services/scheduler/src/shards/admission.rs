//! What dispatchers are told, and whose claims count.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use prost::Message;
use servo_model::TenantId;
use servo_model::states::TaskState;
use servo_proto::v1;
use servo_proto::v1::admit_response::Message as Told;
use tokio::sync::mpsc;

use super::lane::Lane;
use super::parts::{ENTRIES_PER_MESSAGE_MAX, Parts};
use crate::core::{Cell, Changes, Run, Slot, Time};
use crate::wire;

/// How many plans are remembered as told; beyond that all are forgotten, and told again when they are used again.
const AHEAD_MAX: usize = 4_096;

/// Names a dispatcher's stream within this process.
pub(crate) type GateId = u64;

/// A dispatcher's stream: for whom it admits, and the way to it.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pub id: GateId,
    /// The epoch under which it holds each admission shard.
    pub leases: BTreeMap<i16, u64>,
    /// What waits here is at most what is ready: a dispatcher that stops reading loses its connection, and with it this.
    pub outbox: mpsc::UnboundedSender<v1::AdmitResponse>,
}

/// All gates of a lane.
#[derive(Debug, Default)]
pub(super) struct Gates {
    open: Vec<Gate>,
    /// The newest epoch of each admission shard; older claims no longer count.
    epochs: BTreeMap<i16, u64>,
    /// Gathered for the flush under way, by gate and shard of runs.
    updates: BTreeMap<(GateId, i16), v1::AdmitUpdate>,
    /// When Postgres was started, as far as that is known.
    starts: Vec<Time>,
    /// Plans that were told of ahead.
    ahead: HashSet<[u8; 32]>,
}

impl Gates {
    /// Whether a claim counts: its stream is the newest that admits for the tenant, under the newest epoch. One that
    /// was read from a stream that has a successor would be unknown to it.
    pub(super) fn admits(&self, gate: GateId, admission_shard: i16, epoch: u64) -> bool {
        let newest = self.epochs.get(&admission_shard).copied().unwrap_or(0);
        epoch >= newest
            && self
                .holder(admission_shard)
                .is_some_and(|holder| holder.id == gate)
    }

    /// Whether a stream is the one that admits for a tenant.
    pub(super) fn is_of(&self, gate: GateId, tenant: &TenantId) -> bool {
        self.of(tenant).is_some_and(|of| of.id == gate)
    }

    /// An admission shard was held under this epoch, by whomever.
    pub(super) fn learn(&mut self, admission_shard: i16, epoch: u64) {
        let newest = self.epochs.entry(admission_shard).or_default();
        *newest = (*newest).max(epoch);
    }

    pub(super) fn learn_starts(&mut self, starts: Vec<Time>) {
        self.starts = starts;
    }

    /// The attempt under which a ready task is given out.
    pub(super) fn next_attempt(&self, cell: &Cell) -> u32 {
        cell.next_attempt(&self.starts)
    }

    pub(super) fn close(&mut self, gate: GateId) {
        self.open.retain(|open| open.id != gate);
    }

    /// Says at once that a run of this plan is about to come, so that a dispatcher need not begin to read it only then.
    pub(super) fn tell_ahead(&mut self, run: &Run) {
        let Some((gate, graph)) = self
            .of(&run.header.tenant)
            .map(|gate| gate.id)
            .zip(run.graph.as_ref())
        else {
            return;
        };
        if self.ahead.len() >= AHEAD_MAX {
            self.ahead.clear();
        }
        if self.ahead.insert(graph.plan_id) {
            let plan = v1::PlanName {
                tenant: run.header.tenant.to_string(),
                workspace: run.header.workspace.to_string(),
                plan_id: servo_model::Digest::from_bytes(graph.plan_id).to_string(),
            };
            self.send_to(gate, Told::Ahead(v1::AdmitAhead { plans: vec![plan] }));
        }
    }

    /// Notes what changed in a run, for the gate of its tenant.
    pub(super) fn tell(&mut self, run: &Run, changes: &Changes) {
        let Some(gate) = self.of(&run.header.tenant) else {
            return;
        };
        let mut items = Items::of(run);
        let key = (gate.id, run.header.run_id.shard());
        let ready: Vec<Slot> = if run.admits() {
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
        let offers = ready_runs(run, &ready, &mut items, &self.starts);
        let update = self.updates.entry(key).or_default();
        update.shard = u32::from(key.1.unsigned_abs());
        if changes.withdrawn {
            update.withdrawn.push(v1::RunTasks {
                tenant: run.header.tenant.to_string(),
                run_id: run.header.run_id.to_string(),
                tasks: Vec::new(),
            });
        }
        update.ended.extend(
            changes
                .ended
                .iter()
                .map(|(attempt_id, held_us)| v1::EndedAttempt {
                    tenant: run.header.tenant.to_string(),
                    attempt_id: attempt_id.to_string(),
                    slot_ms: u64::try_from(held_us / 1_000).unwrap_or(0),
                }),
        );
        update.cancelled.extend(
            changes
                .cancelled
                .iter()
                .filter_map(|slot| live(run, *slot, run.cell(*slot)?, &mut items)),
        );
        update.ready.extend(offers);
    }

    /// Sends what was noted.
    pub(super) fn send(&mut self) {
        for ((gate, _), update) in std::mem::take(&mut self.updates) {
            in_parts(update)
                .into_iter()
                .for_each(|part| self.send_to(gate, Told::Update(part)));
        }
    }

    /// What was noted of a flush that did not come to its end.
    pub(super) fn forget_news(&mut self) {
        self.updates.clear();
    }

    /// The shard is no longer held here.
    pub(super) fn gone(&self, shard: i16) {
        for gate in &self.open {
            self.send_to(
                gate.id,
                Told::Gone(v1::AdmitGone {
                    shard: u32::from(shard.unsigned_abs()),
                }),
            );
        }
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
        holders.max_by_key(|gate| (gate.leases[&admission_shard], gate.id))
    }

    /// A gate whose stream is gone is closed by whoever reads that stream.
    fn send_to(&self, gate: GateId, told: Told) {
        if let Some(open) = self.open.iter().find(|open| open.id == gate) {
            let _ = open.outbox.send(v1::AdmitResponse {
                message: Some(told),
            });
        }
    }
}

impl Lane {
    /// From now on claims of older epochs are refused; what the gate did not admit for before, it gets whole.
    pub(super) fn open_gate(&mut self, gate: Gate) {
        for (shard, epoch) in &gate.leases {
            self.gates.learn(*shard, *epoch);
        }
        let id = gate.id;
        self.gates.ahead.clear();
        self.gates.close(id);
        self.gates.open.push(gate);
        for shard in self.shards.keys() {
            self.snapshot(id, *shard);
        }
    }

    /// Tells every gate all of a shard.
    pub(super) fn tell_all(&self, shard: i16) {
        for gate in &self.gates.open {
            self.snapshot(gate.id, shard);
        }
    }

    fn snapshot(&self, gate: GateId, shard: i16) {
        let Some(held) = self.shards.get(&shard) else {
            return;
        };
        let runs = held.runs.values();
        let mine = runs.filter(|run| {
            self.gates
                .of(&run.header.tenant)
                .is_some_and(|of| of.id == gate)
        });
        let mut parts = Parts::new(v1::AdmitSnapshot {
            shard: u32::from(shard.unsigned_abs()),
            epoch: u64::try_from(held.lease.epoch()).unwrap_or(0),
            ..Default::default()
        });
        mine.for_each(|run| self.add_run(run, &mut parts));
        let mut parts = parts.all();
        parts
            .first_mut()
            .into_iter()
            .for_each(|part| part.first = true);
        parts
            .last_mut()
            .into_iter()
            .for_each(|part| part.last = true);
        parts
            .into_iter()
            .for_each(|part| self.gates.send_to(gate, Told::Snapshot(part)));
    }

    fn add_run(&self, run: &Run, parts: &mut Parts<v1::AdmitSnapshot>) {
        let mut items = Items::of(run);
        let ready = run
            .cells()
            .filter(|(_, cell)| run.admits() && cell.state == TaskState::Ready);
        let ready: Vec<Slot> = ready.map(|(slot, _)| slot).collect();
        for some in ready_runs(run, &ready, &mut items, &self.gates.starts) {
            parts.add(some.tasks.len(), |part| part.ready.push(some));
        }
        for attempt in run
            .cells()
            .filter_map(|(slot, cell)| live(run, slot, cell, &mut items))
        {
            parts.add(1, |part| part.live.push(attempt));
        }
    }
}

/// What is withdrawn comes first and what ended after what is ready, as within one message.
fn in_parts(update: v1::AdmitUpdate) -> Vec<v1::AdmitUpdate> {
    let mut parts = Parts::new(v1::AdmitUpdate {
        shard: update.shard,
        ..Default::default()
    });
    for run in update.withdrawn {
        parts.add(1, |part| part.withdrawn.push(run));
    }
    for run in update.ready {
        parts.add(run.tasks.len(), |part| part.ready.push(run));
    }
    for attempt in update.ended {
        parts.add(1, |part| part.ended.push(attempt));
    }
    for attempt in update.cancelled {
        parts.add(1, |part| part.cancelled.push(attempt));
    }
    parts.all()
}

/// What became ready and is so at the end of the flush, each once.
fn still_ready(run: &Run, slots: &[Slot]) -> Vec<Slot> {
    let mut ready: Vec<Slot> = slots
        .iter()
        .copied()
        .filter(|slot| {
            run.cell(*slot)
                .is_some_and(|cell| cell.state == TaskState::Ready)
        })
        .collect();
    ready.sort_unstable();
    ready.dedup();
    ready
}

fn ready_runs(
    run: &Run,
    slots: &[Slot],
    items: &mut Items<'_>,
    starts: &[Time],
) -> Vec<v1::ReadyRun> {
    let Some(graph) = &run.graph else {
        return Vec::new();
    };
    let plan_id = servo_model::Digest::from_bytes(graph.plan_id).to_string();
    let mut some = |slots: &[Slot]| v1::ReadyRun {
        tenant: run.header.tenant.to_string(),
        workspace: run.header.workspace.to_string(),
        run_id: run.header.run_id.to_string(),
        plan_id: plan_id.clone(),
        priority: run.header.priority,
        backfill: run.header.backfill,
        trace: trace(run),
        tasks: slots
            .iter()
            .filter_map(|slot| ready_task(run, *slot, items, starts))
            .collect(),
    };
    slots
        .chunks(ENTRIES_PER_MESSAGE_MAX)
        .map(&mut some)
        .collect()
}

fn ready_task(
    run: &Run,
    slot: Slot,
    items: &mut Items<'_>,
    starts: &[Time],
) -> Option<v1::ReadyTask> {
    let cell = run.cell(slot)?;
    Some(v1::ReadyTask {
        task: Some(wire::task_ref(slot)),
        attempt: cell.next_attempt(starts),
        failures: cell.failures,
        ready_time: cell.ready_at.map(wire::timestamp),
        item_json: items.take(slot).unwrap_or_default(),
    })
}

/// The items that tasks of a run are mapped over, decoded once however many of their children are told of.
struct Items<'a> {
    run: &'a Run,
    decoded: HashMap<u32, Vec<String>>,
}

impl<'a> Items<'a> {
    fn of(run: &'a Run) -> Items<'a> {
        Items {
            run,
            decoded: HashMap::new(),
        }
    }

    /// A child's item. A child is told of once, so it need not be kept.
    fn take(&mut self, slot: Slot) -> Option<String> {
        let over = self.run.graph.as_ref()?.task(slot.ordinal).mapped_over?;
        let item = slot.item?;
        let decoded = self
            .decoded
            .entry(slot.ordinal)
            .or_insert_with(|| self.run.items(over).map_or_else(Vec::new, decode));
        decoded.get_mut(item as usize).map(std::mem::take)
    }
}

fn decode((_, encoded): &(u32, Arc<[u8]>)) -> Vec<String> {
    v1::MappedItems::decode(&**encoded).map_or_else(|_| Vec::new(), |items| items.items_json)
}

fn live(run: &Run, slot: Slot, cell: &Cell, items: &mut Items<'_>) -> Option<v1::LiveAttempt> {
    if !cell.state.has_attempt() {
        return None;
    }
    let plan_id = servo_model::Digest::from_bytes(run.graph.as_ref()?.plan_id).to_string();
    Some(v1::LiveAttempt {
        tenant: run.header.tenant.to_string(),
        workspace: run.header.workspace.to_string(),
        run_id: run.header.run_id.to_string(),
        plan_id,
        task: Some(wire::task_ref(slot)),
        attempt_id: cell.attempt_id?.to_string(),
        attempt: cell.attempt,
        mode: if cell.pushed {
            v1::DispatchMode::Push
        } else {
            v1::DispatchMode::Pull
        }
        .into(),
        worker_id: cell.worker.map_or_else(String::new, |id| {
            servo_model::WorkerId::from_bytes(id).to_string()
        }),
        claim_time: cell.claimed_at.map(wire::timestamp),
        cancelling: cell.cancelling,
        backfill: run.header.backfill,
        waiting: waits(cell).then(|| v1::PushOrder {
            failures: cell.failures,
            item_json: items.take(slot).unwrap_or_default(),
            trace: trace(run),
        }),
    })
}

/// Whether the queue is not known to have it.
fn waits(cell: &Cell) -> bool {
    cell.pushed && cell.state == TaskState::Queued && !cell.cancelling
}

fn trace(run: &Run) -> Option<v1::TraceContext> {
    let traceparent = run.header.traceparent.to_string();
    (!traceparent.is_empty()).then(|| v1::TraceContext {
        traceparent,
        tracestate: String::new(),
    })
}
