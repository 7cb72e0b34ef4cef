//! A run that begins: planned, then appended and folded together with its plan.

use std::sync::Arc;

use prost::Message as _;
use servo_mesh::{Caller, Error, Reason, current_trace};
use servo_model::json::to_canonical;
use servo_model::limits::RUN_REQUEST_BYTES_MAX;
use servo_model::request::RequestFingerprint;
use servo_model::{Digest, RunKey, TenantId, WorkspaceId};
use servo_proto::v1 as pb;
use tracing::{Instrument, info_span};

use super::{Scheduler, answer, get_run};
use crate::core::Plan;
use crate::shards::{Command, NewPlan, NewRun, event_id};
use crate::wire;

/// What the event holds beside the request: a trace, its frame.
const FRAME_BYTES_MAX: usize = 1_024;

/// A call that asks for a run.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) tenant: TenantId,
    pub(super) workspace: WorkspaceId,
    pub(super) request_id: String,
    /// Of everything it says, to tell a repeat from another call under the same id.
    pub(super) digest: String,
    pub(super) actor: pb::Actor,
}

impl Call {
    /// `said` is the method and whatever else makes this call the one it is.
    pub(super) fn new(
        caller: &Caller,
        (tenant, workspace): (&str, &str),
        request_id: &str,
        comment: &str,
        said: &[&str],
    ) -> Result<Call, Error> {
        answer::request_id(request_id)?;
        answer::comment(comment)?;
        let said: Vec<&str> = said.iter().copied().chain([comment]).collect();
        let said =
            to_canonical(&said).map_err(|error| Error::bad_field("comment", error.to_string()))?;
        Ok(Call {
            tenant: answer::tenant(tenant)?,
            workspace: answer::workspace(workspace)?,
            request_id: request_id.to_owned(),
            digest: Digest::of(said).to_string(),
            actor: pb::Actor {
                principal: caller.principal.clone(),
                comment: comment.to_owned(),
            },
        })
    }

    /// Whether a run that names this request_id was asked for by this very call.
    pub(super) fn check_repeat(&self, requested: &pb::RunRequested) -> Result<(), Error> {
        let first =
            wire::manual_trigger(requested).map_or("", |manual| manual.body_digest.as_str());
        if first.is_empty() || first == self.digest {
            return Ok(());
        }
        let message = format!(
            "request_id `{}` was used before by a call that said something else; choose a new one",
            self.request_id
        );
        Err(Error::new(Reason::RequestIdReused, message).with("run_id", &requested.run_id))
    }
}

/// A run to begin for a call.
pub(super) struct Start {
    pub(super) key: RunKey,
    pub(super) fingerprint: RequestFingerprint,
    /// What was asked for.
    pub(super) spec: pb::RunSpec,
    /// What is planned for it.
    pub(super) order: pb::PlanOrder,
    /// The run that it repeats; empty for a first one.
    pub(super) retry_of: String,
}

pub(super) enum Started {
    Run {
        run: Box<pb::Run>,
        event_id: String,
    },
    /// Somebody else's run took the place meanwhile.
    Taken,
}

