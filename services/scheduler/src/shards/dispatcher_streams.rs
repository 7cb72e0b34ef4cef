//! The messages to dispatchers, and which of their claims count.
//!
//! A dispatcher opens a stream per scheduler and announces the admission shards it holds, each with
//! the epoch of its lease. It first receives a snapshot of every execution shard that this instance
//! holds: the ready tasks of its tenants and their attempts in flight (`LiveAttempt`). Afterwards
//! each flush sends one update per execution shard with what changed. Of several streams for one
//! admission shard only the newest counts: it alone receives messages, and only its claims under
//! the newest epoch are folded. A claim from an older stream is refused, because its successor's
//! snapshot could not contain it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use prost::Message;
use servo_model::states::TaskState;
use servo_model::{AdmissionShard, Epoch, ShardId, TaskRef, TenantId, Timestamp};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::admit_response::Message as ToDispatcher;
use servo_proto::{proto_time, v1 as pb};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::lane::Lane;
use super::message_parts::{ENTRIES_PER_MESSAGE_MAX, Parts};
use crate::core::{Changes, Run, TaskRow};
use crate::wire;

/// How many announced plans are remembered. Beyond that all are forgotten and announced again when
/// used.
const ANNOUNCED_PLANS_MAX: usize = 4_096;

/// Identifies a dispatcher's stream within this process.
pub(crate) type DispatcherStreamId = u64;

/// A dispatcher's stream: its admission shards and its responses.
#[derive(Debug, Clone)]
pub(crate) struct DispatcherStream {
    pub id: DispatcherStreamId,
    /// The epoch under which it holds each admission shard.
    pub leases: BTreeMap<AdmissionShard, Epoch>,
    pub responses: mpsc::Sender<mesh_pb::AdmitResponse>,
    /// Ends the stream.
    pub stop: CancellationToken,
}

/// The dispatcher streams of a lane.
#[derive(Debug, Default)]
pub(super) struct DispatcherStreams {
    open: Vec<DispatcherStream>,
    /// The newest epoch of each admission shard; claims of older epochs are refused.
    epochs: BTreeMap<AdmissionShard, Epoch>,
    /// The updates of the current flush, by stream and execution shard.
    updates: BTreeMap<(DispatcherStreamId, ShardId), mesh_pb::AdmitUpdate>,
    /// The known starts of Postgres.
    postgres_starts: Vec<Timestamp>,
    /// Plans that were announced.
    announced: HashSet<[u8; 32]>,
}

impl DispatcherStreams {
    /// Whether a claim counts: it arrived on the newest stream for the admission shard, under the
    /// newest epoch.
    pub(super) fn accepts_claims_of(
        &self,
        stream: DispatcherStreamId,
        admission_shard: AdmissionShard,
        epoch: Epoch,
    ) -> bool {
        let newest = self.epochs.get(&admission_shard).copied();
        epoch >= newest.unwrap_or(Epoch::NEVER)
            && self
                .holder(admission_shard)
                .is_some_and(|holder| holder.id == stream)
    }

    /// Whether the stream is the one that admits the tenant's tasks.
    pub(super) fn is_holder_for(&self, stream: DispatcherStreamId, tenant: &TenantId) -> bool {
        self.holder_for(tenant)
            .is_some_and(|holder| holder.id == stream)
    }

    /// Records that an admission shard was held under this epoch.
    pub(super) fn note_epoch(&mut self, admission_shard: AdmissionShard, epoch: Epoch) {
        let newest = self.epochs.entry(admission_shard).or_default();
        *newest = (*newest).max(epoch);
    }

    pub(super) fn set_postgres_starts(&mut self, starts: Vec<Timestamp>) {
        self.postgres_starts = starts;
    }

    /// The number of a ready task's next attempt.
    pub(super) fn next_attempt(&self, task_row: &TaskRow) -> u32 {
        task_row.next_attempt(&self.postgres_starts)
    }

    pub(super) fn close(&mut self, stream: DispatcherStreamId) {
        self.open.retain(|open| open.id != stream);
    }

