//! Helpers to build a run and apply events to it.

use std::sync::Arc;

use proptest::prelude::*;
use servo_model::retry::{Backoff, ErrorCategory, RetryPolicy};
use servo_model::states::TaskState;
use servo_model::{AssetKey, AttemptId, DispatchId, Operation, RunId, TaskKey, TaskRef, Timestamp};

use crate::core::{
    AssetSettings, Changes, Event, Finished, Outcome, Plan, PlannedTask, Run, RunHeader, TimerKind,
    TriggerType, Verdict, fold,
};

pub(super) const RUN: RunId = RunId::from_bytes([7; 16]);
pub(super) const ACK_US: i64 = 30_000_000;

pub(super) fn settings(asset: usize, max_attempts: u32) -> AssetSettings {
    AssetSettings {
        asset_key: format!("t/a{asset}").into(),
        also_makes: Vec::new(),
        retry: RetryPolicy {
            backoff: Backoff::Constant,
            initial_delay_ms: 1_000,
            max_delay_ms: 1_000,
            max_attempts,
            ..RetryPolicy::default()
        },
        retry_types: vec!["Flaky".to_owned()],
        never_types: vec!["Hopeless".to_owned()],
        execution_us: 3_600_000_000,
        dispatch_ack_us: ACK_US,
        heartbeat_us: 300_000_000,
        pool: "".into(),
        priority: 0,
        code_version: "".into(),
    }
}

/// A plan from the upstreams of each task.
pub(super) fn plan(upstreams: &[&[u32]]) -> Arc<Plan> {
    mapped_plan(upstreams, &[])
}

pub(super) fn mapped_plan(upstreams: &[&[u32]], mapped: &[(u32, u32)]) -> Arc<Plan> {
    whole_plan(upstreams, mapped, &[])
}

/// The tasks in `fresh` are up to date.
pub(super) fn whole_plan(upstreams: &[&[u32]], mapped: &[(u32, u32)], fresh: &[u32]) -> Arc<Plan> {
    let tasks = (0u32..)
        .zip(upstreams)
        .map(|(ordinal, upstream)| PlannedTask {
            key: TaskKey::new(
                AssetKey::new("t", &format!("a{ordinal}")).unwrap(),
                None,
                Operation::Materialize,
            ),
            asset: ordinal,
            partition_key: "".into(),
            upstream: (*upstream).into(),
            mapped_over: mapped
                .iter()
                .find(|(task, _)| *task == ordinal)
                .map(|(_, over)| *over),
            up_to_date: fresh.contains(&ordinal),
        });
    let assets = (0..upstreams.len())
        .map(|asset| settings(asset, 2))
        .collect();
    Arc::new(Plan::new([9; 32], "d".into(), assets, tasks.collect()).unwrap())
}

pub(super) fn requested() -> Run {
    Run::requested(RunHeader {
        run_id: RUN,
        number: 1,
        tenant: "acme".parse().unwrap(),
        workspace: "prod".parse().unwrap(),
        fingerprint: [1; 32],
        created_at: Timestamp::UNIX_EPOCH,
        deadline: Some(Timestamp::from_unix_seconds(86_400)),
        priority: 0,
        backfill: false,
        trigger: TriggerType::Manual,
        traceparent: "".into(),
    })
}

pub(super) fn attempt_id(plan: &Plan, task_ref: TaskRef, attempt: u32) -> AttemptId {
    let planned = &plan.task(task_ref.ordinal).key;
    let key = task_ref
        .map_index
        .map_or_else(|| planned.clone(), |item| planned.child(item));
    DispatchId::new(&RUN, &key, attempt).attempt_id()
}

/// A run with its plan and the collected changes.
pub(super) struct World {
    pub(super) run: Run,
    pub(super) plan: Arc<Plan>,
    pub(super) changes: Changes,
    pub(super) now: Timestamp,
}

impl World {
    pub(super) fn begun(plan: Arc<Plan>) -> World {
        let mut world = World {
            run: requested(),
            plan: plan.clone(),
            changes: Changes::default(),
            now: Timestamp::from_unix_us(1),
        };
        assert_eq!(world.fold(&Event::PlanCreated { plan }), Verdict::Folded);
        world
    }

    pub(super) fn fold(&mut self, event: &Event) -> Verdict {
        self.now = self.now.plus_us(1_000);
        fold(&mut self.run, event, self.now, &mut self.changes)
    }

