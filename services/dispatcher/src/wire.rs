//! Conversions between `servo.v1` and the core. Messages are validated here, once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use servo_model::{
    Digest, Epoch, ShardId, Stream, TaskKey, TaskRef, TenantScope, WorkerId, WorkspaceId,
};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::{from_proto_duration, from_proto_time, v1 as pb};

use crate::core::{
    AdmissionPlan, AdmissionTask, Demand, DispatchDetails, Ended, PlanRef, ReadyRun, ReadyTask,
    Resources, Snapshot, SnapshotAttempt, TenantLimits, Update, Withdrawn, Worker,
};

/// A message with an invalid field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {fault}")]
pub(crate) struct BadMessage {
    pub(crate) field: &'static str,
    pub(crate) fault: String,
}

fn bad(field: &'static str) -> impl Fn(servo_model::ids::IdError) -> BadMessage {
    move |error| BadMessage {
        field,
        fault: error.to_string(),
    }
}

pub(crate) fn snapshot(snapshot: mesh_pb::AdmitSnapshot) -> Result<Snapshot, BadMessage> {
    Ok(Snapshot {
        shard: shard(snapshot.shard)?,
        epoch: Epoch::new(snapshot.epoch),
        first: snapshot.first,
        last: snapshot.last,
        ready: snapshot
            .ready
            .into_iter()
            .map(ready_run)
            .collect::<Result<_, _>>()?,
        live: snapshot
            .live
            .into_iter()
            .map(live)
            .collect::<Result<_, _>>()?,
    })
}

pub(crate) fn update(update: mesh_pb::AdmitUpdate) -> Result<Update, BadMessage> {
    let attempt = |id: &str| id.parse().map_err(bad("attempt_id"));
    let ended = |ended: mesh_pb::EndedAttempt| {
        Ok(Ended {
            attempt_id: attempt(&ended.attempt_id)?,
            held: Duration::from_millis(ended.slot_ms),
        })
    };
    Ok(Update {
        shard: shard(update.shard)?,
        ready: update
            .ready
            .into_iter()
            .map(ready_run)
            .collect::<Result<_, _>>()?,
        withdrawn: update
            .withdrawn
            .into_iter()
            .map(withdrawn)
            .collect::<Result<_, _>>()?,
        ended: update
            .ended
            .into_iter()
            .map(ended)
            .collect::<Result<_, _>>()?,
        cancelled: update
            .cancelled
            .iter()
            .map(|live| attempt(&live.attempt_id))
            .collect::<Result<_, _>>()?,
    })
}

pub(crate) fn shard(number: u32) -> Result<ShardId, BadMessage> {
    Stream::Execution.shard(number).ok_or_else(|| BadMessage {
        field: "shard",
        fault: format!("there is no execution shard {number}"),
    })
}

pub(crate) fn task(task: Option<pb::TaskRef>) -> Result<TaskRef, BadMessage> {
    let task = task.ok_or_else(|| BadMessage {
        field: "task",
        fault: "is not set".to_owned(),
    })?;
    Ok(TaskRef {
        ordinal: task.ordinal,
        map_index: task.map_index,
    })
}

pub(crate) fn task_ref(task: TaskRef) -> pb::TaskRef {
    pb::TaskRef {
        ordinal: task.ordinal,
        map_index: task.map_index,
    }
}

pub(crate) fn dispatch_mode(pushed: bool) -> pb::DispatchMode {
    if pushed {
        pb::DispatchMode::Push
    } else {
        pb::DispatchMode::Pull
    }
}

pub(crate) fn announced_plans(
    announcement: mesh_pb::AdmitAnnouncement,
) -> Result<Vec<PlanRef>, BadMessage> {
    announcement
        .plans
        .iter()
        .map(|plan| plan_ref(&plan.tenant, &plan.workspace, &plan.plan_id))
        .collect()
}

fn plan_ref(tenant: &str, workspace: &str, plan_id: &str) -> Result<PlanRef, BadMessage> {
    Ok(PlanRef {
        tenant: tenant.parse().map_err(bad("tenant"))?,
        workspace: workspace.parse().map_err(bad("workspace"))?,
        plan_id: plan_id.parse::<Digest>().map_err(bad("plan_id"))?,
    })
}

fn ready_run(run: mesh_pb::ReadyRun) -> Result<ReadyRun, BadMessage> {
    let trace = run.trace.unwrap_or_default();
    Ok(ReadyRun {
        plan: plan_ref(&run.tenant, &run.workspace, &run.plan_id)?,
        run: run.run_id.parse().map_err(bad("run_id"))?,
        backfill: run.backfill,
        trace: (trace.traceparent, trace.tracestate),
        tasks: run
            .tasks
            .into_iter()
            .map(ready_task)
            .collect::<Result<_, _>>()?,
    })
}

fn ready_task(ready: mesh_pb::ReadyTask) -> Result<ReadyTask, BadMessage> {
    Ok(ReadyTask {
        task: task(ready.task)?,
        attempt: ready.attempt,
        failures: ready.failures,
        item_json: ready.item_json,
    })
}

fn live(live: mesh_pb::LiveAttempt) -> Result<SnapshotAttempt, BadMessage> {
    let pushed = live.mode() == pb::DispatchMode::Push;
    Ok(SnapshotAttempt {
        attempt_id: live.attempt_id.parse().map_err(bad("attempt_id"))?,
        run: live.run_id.parse().map_err(bad("run_id"))?,
        plan: plan_ref(&live.tenant, &live.workspace, &live.plan_id)?,
        task: task(live.task)?,
        attempt: live.attempt,
        worker: live.worker_id.parse().ok(),
        since: (live.claim_time.as_ref())
            .and_then(from_proto_time)
            .unwrap_or_else(servo_mesh::now),
        cancelling: live.cancelling,
        backfill: live.backfill,
        pushed,
        unsent: live.waiting.map(|waiting| {
            let trace = waiting.trace.unwrap_or_default();
            DispatchDetails {
                failures: waiting.failures,
                item_json: waiting.item_json.into(),
                trace: Arc::new((trace.traceparent, trace.tracestate)),
            }
        }),
    })
}