    /// Announces the plan of a run that is about to be stored, so that the dispatcher can read it
    /// in the meantime.
    pub(super) fn announce_plan(&mut self, run: &Run) {
        let Some((stream, plan)) = self
            .holder_for(&run.header.tenant)
            .map(|stream| stream.id)
            .zip(run.plan.as_ref())
        else {
            return;
        };
        if self.announced.len() >= ANNOUNCED_PLANS_MAX {
            self.announced.clear();
        }
        if self.announced.insert(plan.plan_id) {
            let plan = mesh_pb::PlanName {
                tenant: run.header.tenant.to_string(),
                workspace: run.header.workspace.to_string(),
                plan_id: servo_model::Digest::from_bytes(plan.plan_id).to_string(),
            };
            self.send_to(
                stream,
                ToDispatcher::Announcement(mesh_pb::AdmitAnnouncement { plans: vec![plan] }),
            );
        }
    }

    /// Adds the changes of a run to the update for its tenant's dispatcher.
    pub(super) fn record(&mut self, run: &Run, changes: &Changes) {
        let Some(stream) = self.holder_for(&run.header.tenant) else {
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
            && changes.cancelling.is_empty()
        {
            return;
        }
        let offers = ready_run_messages(run, &ready, &mut items, &self.postgres_starts);
        let update = self.updates.entry(key).or_default();
        update.shard = u32::from(key.1);
        if changes.withdrawn {
            update.withdrawn.push(mesh_pb::WithdrawnRun {
                tenant: run.header.tenant.to_string(),
                run_id: run.header.run_id.to_string(),
            });
        }
        update
            .ended
            .extend(
                changes
                    .ended
                    .iter()
                    .map(|(attempt_id, held_us)| mesh_pb::EndedAttempt {
                        tenant: run.header.tenant.to_string(),
                        attempt_id: attempt_id.to_string(),
                        slot_ms: u64::try_from(held_us / 1_000).unwrap_or(0),
                    }),
            );
        update
            .cancelled
            .extend(changes.cancelling.iter().filter_map(|task_ref| {
                live_attempt(run, *task_ref, run.task_row(*task_ref)?, &mut items)
            }));
        update.ready.extend(offers);
    }

    /// Sends the recorded updates.
    pub(super) fn send_updates(&mut self) {
        for ((stream, _), update) in std::mem::take(&mut self.updates) {
            split(update)
                .into_iter()
                .for_each(|part| self.send_to(stream, ToDispatcher::Update(part)));
        }
    }

    /// Discards updates that a panic left unsent; the shards' next snapshots replace them.
    pub(super) fn discard_updates(&mut self) {
        self.updates.clear();
    }

    /// Tells all dispatchers that this instance no longer holds the shard.
    pub(super) fn send_gone(&self, shard: ShardId) {
        for stream in &self.open {
            self.send_to(
                stream.id,
                ToDispatcher::Gone(mesh_pb::AdmitGone {
                    shard: u32::from(shard),
                }),
            );
        }
    }

    fn holder_for(&self, tenant: &TenantId) -> Option<&DispatcherStream> {
        self.holder(tenant.admission_shard())
    }

    /// The newest stream, because an older holder may still be connected.
    fn holder(&self, admission_shard: AdmissionShard) -> Option<&DispatcherStream> {
        let holders = self
            .open
            .iter()
            .filter(|stream| stream.leases.contains_key(&admission_shard));
        holders.max_by_key(|stream| (stream.leases[&admission_shard], stream.id))
    }

    /// Sends without waiting, because a lane does not wait for a dispatcher. A stream whose queue
    /// is full is stopped: the dispatcher opens a new one, which begins with snapshots. A stream
    /// that has ended is removed by the RPC handler that reads it.
    fn send_to(&self, stream: DispatcherStreamId, message: ToDispatcher) {
        let Some(open) = self.open.iter().find(|open| open.id == stream) else {
            return;
        };
        let response = mesh_pb::AdmitResponse {
            message: Some(message),
        };
        if let Err(mpsc::error::TrySendError::Full(_)) = open.responses.try_send(response) {
            tracing::warn!(stream, "a dispatcher does not read its stream; stopping it");
            open.stop.cancel();
        }
    }
}

impl Lane {
    /// Adds or replaces a stream and sends it a snapshot of every held shard. Claims of older
    /// epochs are refused from now on.
    pub(super) fn open_stream(&mut self, stream: DispatcherStream) {
        for (shard, epoch) in &stream.leases {
            self.streams.note_epoch(*shard, *epoch);
        }
        let id = stream.id;
        self.streams.announced.clear();
        self.streams.close(id);
        self.streams.open.push(stream);
        for shard in self.shards.keys() {
            self.snapshot(id, *shard);
        }
    }

