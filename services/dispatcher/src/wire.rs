//! The door between `servo.v1` and the core: a message is doubted once, here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost_types::Timestamp;
use servo_model::{Digest, TaskKey, TenantId, WorkerId, WorkspaceId};
use servo_proto::v1 as pb;

use crate::core::{
    Demand, Ended, LiveTask, OfferedRun, OfferedTask, PlanRef, PushOrder, Room, Seconds, Shape,
    ShapedTask, Snapshot, Task, TenantLimits, Update, Withdrawn, Worker,
};

/// A message that cannot be read: the field and what is wrong with it.
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

pub(crate) fn snapshot(told: pb::AdmitSnapshot) -> Result<Snapshot, BadMessage> {
    Ok(Snapshot {
        shard: shard(told.shard)?,
        epoch: told.epoch,
        first: told.first,
        last: told.last,
        ready: told
            .ready
            .into_iter()
            .map(offered)
            .collect::<Result<_, _>>()?,
        live: told.live.into_iter().map(live).collect::<Result<_, _>>()?,
    })
}

pub(crate) fn update(told: pb::AdmitUpdate) -> Result<Update, BadMessage> {
    let attempt = |id: &str| id.parse().map_err(bad("attempt_id"));
    let ended = |ended: pb::EndedAttempt| {
        Ok(Ended {
            attempt_id: attempt(&ended.attempt_id)?,
            held: ended.slot_ms as f64 / 1e3,
        })
    };
    Ok(Update {
        shard: shard(told.shard)?,
        ready: told
            .ready
            .into_iter()
            .map(offered)
            .collect::<Result<_, _>>()?,
        withdrawn: told
            .withdrawn
            .into_iter()
            .map(withdrawn)
            .collect::<Result<_, _>>()?,
        ended: told
            .ended
            .into_iter()
            .map(ended)
            .collect::<Result<_, _>>()?,
        cancelled: told
            .cancelled
            .iter()
            .map(|live| attempt(&live.attempt_id))
            .collect::<Result<_, _>>()?,
    })
}

pub(crate) fn shard(shard: u32) -> Result<i16, BadMessage> {
    let known = i16::try_from(shard)
        .ok()
        .filter(|shard| *shard < servo_model::Stream::Execution.shards());
    known.ok_or_else(|| BadMessage {
        field: "shard",
        fault: format!("there is no shard {shard} of runs"),
    })
}

pub(crate) fn task(task: Option<pb::TaskRef>) -> Result<Task, BadMessage> {
    let task = task.ok_or_else(|| BadMessage {
        field: "task",
        fault: "is not set".to_owned(),
    })?;
    Ok(Task {
        ordinal: task.ordinal,
        map_index: task.map_index,
    })
}

pub(crate) fn task_ref(task: Task) -> pb::TaskRef {
    pb::TaskRef {
        ordinal: task.ordinal,
        map_index: task.map_index,
    }
}

pub(crate) fn plans(ahead: pb::AdmitAhead) -> Result<Vec<PlanRef>, BadMessage> {
    ahead
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

fn offered(run: pb::ReadyRun) -> Result<OfferedRun, BadMessage> {
    let trace = run.trace.unwrap_or_default();
    Ok(OfferedRun {
        plan: plan_ref(&run.tenant, &run.workspace, &run.plan_id)?,
        run: run.run_id.parse().map_err(bad("run_id"))?,
        backfill: run.backfill,
        trace: (trace.traceparent, trace.tracestate),
        tasks: run
            .tasks
            .into_iter()
            .map(offered_task)
            .collect::<Result<_, _>>()?,
    })
}

fn offered_task(ready: pb::ReadyTask) -> Result<OfferedTask, BadMessage> {
    Ok(OfferedTask {
        task: task(ready.task)?,
        attempt: ready.attempt,
        failures: ready.failures,
        since: ready.ready_time.map_or(0.0, seconds),
        item_json: ready.item_json,
    })
}

fn live(live: pb::LiveAttempt) -> Result<LiveTask, BadMessage> {
    let pushed = live.mode() == pb::DispatchMode::Push;
    Ok(LiveTask {
        attempt_id: live.attempt_id.parse().map_err(bad("attempt_id"))?,
        run: live.run_id.parse().map_err(bad("run_id"))?,
        plan: plan_ref(&live.tenant, &live.workspace, &live.plan_id)?,
        task: task(live.task)?,
        attempt: live.attempt,
        worker: live.worker_id.parse().ok(),
        since: live.claim_time.map_or_else(now, seconds),
        cancelling: live.cancelling,
        backfill: live.backfill,
        pushed,
        waiting: live.waiting.map(|waiting| {
            let trace = waiting.trace.unwrap_or_default();
            PushOrder {
                failures: waiting.failures,
                item_json: waiting.item_json,
                trace: (trace.traceparent, trace.tracestate),
            }
        }),
    })
}

fn withdrawn(withdrawn: pb::RunTasks) -> Result<Withdrawn, BadMessage> {
    Ok(Withdrawn {
        tenant: withdrawn.tenant.parse().map_err(bad("tenant"))?,
        run: withdrawn.run_id.parse().map_err(bad("run_id"))?,
        tasks: withdrawn
            .tasks
            .into_iter()
            .map(|one| task(Some(one)))
            .collect::<Result<_, _>>()?,
    })
}

/// What admission needs to know of a plan.
pub(crate) fn shape(plan: &pb::Plan) -> Result<Shape, BadMessage> {
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
        Ok(ShapedTask {
            asset: task.asset,
            key,
        })
    };
    let tasks = plan.tasks.iter().map(task).collect::<Result<_, _>>()?;
    Ok(Shape { assets, tasks })
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
        room: room(&resources),
    }
}

