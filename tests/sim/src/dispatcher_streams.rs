//! The messages of a scheduler to dispatchers, and which claims count: a model of
//! `shards/dispatcher_streams.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use servo_dispatcher::core::{
    Ended, ReadyRun, ReadyTask, SchedulerStreamId, Snapshot, SnapshotAttempt, Update, Withdrawn,
};
use servo_model::states::TaskState;
use servo_model::{AdmissionShard, Epoch, ShardId, TaskRef, TenantId, Timestamp, WorkerId};
use servo_scheduler::core::{Changes, Run, TaskRow};

use crate::bugs::Bug;
use crate::dispatcher::ToDispatcher;
use crate::env::{Env, Message};
use crate::planned_run::PlannedRun;

/// A dispatcher's stream.
#[derive(Debug, Clone)]
pub struct DispatcherStream {
    pub stream_id: SchedulerStreamId,
    pub dispatcher: usize,
    pub leases: BTreeMap<AdmissionShard, Epoch>,
}

#[derive(Debug, Default)]
pub struct DispatcherStreams {
    open: Vec<DispatcherStream>,
    /// The newest epoch of each admission shard; claims of older epochs are refused.
    epochs: BTreeMap<AdmissionShard, Epoch>,
    updates: BTreeMap<(SchedulerStreamId, ShardId), Update>,
    /// How many streams were opened, for the bug that forgets snapshots.
    pub seen: u32,
}

impl DispatcherStreams {
    /// Whether a claim counts: it arrived on the newest stream for the admission shard, under the
    /// newest epoch.
    pub fn admits(
        &self,
        stream_id: SchedulerStreamId,
        admission_shard: AdmissionShard,
        epoch: Epoch,
        bug: Bug,
    ) -> bool {
        let newest = self
            .epochs
            .get(&admission_shard)
            .copied()
            .unwrap_or(Epoch::NEVER);
        let current = epoch >= newest
            && self
                .holder(admission_shard)
                .is_some_and(|stream| stream.stream_id == stream_id);
        current || bug == Bug::ClaimNotChecked
    }

    /// Records an epoch; claims of older epochs are refused.
    pub fn note_epoch(&mut self, admission_shard: AdmissionShard, epoch: Epoch) {
        let newest = self.epochs.entry(admission_shard).or_default();
        *newest = (*newest).max(epoch);
    }

    pub fn open(&mut self, stream: DispatcherStream) {
        stream
            .leases
            .iter()
            .for_each(|(shard, epoch)| self.note_epoch(*shard, *epoch));
        self.close(stream.stream_id);
        self.open.push(stream);
        self.seen += 1;
    }

    pub fn close(&mut self, stream_id: SchedulerStreamId) {
        self.open.retain(|open| open.stream_id != stream_id);
    }

    pub fn stream_ids(&self) -> Vec<SchedulerStreamId> {
        self.open.iter().map(|stream| stream.stream_id).collect()
    }

    pub fn leases_of(
        &self,
        stream_id: SchedulerStreamId,
    ) -> impl Iterator<Item = (&AdmissionShard, &Epoch)> {
        self.open
            .iter()
            .filter(move |stream| stream.stream_id == stream_id)
            .flat_map(|stream| &stream.leases)
    }