    pub(super) fn claim(&mut self, task_ref: TaskRef) -> Verdict {
        let attempt = self.run.task_row(task_ref).unwrap().attempt + 1;
        let event = claimed(&self.plan, task_ref, attempt);
        self.fold(&event)
    }

    pub(super) fn start(&mut self, task_ref: TaskRef, session: u64) -> Verdict {
        let attempt_id = self.active(task_ref);
        self.fold(&Event::TaskStarted {
            task: task_ref,
            attempt_id,
            worker: None,
            session,
        })
    }

    pub(super) fn finish(&mut self, task_ref: TaskRef, outcome: Outcome) -> Verdict {
        let event = finished(task_ref, self.active(task_ref), outcome);
        self.fold(&event)
    }

    pub(super) fn timer(&mut self, task_ref: TaskRef, kind: TimerKind) -> Verdict {
        let attempt_id = Some(self.active(task_ref));
        self.fold(&Event::TimerFired {
            kind,
            task: Some(task_ref),
            attempt_id,
        })
    }

    pub(super) fn active(&self, task_ref: TaskRef) -> AttemptId {
        self.run.task_row(task_ref).unwrap().attempt_id.unwrap()
    }

    pub(super) fn state(&self, task_ref: TaskRef) -> TaskState {
        self.run.task_row(task_ref).unwrap().state
    }

    pub(super) fn states(&self) -> Vec<TaskState> {
        self.run
            .task_rows()
            .map(|(_, task_row)| task_row.state)
            .collect()
    }

    /// Claims and finishes ready tasks until there are none.
    pub(super) fn run_down(&mut self, outcome: impl Fn(TaskRef) -> Outcome) {
        loop {
            let ready = self
                .run
                .task_rows()
                .find(|(_, task_row)| task_row.state == TaskState::Ready)
                .map(|(task_ref, _)| task_ref);
            let Some(task_ref) = ready else { return };
            assert_eq!(self.claim(task_ref), Verdict::Folded);
            self.finish(task_ref, outcome(task_ref));
        }
    }
}

pub(super) fn claimed(plan: &Plan, task: TaskRef, attempt: u32) -> Event {
    let attempt_id = attempt_id(plan, task, attempt);
    Event::DispatchRequested {
        task,
        attempt,
        attempt_id,
        worker: None,
        pushed: false,
        ack_us: ACK_US,
    }
}

pub(super) fn finished(task: TaskRef, attempt_id: AttemptId, outcome: Outcome) -> Event {
    Event::TaskFinished(Box::new(Finished {
        task,
        attempt_id,
        worker: None,
        session: 1,
        started_at: Some(Timestamp::from_unix_us(5)),
        outcome,
        outputs: Vec::new(),
        items: None,
        checks: Vec::new(),
        error: Vec::new(),
        message: "broken".to_owned(),
    }))
}

pub(super) fn failed(category: ErrorCategory) -> Outcome {
    Outcome::Failed {
        category,
        error_type: String::new(),
        retriable: None,
    }
}

pub(super) fn quarantined(has_good_version: bool) -> Outcome {
    Outcome::Quarantined { has_good_version }
}

pub(super) fn p(ordinal: u32) -> TaskRef {
    TaskRef::planned(ordinal)
}

/// Plans of up to `max` tasks with random upstreams. Some tasks are up to date, but never
/// downstream of one that is not.
pub(super) fn any_plan(max: usize) -> impl Strategy<Value = Arc<Plan>> {
    prop::collection::vec((any::<u16>(), prop::bool::weighted(0.3)), 1..=max).prop_map(|tasks| {
        let (mut upstreams, mut fresh): (Vec<Vec<u32>>, Vec<u32>) = (Vec::new(), Vec::new());
        for (ordinal, (mask, current)) in (0u32..).zip(tasks) {
            let upstream: Vec<u32> = (0..ordinal.min(16))
                .filter(|up| mask & (1 << up) != 0)
                .collect();
            fresh.extend(
                (current && upstream.iter().all(|up| fresh.contains(up))).then_some(ordinal),
            );
            upstreams.push(upstream);
        }
        let slices: Vec<&[u32]> = upstreams.iter().map(Vec::as_slice).collect();
        whole_plan(&slices, &[], &fresh)
    })
}