/// Plans it and has it begun.
pub(super) async fn start(
    scheduler: &Scheduler,
    call: &Call,
    start: Start,
) -> Result<Started, Error> {
    let limits = scheduler.limits_of(&call.tenant).unwrap_or_default();
    limits
        .check_runs_anything()
        .map_err(|sentence| over_quota(call, Error::new(Reason::QuotaExceeded, sentence)))?;
    let order = pb::PlanOrder {
        tenant: call.tenant.to_string(),
        workspace: call.workspace.to_string(),
        max_tasks: limits.max_tasks_per_run,
        ..start.order.clone()
    };
    let span = info_span!(
        "servo.plan_run",
        tenant_id = %call.tenant,
        workspace_id = %call.workspace,
        trigger_type = "manual"
    );
    let stored = scheduler.plan_batcher.plan(order).instrument(span).await;
    let stored = stored.map_err(|error| over_quota(call, error))?;
    let plan = plan(scheduler, call, &stored).await?;
    let tasks_count = plan.tasks.len();
    let plan = NewPlan {
        event_id: event_id(),
        plan_fingerprint: stored.plan_fingerprint,
        plan,
    };
    let new = Arc::new(request(scheduler, call, start, Some(plan)));
    check_size(&new.requested)?;
    let span =
        info_span!("servo.start_run", run_id = %new.run_id, plan_id = stored.plan_id, tasks_count);
    let done = scheduler
        .route
        .submit_one(Command::Run(new.clone()))
        .instrument(span)
        .await?;
    match (done.applied.acceptance(), done.applied.refusal()) {
        (pb::Acceptance::Folded, _) => {
            let event_id = done.applied.event_id;
            let run = match (done.run, &new.plan) {
                // One that waits does not follow its plan yet.
                (Some(standing), Some(_)) if standing.start_time.is_none() => {
                    wire::run_from_standing(&new.requested, None, "", standing)
                }
                (Some(standing), Some(plan)) => wire::run_from_standing(
                    &new.requested,
                    Some(&plan.plan),
                    &plan.plan_fingerprint,
                    standing,
                ),
                // An older version does not say how it stands.
                _ => {
                    get_run::find(
                        scheduler,
                        &new.tenant,
                        &new.workspace,
                        &new.requested.run_id,
                    )
                    .await?
                }
            };
            Ok(Started::Run {
                run: Box::new(run),
                event_id,
            })
        }
        (pb::Acceptance::Duplicate, _) | (_, Reason::RunKeyConflict) => Ok(Started::Taken),
        (_, reason) => Err(over_quota(call, Error::new(reason, done.applied.message))),
    }
}

/// A request is one event of the ledger.
fn check_size(requested: &pb::RunRequested) -> Result<(), Error> {
    let (bytes, most) = (
        requested.encoded_len(),
        RUN_REQUEST_BYTES_MAX - FRAME_BYTES_MAX,
    );
    if bytes <= most {
        return Ok(());
    }
    let message = format!(
        "makes a request of {bytes} bytes, and {most} are allowed; name fewer partitions, or give a range of them"
    );
    Err(
        Error::new(Reason::MessageTooLarge, format!("spec: {message}"))
            .and_bad_field("spec", message),
    )
}

/// Says whose limit it is.
fn over_quota(call: &Call, error: Error) -> Error {
    if error.reason() != Reason::QuotaExceeded {
        return error;
    }
    let sentence = error.to_string();
    error.over_quota(format!("tenants/{}", call.tenant), sentence)
}

/// The request as it is appended.
pub(super) fn request(
    scheduler: &Scheduler,
    call: &Call,
    start: Start,
    plan: Option<NewPlan>,
) -> NewRun {
    let Start {
        key,
        fingerprint,
        spec,
        retry_of,
        ..
    } = start;
    let run_id = scheduler
        .run_ids
        .derive(&call.tenant, &call.workspace, &key);
    let max_duration_us = scheduler
        .limits_of(&call.tenant)
        .unwrap_or_default()
        .max_run_duration_us;
    let manual = pb::ManualTrigger {
        request_id: call.request_id.clone(),
        body_digest: call.digest.clone(),
    };
    let requested = pb::RunRequested {
        run_id: run_id.to_string(),
        run_key: key.to_string(),
        request_fingerprint: fingerprint.to_string(),
        generation: key.generation(),
        retry_of,
        spec: Some(spec),
        trigger: Some(pb::Trigger {
            source: Some(pb::trigger::Source::Manual(manual)),
        }),
        requested_by: Some(call.actor.clone()),
        max_duration: Some(wire::duration(max_duration_us)),
        ..Default::default()
    };
    NewRun {
        tenant: call.tenant.to_string(),
        workspace: call.workspace.to_string(),
        run_id,
        event_id: event_id(),
        key,
        fingerprint,
        requested,
        plan,
        trace: current_trace().map(|trace| pb::TraceContext {
            traceparent: trace.to_string(),
            tracestate: String::new(),
        }),
    }
}

/// The plan comes along unless it is large; then it lies where the planner stored it.
async fn plan(
    scheduler: &Scheduler,
    call: &Call,
    stored: &pb::StoredPlan,
) -> Result<Arc<Plan>, Error> {
    let (tenant, workspace) = (call.tenant.as_str(), call.workspace.as_str());
    let plan = scheduler
        .plans
        .of_stored(scheduler.store.loops(), tenant, workspace, stored)
        .await;
    plan.map_err(|error| {
        tracing::error!(%error, plan = stored.plan_id, "a plan cannot be read");
        Error::new(
            Reason::NotReady,
            format!("plan {} cannot be read: {error}", stored.plan_id),
        )
    })
}