fn withdrawn(withdrawn: mesh_pb::WithdrawnRun) -> Result<Withdrawn, BadMessage> {
    Ok(Withdrawn {
        tenant: withdrawn.tenant.parse().map_err(bad("tenant"))?,
        run: withdrawn.run_id.parse().map_err(bad("run_id"))?,
    })
}

/// Extracts the part of a plan that admission needs.
pub(crate) fn admission_plan(plan: &pb::Plan) -> Result<AdmissionPlan, BadMessage> {
    let workspace: WorkspaceId = plan.workspace.parse().map_err(bad("workspace"))?;
    let assets: Vec<_> = plan
        .assets
        .iter()
        .map(|asset| (Arc::new(demand(&workspace, asset)), asset.priority))
        .collect();
    let task = |task: &pb::PlannedTask| {
        let key = task.task_key.parse::<TaskKey>();
        let key = key.map_err(|error| BadMessage {
            field: "task_key",
            fault: error.to_string(),
        })?;
        if task.asset as usize >= plan.assets.len() {
            let fault = format!(
                "{key} belongs to asset {} of {}",
                task.asset,
                plan.assets.len()
            );
            return Err(BadMessage {
                field: "asset",
                fault,
            });
        }
        Ok(AdmissionTask {
            asset: task.asset,
            key,
        })
    };
    let tasks = plan.tasks.iter().map(task).collect::<Result<_, _>>()?;
    Ok(AdmissionPlan { assets, tasks })
}

fn demand(workspace: &WorkspaceId, asset: &pb::PlannedAsset) -> Demand {
    let handler = asset.code.as_ref().and_then(|code| match &code.target {
        Some(pb::code_ref::Target::Handler(handler)) => Some(handler.name.as_str().into()),
        _ => None,
    });
    let resources = asset.resources.clone().unwrap_or_default();
    Demand {
        workspace: workspace.clone(),
        pool: (!asset.pool.is_empty()).then(|| asset.pool.as_str().into()),
        capabilities: texts(&resources.capabilities),
        handler,
        resources: core_resources(&resources),
    }
}

fn core_resources(resources: &pb::Resources) -> Resources {
    Resources {
        cpu_millicores: resources.cpu_millicores,
        memory_bytes: resources.memory_bytes,
        gpus: resources.gpus,
    }
}

/// Converts a worker's description of itself.
pub(crate) fn worker(
    id: WorkerId,
    session: &str,
    tenant: TenantScope,
    info: &pb::WorkerInfo,
    credits: u32,
) -> Result<Worker, BadMessage> {
    let workspaces = info
        .workspaces
        .iter()
        .map(|name| name.parse().map_err(bad("info.workspaces")));
    Ok(Worker {
        id,
        session: session.into(),
        tenant,
        workspaces: workspaces.collect::<Result<_, _>>()?,
        pools: texts(&info.pools),
        capabilities: texts(&info.capabilities),
        handlers: texts(&info.handlers),
        resources: core_resources(&info.resources.clone().unwrap_or_default()),
        slots: info.slots,
        credits,
        draining: false,
        pushed: !info.push_url.is_empty(),
    })
}

fn texts(texts: &[String]) -> BTreeSet<Arc<str>> {
    texts.iter().map(|text| Arc::from(text.as_str())).collect()
}

/// Converts the limits that the quota service sends for one tenant.
pub(crate) fn limits(message: &mesh_pb::TenantLimits) -> TenantLimits {
    let (limits, default) = (message.limits.unwrap_or_default(), TenantLimits::default());
    TenantLimits {
        max_concurrent_tasks: limits.max_concurrent_tasks,
        max_queued_tasks: limits.max_queued_tasks,
        weight_millis: limits.weight_millis.unwrap_or(default.weight_millis),
        backfill_floor_ppm: limits
            .backfill_floor_ppm
            .unwrap_or(default.backfill_floor_ppm),
        backfill_cap_ppm: limits.backfill_cap_ppm.unwrap_or(default.backfill_cap_ppm),
        pools: message
            .pools
            .iter()
            .map(|pool| (pool.pool.as_str().into(), pool.slots))
            .collect(),
        suspended: message.suspended,
        spent_budgets: message
            .budgets
            .iter()
            .filter(|budget| holds_all(budget))
            .filter_map(spent_budget)
            .collect(),
    }
}

/// Budgets over a selection of assets are not enforced here, because admission does not know
/// assets.
fn holds_all(budget: &pb::Budget) -> bool {
    budget.action() == pb::BudgetAction::HoldAll
        && budget.selection.is_empty()
        && budget.spent_micros >= budget.limit_micros
}

fn spent_budget(budget: &pb::Budget) -> Option<(Option<WorkspaceId>, Arc<str>)> {
    let workspace = match budget.workspace.as_str() {
        "" => None,
        name => Some(name.parse().ok()?),
    };
    Some((workspace, budget.budget_id.as_str().into()))
}

pub(crate) fn proto_duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: duration.as_secs() as i64,
        nanos: duration.subsec_nanos() as i32,
    }
}

/// Returns the duration, or `default` when it is unset or negative.
pub(crate) fn duration_or(duration: Option<prost_types::Duration>, default: Duration) -> Duration {
    duration
        .and_then(|duration| from_proto_duration(&duration))
        .unwrap_or(default)
}
