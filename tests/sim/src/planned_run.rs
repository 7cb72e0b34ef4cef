//! Random runs: plans with retries, short deadlines, pools and mapped tasks.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_dispatcher::core::{AdmissionPlan, AdmissionTask, Demand, PlanRef, Resources};
use servo_model::retry::{Backoff, RetryPolicy};
use servo_model::{
    AssetKey, AttemptId, Digest, DispatchId, Operation, RunId, TaskKey, TaskRef, TenantId,
    Timestamp,
};
use servo_scheduler::core::{AssetSettings, Plan, PlannedTask, RunHeader};

use crate::dice::Dice;
use crate::{MS, SECOND};

/// The pool that limits are set for.
pub const POOL: &str = "db";

/// A requested run, with its plan for the scheduler and for the dispatcher.
#[derive(Debug, Clone)]
pub struct PlannedRun {
    pub header: RunHeader,
    pub plan: Arc<Plan>,
    pub plan_ref: PlanRef,
    pub admission_plan: Arc<AdmissionPlan>,
    /// Requested by another service and planned afterwards, like a tick of a schedule.
    pub requested_by_others: bool,
    /// Planning fails.
    pub unplannable: bool,
}

impl PlannedRun {
    pub fn random(number: usize, tasks: u32, tenants: &[TenantId], dice: &mut Dice) -> PlannedRun {
        let tenant = dice.pick(tenants).clone();
        let mut id = dice.bytes();
        id[15] = number as u8;
        let run_id = RunId::from_bytes(id);
        let plan_id = Digest::of(run_id.as_bytes());
        let plan = Arc::new(plan(&plan_id, tasks, dice));
        let plan_ref = PlanRef {
            tenant: tenant.clone(),
            workspace: "prod".parse().expect("a name"),
            plan_id,
        };
        let others = dice.percent(20);
        let admission_plan = Arc::new(admission_plan(&plan, &plan_ref));
        PlannedRun {
            header: header(run_id, &tenant, dice),
            plan,
            plan_ref,
            admission_plan,
            requested_by_others: others,
            unplannable: others && dice.percent(25),
        }
    }

    /// A conflicting request under the same run key.
    pub fn conflicting(&self) -> PlannedRun {
        let mut conflicting = self.clone();
        conflicting.header.fingerprint = [2; 32];
        conflicting
    }

    pub fn run_id(&self) -> RunId {
        self.header.run_id
    }

    pub fn attempt_id(&self, task_ref: TaskRef, attempt: u32) -> AttemptId {
        let planned = &self.plan.task(task_ref.ordinal).key;
        let key = task_ref
            .map_index
            .map_or_else(|| planned.clone(), |item| planned.child(item));
        DispatchId::new(&self.run_id(), &key, attempt).attempt_id()
    }

    /// Whether the task is delivered by the push queue.
    pub fn is_pushed(&self, task_ref: TaskRef) -> bool {
        task_ref.ordinal % 5 == 3
    }

    /// Whether the task provides items for a mapped task.
    pub fn is_mapped_over(&self, ordinal: u32) -> bool {
        self.plan
            .tasks
            .iter()
            .any(|task| task.mapped_over == Some(ordinal))
    }
}

fn header(run_id: RunId, tenant: &TenantId, dice: &mut Dice) -> RunHeader {
    // Replaced when the run is recorded, because the deadline counts from then.
    let duration = if dice.percent(20) {
        dice.between(3, 12) * SECOND
    } else {
        600 * SECOND
    };
    RunHeader {
        run_id,
        number: 0,
        tenant: tenant.clone(),
        workspace: "prod".parse().expect("a name"),
        fingerprint: [1; 32],
        created_at: Timestamp::UNIX_EPOCH,
        deadline: Some(Timestamp::UNIX_EPOCH.plus_us(duration)),
        priority: dice.between(0, 2) as i32,
        backfill: dice.percent(20),
        trigger: servo_scheduler::core::TriggerType::Manual,
        traceparent: "".into(),
    }
}

fn plan(plan_id: &Digest, tasks: u32, dice: &mut Dice) -> Plan {
    let mut planned: Vec<PlannedTask> = Vec::new();
    for ordinal in 0..tasks {
        let ups = if ordinal == 0 {
            0
        } else {
            dice.below(3).min(u64::from(ordinal))
        };
        let upstream: BTreeSet<u32> = (0..ups)
            .map(|_| dice.below(u64::from(ordinal)) as u32)
            .collect();
        let mapped_over = upstream.first().copied().filter(|_| dice.percent(25));
        // As the planner does: never downstream of a task that runs, and never a task that provides
        // items.
        let current =
            mapped_over.is_none() && upstream.iter().all(|up| planned[*up as usize].up_to_date);
        let up_to_date = current && dice.percent(12);
        if let Some(over) = mapped_over {
            must_run(&mut planned, over);
        }
        planned.push(PlannedTask {
            key: TaskKey::new(
                AssetKey::new("t", &format!("a{ordinal}")).expect("a name"),
                None,
                Operation::Materialize,
            ),
            asset: ordinal,
            partition_key: "".into(),
            upstream: upstream.into_iter().collect(),
            mapped_over,
            up_to_date,
        });
    }
    let assets = (0..tasks).map(|asset| settings(asset, dice)).collect();
    Plan::new(*plan_id.as_bytes(), "d".into(), assets, planned).expect("built in topological order")
}

/// Marks a task and everything downstream of it as not up to date.
fn must_run(planned: &mut [PlannedTask], ordinal: u32) {
    planned[ordinal as usize].up_to_date = false;
    for later in ordinal as usize + 1..planned.len() {
        let runs = planned[later]
            .upstream
            .iter()
            .any(|up| !planned[*up as usize].up_to_date);
        planned[later].up_to_date &= !runs;
    }
}

fn settings(asset: u32, dice: &mut Dice) -> AssetSettings {
    let initial_delay_ms = dice.between(200, 900).unsigned_abs();
    AssetSettings {
        asset_key: format!("t/a{asset}").into(),
        also_makes: Vec::new(),
        retry: RetryPolicy {
            backoff: *dice.pick(Backoff::ALL),
            initial_delay_ms,
            max_delay_ms: 2_000,
            max_attempts: dice.between(1, 4) as u32,
            ..RetryPolicy::default()
        },
        retry_types: Vec::new(),
        never_types: Vec::new(),
        execution_us: dice.between(2_000, 8_000) * MS,
        dispatch_ack_us: dice.between(1_000, 3_000) * MS,
        heartbeat_us: 2_000 * MS,
        pool: if dice.percent(40) {
            POOL.into()
        } else {
            "".into()
        },
        priority: dice.between(0, 1) as i32,
        code_version: "".into(),
    }
}

fn admission_plan(plan: &Plan, plan_ref: &PlanRef) -> AdmissionPlan {
    let demand = |settings: &AssetSettings| Demand {
        workspace: plan_ref.workspace.clone(),
        pool: Some(settings.pool.clone()).filter(|pool| !pool.is_empty()),
        capabilities: BTreeSet::new(),
        handler: None,
        resources: Resources::default(),
    };
    AdmissionPlan {
        assets: plan
            .assets
            .iter()
            .map(|asset| (Arc::new(demand(asset)), asset.priority))
            .collect(),
        tasks: plan
            .tasks
            .iter()
            .map(|task| AdmissionTask {
                asset: task.asset,
                key: task.key.clone(),
            })
            .collect(),
    }
}
