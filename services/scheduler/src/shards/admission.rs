//! What dispatchers are told, and whose claims count.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use prost::Message;
use servo_model::states::TaskState;
use servo_model::{TaskRef, TenantId};
use servo_proto::v1 as pb;
use servo_proto::v1::admit_response::Message as SchedulerMessage;
use tokio::sync::mpsc;

use super::lane::Lane;
use super::message_parts::{ENTRIES_PER_MESSAGE_MAX, Parts};
use crate::core::{Changes, Run, TaskRow, Time};
use crate::wire;

/// How many plans are remembered as told; beyond that all are forgotten, and told again when they are used again.
const ANNOUNCED_PLANS_MAX: usize = 4_096;

/// Names a dispatcher's stream within this process.
pub(crate) type DispatcherStreamId = u64;

/// A dispatcher's stream: for whom it admits, and the way to it.
#[derive(Debug, Clone)]
pub(crate) struct DispatcherStream {
    pub id: DispatcherStreamId,
    /// The epoch under which it holds each admission shard.
    pub leases: BTreeMap<i16, u64>,
    /// What waits here is at most what is ready: a dispatcher that stops reading loses its connection, and with it this.
    pub outbox: mpsc::UnboundedSender<pb::AdmitResponse>,
}

/// All gates of a lane.
#[derive(Debug, Default)]
pub(super) struct DispatcherStreams {
    open: Vec<DispatcherStream>,
    /// The newest epoch of each admission shard; older claims no longer count.
    epochs: BTreeMap<i16, u64>,
    /// Gathered for the flush under way, by gate and shard of runs.
    updates: BTreeMap<(DispatcherStreamId, i16), pb::AdmitUpdate>,
    /// When Postgres was started, as far as that is known.
    starts: Vec<Time>,
    /// Plans that were told of ahead.
    ahead: HashSet<[u8; 32]>,
}

impl DispatcherStreams {
    /// Whether a claim counts: its stream is the newest that admits for the tenant, under the newest epoch. One that
    /// was read from a stream that has a successor would be unknown to it.
    pub(super) fn admits(
        &self,
        stream: DispatcherStreamId,
        admission_shard: i16,
        epoch: u64,
    ) -> bool {
        let newest = self.epochs.get(&admission_shard).copied().unwrap_or(0);
        epoch >= newest
            && self
                .holder(admission_shard)
                .is_some_and(|holder| holder.id == stream)
    }

    /// Whether a stream is the one that admits for a tenant.
    pub(super) fn is_of(&self, stream: DispatcherStreamId, tenant: &TenantId) -> bool {
        self.of(tenant).is_some_and(|of| of.id == stream)
    }

    /// An admission shard was held under this epoch, by whomever.
    pub(super) fn learn(&mut self, admission_shard: i16, epoch: u64) {
        let newest = self.epochs.entry(admission_shard).or_default();
        *newest = (*newest).max(epoch);
    }

    pub(super) fn load_postgres_starts(&mut self, starts: Vec<Time>) {
        self.starts = starts;
    }

    /// The attempt under which a ready task is given out.
    pub(super) fn next_attempt(&self, task_row: &TaskRow) -> u32 {
        task_row.next_attempt(&self.starts)
    }

    pub(super) fn close(&mut self, stream: DispatcherStreamId) {
        self.open.retain(|open| open.id != stream);
    }

    /// Says at once that a run of this plan is about to come, so that a dispatcher need not begin to read it only then.
    pub(super) fn announce_plan(&mut self, run: &Run) {
        let Some((stream, plan)) = self
            .of(&run.header.tenant)
            .map(|stream| stream.id)
            .zip(run.plan.as_ref())
        else {
            return;
        };
        if self.ahead.len() >= ANNOUNCED_PLANS_MAX {
            self.ahead.clear();
        }
        if self.ahead.insert(plan.plan_id) {
            let plan = pb::PlanName {
                tenant: run.header.tenant.to_string(),
                workspace: run.header.workspace.to_string(),
                plan_id: servo_model::Digest::from_bytes(plan.plan_id).to_string(),
            };
            self.send_to(
                stream,
                SchedulerMessage::Ahead(pb::AdmitAhead { plans: vec![plan] }),
            );
        }
    }