    /// Sends a snapshot of a shard to every dispatcher.
    pub(super) fn send_snapshots(&self, shard: ShardId) {
        for stream in &self.streams.open {
            self.snapshot(stream.id, shard);
        }
    }

    fn snapshot(&self, stream: DispatcherStreamId, shard: ShardId) {
        let Some(held) = self.shards.get(&shard) else {
            return;
        };
        let runs = held.runs.values();
        let mine = runs.filter(|run| {
            self.streams
                .holder_for(&run.header.tenant)
                .is_some_and(|holder| holder.id == stream)
        });
        let mut parts = Parts::new(mesh_pb::AdmitSnapshot {
            shard: u32::from(shard),
            epoch: held.lease.epoch().get(),
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
            .for_each(|part| self.streams.send_to(stream, ToDispatcher::Snapshot(part)));
    }

    fn add_run(&self, run: &Run, parts: &mut Parts<mesh_pb::AdmitSnapshot>) {
        let mut items = Items::of(run);
        let ready = run
            .task_rows()
            .filter(|(_, task_row)| run.admits() && task_row.state == TaskState::Ready);
        let ready: Vec<TaskRef> = ready.map(|(task_ref, _)| task_ref).collect();
        for some in ready_run_messages(run, &ready, &mut items, &self.streams.postgres_starts) {
            parts.add(some.tasks.len(), |part| part.ready.push(some));
        }
        for attempt in run
            .task_rows()
            .filter_map(|(task_ref, task_row)| live_attempt(run, task_ref, task_row, &mut items))
        {
            parts.add(1, |part| part.live.push(attempt));
        }
    }
}

/// Keeps the order of one message: withdrawn before ready, ended after ready.
fn split(update: mesh_pb::AdmitUpdate) -> Vec<mesh_pb::AdmitUpdate> {
    let mut parts = Parts::new(mesh_pb::AdmitUpdate {
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

/// The tasks that are still ready at the end of the flush, each once.
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

fn ready_run_messages(
    run: &Run,
    task_refs: &[TaskRef],
    items: &mut Items<'_>,
    starts: &[Timestamp],
) -> Vec<mesh_pb::ReadyRun> {
    let Some(plan) = &run.plan else {
        return Vec::new();
    };
    let plan_id = servo_model::Digest::from_bytes(plan.plan_id).to_string();
    let mut some = |task_refs: &[TaskRef]| mesh_pb::ReadyRun {
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
    starts: &[Timestamp],
) -> Option<mesh_pb::ReadyTask> {
    let task_row = run.task_row(task_ref)?;
    Some(mesh_pb::ReadyTask {
        task: Some(wire::task_ref_to_proto(task_ref)),
        attempt: task_row.next_attempt(starts),
        failures: task_row.failures,
        ready_time: task_row.first_ready_at.map(proto_time),
        item_json: items.take(task_ref).unwrap_or_default(),
    })
}

/// The items of mapped tasks, decoded once per message.
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

    /// Returns a mapped task's item. Each item is used once, so it is not copied.
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

fn live_attempt(
    run: &Run,
    task_ref: TaskRef,
    task_row: &TaskRow,
    items: &mut Items<'_>,
) -> Option<mesh_pb::LiveAttempt> {
    if !task_row.state.has_attempt() {
        return None;
    }
    let plan_id = servo_model::Digest::from_bytes(run.plan.as_ref()?.plan_id).to_string();
    Some(mesh_pb::LiveAttempt {
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
        claim_time: task_row.claimed_at.map(proto_time),
        cancelling: task_row.cancelling,
        backfill: run.header.backfill,
        waiting: awaits_queue(task_row).then(|| mesh_pb::PushOrder {
            failures: task_row.failures,
            item_json: items.take(task_ref).unwrap_or_default(),
            trace: trace(run),
        }),
    })
}

/// Whether the push queue has not confirmed the attempt.
fn awaits_queue(task_row: &TaskRow) -> bool {
    task_row.pushed && task_row.state == TaskState::Queued && !task_row.cancelling
}

fn trace(run: &Run) -> Option<pb::TraceContext> {
    let traceparent = run.header.traceparent.to_string();
    (!traceparent.is_empty()).then(|| pb::TraceContext {
        traceparent,
        tracestate: String::new(),
    })
}