    /// Adds the changes of a run to the update for its tenant's dispatcher.
    pub fn record(
        &mut self,
        run: &Run,
        changes: &Changes,
        planned: &PlannedRun,
        starts: &[Timestamp],
    ) {
        let Some(stream) = self.holder_for(&run.header.tenant) else {
            return;
        };
        let shard = run.header.run_id.shard();
        let key = (stream.stream_id, shard);
        let ready = if run.admits() {
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
        let update = self.updates.entry(key).or_insert_with(|| Update {
            shard,
            ready: Vec::new(),
            withdrawn: Vec::new(),
            ended: Vec::new(),
            cancelled: Vec::new(),
        });
        if changes.withdrawn {
            let (tenant, run) = (run.header.tenant.clone(), run.header.run_id);
            update.withdrawn.push(Withdrawn { tenant, run });
        }
        let ended = |(attempt_id, held_us): &(_, i64)| Ended {
            attempt_id: *attempt_id,
            held: Duration::from_millis((*held_us / 1_000).unsigned_abs()),
        };
        update.ended.extend(changes.ended.iter().map(ended));
        let attempt = |task_ref: &TaskRef| {
            run.task_row(*task_ref)
                .filter(|task_row| task_row.state.has_attempt())?
                .attempt_id
        };
        update
            .cancelled
            .extend(changes.cancelling.iter().filter_map(attempt));
        update.ready.extend(ready_run(run, &ready, planned, starts));
    }

    /// Sends the recorded updates.
    pub fn send_updates(&mut self, env: &mut Env) {
        for ((stream_id, _), update) in std::mem::take(&mut self.updates) {
            self.send_to(
                stream_id,
                ToDispatcher::Update(stream_id, Box::new(update)),
                env,
            );
        }
    }

    pub fn send_gone(&mut self, shard: ShardId, env: &mut Env) {
        for stream_id in self.stream_ids() {
            self.send_to(stream_id, ToDispatcher::Gone(stream_id, shard), env);
        }
    }

    pub fn is_holder_for(&self, stream_id: SchedulerStreamId, tenant: &TenantId) -> bool {
        self.holder_for(tenant)
            .is_some_and(|stream| stream.stream_id == stream_id)
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
        holders.max_by_key(|stream| (stream.leases[&admission_shard], stream.stream_id))
    }

    pub fn send_to(&self, stream_id: SchedulerStreamId, message: ToDispatcher, env: &mut Env) {
        let Some(stream) = self
            .open
            .iter()
            .find(|stream| stream.stream_id == stream_id)
        else {
            return;
        };
        env.on_wire(
            stream_id.0,
            0,
            0,
            Message::Dispatcher(stream.dispatcher, message),
        );
    }
}

/// The snapshot of a shard for one stream.
pub fn snapshot<'a>(
    shard: ShardId,
    epoch: Epoch,
    runs: impl Iterator<Item = &'a Run>,
    env: &Env,
) -> Snapshot {
    let mut whole = Snapshot {
        shard,
        epoch,
        first: true,
        last: true,
        ready: Vec::new(),
        live: Vec::new(),
    };
    for run in runs {
        let Some(planned) = env.planned_runs.get(&run.header.run_id) else {
            continue;
        };
        let ready = run
            .task_rows()
            .filter(|(_, task_row)| task_row.state == TaskState::Ready)
            .map(|(task_ref, _)| task_ref);
        let ready: Vec<TaskRef> = ready.collect();
        whole.live.extend(
            run.task_rows()
                .filter_map(|(task_ref, task_row)| live(run, task_ref, task_row, planned)),
        );
        if run.admits() {
            whole
                .ready
                .extend(ready_run(run, &ready, planned, &env.ledger.starts));
        }
    }
    whole
}

fn still_ready(run: &Run, task_refs: &[TaskRef]) -> Vec<TaskRef> {
    let is_ready = |task_ref: &TaskRef| {
        run.task_row(*task_ref)
            .is_some_and(|task_row| task_row.state == TaskState::Ready)
    };
    let mut ready: Vec<TaskRef> = task_refs.iter().copied().filter(is_ready).collect();
    ready.sort_unstable();
    ready.dedup();
    ready
}

fn ready_run(
    run: &Run,
    task_refs: &[TaskRef],
    planned: &PlannedRun,
    starts: &[Timestamp],
) -> Option<ReadyRun> {
    let task = |task_ref: &TaskRef| {
        let task_row = run.task_row(*task_ref)?;
        Some(ReadyTask {
            task: *task_ref,
            attempt: task_row.next_attempt(starts),
            failures: task_row.failures,
            item_json: String::new(),
        })
    };
    (!task_refs.is_empty()).then(|| ReadyRun {
        run: run.header.run_id,
        plan: planned.plan_ref.clone(),
        backfill: run.header.backfill,
        trace: Default::default(),
        tasks: task_refs.iter().filter_map(task).collect(),
    })
}

fn live(
    run: &Run,
    task_ref: TaskRef,
    task_row: &TaskRow,
    planned: &PlannedRun,
) -> Option<SnapshotAttempt> {
    task_row.state.has_attempt().then_some(())?;
    Some(SnapshotAttempt {
        attempt_id: task_row.attempt_id?,
        run: run.header.run_id,
        plan: planned.plan_ref.clone(),
        task: task_ref,
        attempt: task_row.attempt,
        worker: task_row.worker.map(WorkerId::from_bytes),
        since: task_row.claimed_at.unwrap_or(Timestamp::UNIX_EPOCH),
        cancelling: task_row.cancelling,
        backfill: run.header.backfill,
        pushed: false,
        unsent: None,
    })
}