    /// Notes what changed in a run, for the gate of its tenant.
    pub(super) fn tell(&mut self, run: &Run, changes: &Changes) {
        let Some(stream) = self.of(&run.header.tenant) else {
            return;
        };
        let mut items = Items::of(run);
        let key = (stream.id, run.header.run_id.shard());
        let ready: Vec<TaskRef> = if run.admits() {
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
            update.withdrawn.push(pb::RunTasks {
                tenant: run.header.tenant.to_string(),
                run_id: run.header.run_id.to_string(),
                tasks: Vec::new(),
            });
        }
        update.ended.extend(
            changes
                .ended
                .iter()
                .map(|(attempt_id, held_us)| pb::EndedAttempt {
                    tenant: run.header.tenant.to_string(),
                    attempt_id: attempt_id.to_string(),
                    slot_ms: u64::try_from(held_us / 1_000).unwrap_or(0),
                }),
        );
        update.cancelled.extend(
            changes
                .cancelled
                .iter()
                .filter_map(|task_ref| live(run, *task_ref, run.task_row(*task_ref)?, &mut items)),
        );
        update.ready.extend(offers);
    }

    /// Sends what was noted.
    pub(super) fn send(&mut self) {
        for ((stream, _), update) in std::mem::take(&mut self.updates) {
            in_parts(update)
                .into_iter()
                .for_each(|part| self.send_to(stream, SchedulerMessage::Update(part)));
        }
    }

    /// What was noted of a flush that did not come to its end.
    pub(super) fn discard_updates(&mut self) {
        self.updates.clear();
    }

    /// The shard is no longer held here.
    pub(super) fn gone(&self, shard: i16) {
        for stream in &self.open {
            self.send_to(
                stream.id,
                SchedulerMessage::Gone(pb::AdmitGone {
                    shard: u32::from(shard.unsigned_abs()),
                }),
            );
        }
    }

    fn of(&self, tenant: &TenantId) -> Option<&DispatcherStream> {
        self.holder(tenant.admission_shard())
    }

    /// The newest holder, should an older one still be connected.
    fn holder(&self, admission_shard: i16) -> Option<&DispatcherStream> {
        let holders = self
            .open
            .iter()
            .filter(|stream| stream.leases.contains_key(&admission_shard));
        holders.max_by_key(|stream| (stream.leases[&admission_shard], stream.id))
    }

    /// A gate whose stream is gone is closed by whoever reads that stream.
    fn send_to(&self, stream: DispatcherStreamId, message: SchedulerMessage) {
        if let Some(open) = self.open.iter().find(|open| open.id == stream) {
            let _ = open.outbox.send(pb::AdmitResponse {
                message: Some(message),
            });
        }
    }
}

impl Lane {
    /// From now on claims of older epochs are refused; what the gate did not admit for before, it gets whole.
    pub(super) fn open_stream(&mut self, stream: DispatcherStream) {
        for (shard, epoch) in &stream.leases {
            self.streams.learn(*shard, *epoch);
        }
        let id = stream.id;
        self.streams.ahead.clear();
        self.streams.close(id);
        self.streams.open.push(stream);
        for shard in self.shards.keys() {
            self.snapshot(id, *shard);
        }
    }

    /// Tells every gate all of a shard.
    pub(super) fn send_snapshots(&self, shard: i16) {
        for stream in &self.streams.open {
            self.snapshot(stream.id, shard);
        }
    }

