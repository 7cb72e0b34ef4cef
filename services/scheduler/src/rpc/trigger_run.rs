//! TriggerRun: plan what is wanted, then append and fold the request together with its plan.

use std::sync::Arc;

use servo_mesh::{Caller, Error, Reason, current_trace};
use servo_model::RunKey;
use servo_proto::{request_fingerprint, v1};
use ulid::Ulid;
use uuid::Uuid;

use super::{Scheduler, answer};
use crate::core::{Graph, Verdict};
use crate::shards::{Ask, Done, DoneAs, NewRun};
use crate::wire;

/// What a tenant gets that says nothing else.
const MAX_TASKS: u32 = 50_000;
const MAX_DURATION_SECONDS: i64 = 24 * 3_600;

pub(super) async fn trigger_run(
    scheduler: &Scheduler,
    caller: &Caller,
    asked: v1::TriggerRunRequest,
) -> Result<v1::TriggerRunResponse, Error> {
    let (tenant, workspace) = (answer::tenant(&asked.tenant)?, answer::workspace(&asked.workspace)?);
    let spec = asked.spec.clone().ok_or_else(|| Error::bad_field("spec", "is missing; say what to run"))?;
    let key = run_key(&asked)?;
    let fingerprint = request_fingerprint(&spec)
        .map_err(|error| Error::bad_field("spec", format!("has no canonical form: {error}")))?;
    let order = v1::PlanOrder {
        tenant: asked.tenant.clone(),
        workspace: asked.workspace.clone(),
        spec: Some(spec.clone()),
        max_tasks: MAX_TASKS,
        ..Default::default()
    };
    let stored = scheduler.planning.plan(order).await?;
    let graph = graph(scheduler, &asked, &stored).await?;
    let run_id = scheduler.run_ids.derive(&tenant, &workspace, &key);
    let new = Arc::new(NewRun {
        tenant: asked.tenant.clone(),
        workspace: asked.workspace.clone(),
        run_id,
        request_event: event_id(),
        plan_event: event_id(),
        key: key.clone(),
        fingerprint,
        asked: v1::RunRequested {
            run_id: run_id.to_string(),
            run_key: key.to_string(),
            request_fingerprint: fingerprint.to_string(),
            generation: key.generation(),
            retry_of: String::new(),
            spec: Some(spec),
            trigger: Some(manual(&asked.request_id)),
            requested_by: Some(v1::Actor {
                principal: caller.principal.clone(),
                comment: asked.comment.clone(),
            }),
            max_duration: Some(prost_types::Duration { seconds: MAX_DURATION_SECONDS, nanos: 0 }),
        },
        plan_fingerprint: stored.plan_fingerprint.clone(),
        graph,
        trace: current_trace()
            .map(|trace| v1::TraceContext { traceparent: trace.to_string(), tracestate: String::new() }),
    });
    let done = scheduler
        .shards
        .submit(run_id.shard(), vec![Ask::Run(new.clone())])
        .await
        .map_err(answer::not_done)?;
    let done =
        done.into_iter().next().ok_or_else(|| Error::new(Reason::Internal, "the shard gave no answer"))?;
    respond(&asked, &new, done)
}

fn run_key(asked: &v1::TriggerRunRequest) -> Result<RunKey, Error> {
    match (asked.run_key.is_empty(), asked.request_id.is_empty()) {
        (false, _) => {
            RunKey::chosen(&asked.run_key).map_err(|error| Error::bad_field("run_key", error.to_string()))
        }
        (true, false) => RunKey::manual(&asked.request_id)
            .map_err(|error| Error::bad_field("request_id", error.to_string())),
        (true, true) => Err(Error::bad_field(
            "request_id",
            "is empty, and so is run_key; give one of them, so that a repeated call is no second run",
        )),
    }
}

/// The plan comes along unless it is large; then it lies where the planner stored it.
async fn graph(
    scheduler: &Scheduler,
    asked: &v1::TriggerRunRequest,
    stored: &v1::StoredPlan,
) -> Result<Arc<Graph>, Error> {
    let broken = |error: String| {
        tracing::error!(error, plan = stored.plan_id, "a plan cannot be read");
        Error::new(Reason::Internal, format!("plan {} cannot be read: {error}", stored.plan_id))
    };
    if let Some(plan) = &stored.plan {
        return scheduler.plans.learn(plan).map_err(|error| broken(error.to_string()));
    }
    let plan_id = stored.plan_id.parse::<servo_model::Digest>().map_err(|error| broken(error.to_string()))?;
    scheduler
        .plans
        .find(scheduler.store.loops(), &asked.tenant, &asked.workspace, *plan_id.as_bytes())
        .await
        .map_err(answer::store)?
        .ok_or_else(|| broken("it is not stored".to_owned()))
}

fn respond(asked: &v1::TriggerRunRequest, new: &NewRun, done: Done) -> Result<v1::TriggerRunResponse, Error> {
    let existing = match done.verdict {
        DoneAs::Core(Verdict::Folded) => false,
        DoneAs::Exists if asked.run_key_policy() != v1::RunKeyPolicy::Reject || asked.run_key.is_empty() => {
            true
        }
        DoneAs::Exists => return Err(conflict(asked, "another request")),
        DoneAs::Conflict(_) => return Err(conflict(asked, "another request with other contents")),
        DoneAs::Bad(why) => return Err(Error::new(Reason::Internal, why)),
        other => return Err(Error::new(Reason::Internal, format!("the shard answered {other:?}"))),
    };
    let run =
        done.run.map(|view| wire::run_from_view(&new.asked, Some(&new.graph), &new.plan_fingerprint, &view));
    Ok(v1::TriggerRunResponse {
        run,
        existing,
        accepted_event_id: Ulid::from(done.event_id.as_u128()).to_string(),
    })
}

fn conflict(asked: &v1::TriggerRunRequest, with: &str) -> Error {
    let key = &asked.run_key;
    let message = format!(
        "run_key `{key}` belongs to {with}; choose another key, or run_key_policy FORCE to repeat it"
    );
    Error::new(Reason::RunKeyConflict, message).with("run_key", key)
}

fn manual(request_id: &str) -> v1::Trigger {
    let manual = v1::ManualTrigger { request_id: request_id.to_owned() };
    v1::Trigger { source: Some(v1::trigger::Source::Manual(manual)) }
}

pub(super) fn event_id() -> Uuid {
    Uuid::from_u128(Ulid::generate().into())
}