fn room(resources: &pb::Resources) -> Room {
    Room {
        cpu_millicores: resources.cpu_millicores,
        memory_bytes: resources.memory_bytes,
        gpus: resources.gpus,
    }
}

/// A worker as it describes itself.
pub(crate) fn worker(
    id: WorkerId,
    session: &str,
    tenant: Option<TenantId>,
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
        room: room(&info.resources.clone().unwrap_or_default()),
        slots: info.slots,
        credits,
        draining: false,
        pushed: !info.push_url.is_empty(),
    })
}

fn texts(texts: &[String]) -> BTreeSet<Arc<str>> {
    texts.iter().map(|text| Arc::from(text.as_str())).collect()
}

/// What the quota service says about one tenant.
pub(crate) fn limits(told: &pb::TenantLimits) -> TenantLimits {
    let (limits, default) = (told.limits.unwrap_or_default(), TenantLimits::default());
    TenantLimits {
        max_concurrent_tasks: limits.max_concurrent_tasks,
        max_queued_tasks: limits.max_queued_tasks,
        weight_millis: limits.weight_millis.unwrap_or(default.weight_millis),
        backfill_floor_ppm: limits
            .backfill_floor_ppm
            .unwrap_or(default.backfill_floor_ppm),
        backfill_cap_ppm: limits.backfill_cap_ppm.unwrap_or(default.backfill_cap_ppm),
        pools: told
            .pools
            .iter()
            .map(|pool| (pool.pool.as_str().into(), pool.slots))
            .collect(),
        suspended: told.suspended,
        spent: told
            .budgets
            .iter()
            .filter(|budget| holds_all(budget))
            .filter_map(spent)
            .collect(),
    }
}

/// Budgets over a selection of assets hold nothing here: admission does not know assets.
fn holds_all(budget: &pb::Budget) -> bool {
    budget.action() == pb::BudgetAction::HoldAll
        && budget.selection.is_empty()
        && budget.spent_micros >= budget.limit_micros
}

fn spent(budget: &pb::Budget) -> Option<(Option<WorkspaceId>, Arc<str>)> {
    let workspace = match budget.workspace.as_str() {
        "" => None,
        name => Some(name.parse().ok()?),
    };
    Some((workspace, budget.budget_id.as_str().into()))
}

pub(crate) fn seconds(time: Timestamp) -> Seconds {
    time.seconds as f64 + f64::from(time.nanos) / 1e9
}

pub(crate) fn timestamp(seconds: Seconds) -> Timestamp {
    let nanos = (seconds.fract() * 1e9) as i32;
    Timestamp {
        seconds: seconds as i64,
        nanos,
    }
}

pub(crate) fn stored_time(time: servo_store::Timestamp) -> Timestamp {
    timestamp(time.unix_us() as f64 / 1e6)
}

pub(crate) fn proto_duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: duration.as_secs() as i64,
        nanos: duration.subsec_nanos() as i32,
    }
}

/// The duration, or `default` when it is unset or negative.
pub(crate) fn duration_or(duration: Option<prost_types::Duration>, default: Duration) -> Duration {
    duration
        .and_then(|duration| Duration::try_from(duration).ok())
        .unwrap_or(default)
}

/// The wall clock; the core only ever gets it as an argument.
pub(crate) fn now() -> Seconds {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}