    fn snapshot(&self, stream: DispatcherStreamId, shard: i16) {
        let Some(held) = self.shards.get(&shard) else {
            return;
        };
        let runs = held.runs.values();
        let mine = runs.filter(|run| {
            self.streams
                .of(&run.header.tenant)
                .is_some_and(|of| of.id == stream)
        });
        let mut parts = Parts::new(pb::AdmitSnapshot {
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
        parts.into_iter().for_each(|part| {
            self.streams
                .send_to(stream, SchedulerMessage::Snapshot(part))
        });
    }

    fn add_run(&self, run: &Run, parts: &mut Parts<pb::AdmitSnapshot>) {
        let mut items = Items::of(run);
        let ready = run
            .task_rows()
            .filter(|(_, task_row)| run.admits() && task_row.state == TaskState::Ready);
        let ready: Vec<TaskRef> = ready.map(|(task_ref, _)| task_ref).collect();
        for some in ready_runs(run, &ready, &mut items, &self.streams.starts) {
            parts.add(some.tasks.len(), |part| part.ready.push(some));
        }
        for attempt in run
            .task_rows()
            .filter_map(|(task_ref, task_row)| live(run, task_ref, task_row, &mut items))
        {
            parts.add(1, |part| part.live.push(attempt));
        }
    }
}

/// What is withdrawn comes first and what ended after what is ready, as within one message.
fn in_parts(update: pb::AdmitUpdate) -> Vec<pb::AdmitUpdate> {
    let mut parts = Parts::new(pb::AdmitUpdate {
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
fn still_ready(run: &Run, task_refs: &[TaskRef]) -> Vec<TaskRef> {
    let mut ready: Vec<TaskRef> = task_refs
        .iter()
        .copied()
        .filter(|task_ref| {
            run.task_row(*task_ref)
                .is_some_and(|task_row| task_row.state == TaskState::Ready)
        })
        .collect();
    ready.sort_unstable();
    ready.dedup();
    ready
}

fn ready_runs(
    run: &Run,
    task_refs: &[TaskRef],
    items: &mut Items<'_>,
    starts: &[Time],
) -> Vec<pb::ReadyRun> {
    let Some(plan) = &run.plan else {
        return Vec::new();
    };
    let plan_id = servo_model::Digest::from_bytes(plan.plan_id).to_string();
    let mut some = |task_refs: &[TaskRef]| pb::ReadyRun {
        tenant: run.header.tenant.to_string(),
        workspace: run.header.workspace.to_string(),
        run_id: run.header.run_id.to_string(),
        plan_id: plan_id.clone(),
        priority: run.header.priority,
        backfill: run.header.backfill,
        trace: trace(run),
        tasks: task_refs
            .iter()
            .filter_map(|task_ref| ready_task(run, *task_ref, items, starts))
            .collect(),
    };
    task_refs
        .chunks(ENTRIES_PER_MESSAGE_MAX)
        .map(&mut some)
        .collect()
}

fn ready_task(
    run: &Run,
    task_ref: TaskRef,
    items: &mut Items<'_>,
    starts: &[Time],
) -> Option<pb::ReadyTask> {
    let task_row = run.task_row(task_ref)?;
    Some(pb::ReadyTask {
        task: Some(wire::task_ref_to_proto(task_ref)),
        attempt: task_row.next_attempt(starts),
        failures: task_row.failures,
        ready_time: task_row.ready_at.map(wire::timestamp),
        item_json: items.take(task_ref).unwrap_or_default(),
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
    fn take(&mut self, task_ref: TaskRef) -> Option<String> {
        let over = self.run.plan.as_ref()?.task(task_ref.ordinal).mapped_over?;
        let item = task_ref.map_index?;
        let decoded = self
            .decoded
            .entry(task_ref.ordinal)
            .or_insert_with(|| self.run.items(over).map_or_else(Vec::new, decode));
        decoded.get_mut(item as usize).map(std::mem::take)
    }
}

fn decode((_, encoded): &(u32, Arc<[u8]>)) -> Vec<String> {
    pb::MappedItems::decode(&**encoded).map_or_else(|_| Vec::new(), |items| items.items_json)
}

fn live(
    run: &Run,
    task_ref: TaskRef,
    task_row: &TaskRow,
    items: &mut Items<'_>,
) -> Option<pb::LiveAttempt> {
    if !task_row.state.has_attempt() {
        return None;
    }
    let plan_id = servo_model::Digest::from_bytes(run.plan.as_ref()?.plan_id).to_string();
    Some(pb::LiveAttempt {
        tenant: run.header.tenant.to_string(),
        workspace: run.header.workspace.to_string(),
        run_id: run.header.run_id.to_string(),
        plan_id,
        task: Some(wire::task_ref_to_proto(task_ref)),
        attempt_id: task_row.attempt_id?.to_string(),
        attempt: task_row.attempt,
        mode: if task_row.pushed {
            pb::DispatchMode::Push
        } else {
            pb::DispatchMode::Pull
        }
        .into(),
        worker_id: task_row.worker.map_or_else(String::new, |id| {
            servo_model::WorkerId::from_bytes(id).to_string()
        }),
        claim_time: task_row.claimed_at.map(wire::timestamp),
        cancelling: task_row.cancelling,
        backfill: run.header.backfill,
        waiting: waits(task_row).then(|| pb::PushOrder {
            failures: task_row.failures,
            item_json: items.take(task_ref).unwrap_or_default(),
            trace: trace(run),
        }),
    })
}

/// Whether the queue is not known to have it.
fn waits(task_row: &TaskRow) -> bool {
    task_row.pushed && task_row.state == TaskState::Queued && !task_row.cancelling
}

fn trace(run: &Run) -> Option<pb::TraceContext> {
    let traceparent = run.header.traceparent.to_string();
    (!traceparent.is_empty()).then(|| pb::TraceContext {
        traceparent,
        tracestate: String::new(),
    })
}
