//! Starting a run: it is planned, then appended and folded together with its plan.

use std::sync::Arc;

use prost::Message as _;
use servo_mesh::{Caller, Error, Reason, current_trace};
use servo_model::json::to_canonical;
use servo_model::limits::RUN_REQUEST_BYTES_MAX;
use servo_model::request::RequestFingerprint;
use servo_model::{Digest, RunKey, TenantId, WorkspaceId};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;
use tracing::{Instrument, info_span};

use super::parse;
use crate::core::Plan;
use crate::forward::ForwardableCommand;
use crate::reads::runs;
use crate::rpc::Scheduler;
use crate::shards::{NewPlan, NewRun, event_id};
use crate::wire;

/// The size of the other parts of the event: the trace and the framing.
const FRAME_BYTES_MAX: usize = 1_024;

/// A call that starts a run.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) tenant: TenantId,
    pub(crate) workspace: WorkspaceId,
    pub(crate) request_id: String,
    /// A digest of the whole call, to distinguish a repeat from another call with the same request
    /// id.
    pub(crate) digest: String,
    pub(crate) actor: pb::Actor,
}

impl Call {
    /// `content` is the method and everything else that distinguishes this call.
    pub(crate) fn new(
        caller: &Caller,
        (tenant, workspace): (&str, &str),
        request_id: &str,
        comment: &str,
        content: &[&str],
    ) -> Result<Call, Error> {
        parse::request_id(request_id)?;
        parse::comment(comment)?;
        let content: Vec<&str> = content.iter().copied().chain([comment]).collect();
        let content = to_canonical(&content)
            .map_err(|error| Error::bad_field("comment", error.to_string()))?;
        Ok(Call {
            tenant: parse::tenant(tenant)?,
            workspace: parse::workspace(workspace)?,
            request_id: request_id.to_owned(),
            digest: Digest::of(content).to_string(),
            actor: pb::Actor {
                principal: caller.principal.clone(),
                comment: comment.to_owned(),
            },
        })
    }

    /// Fails if the run with this request id was started by a different call.
    pub(crate) fn check_repeat(&self, requested: &pb::RunRequested) -> Result<(), Error> {
        let first =
            wire::manual_trigger(requested).map_or("", |manual| manual.body_digest.as_str());
        if first.is_empty() || first == self.digest {
            return Ok(());
        }
        let message = format!(
            "request_id `{}` was used before by a different call; choose a new one",
            self.request_id
        );
        Err(Error::new(Reason::RequestIdReused, message).with("run_id", &requested.run_id))
    }
}

/// A run to start for a call.
pub(crate) struct RunStart {
    pub(crate) key: RunKey,
    pub(crate) fingerprint: RequestFingerprint,
    /// The requested spec.
    pub(crate) spec: pb::RunSpec,
    /// The order for the planner.
    pub(crate) order: mesh_pb::PlanOrder,
    /// The run that it repeats; empty for the first generation.
    pub(crate) retry_of: String,
}

pub(crate) enum Started {
    Run {
        run: Box<pb::Run>,
        event_id: String,
    },
    /// A concurrent call started another run under the key.
    Taken,
}

/// Plans the run and starts it.
pub(crate) async fn start_run(
    scheduler: &Scheduler,
    call: &Call,
    start: RunStart,
) -> Result<Started, Error> {
    let limits = scheduler.limits_of(&call.tenant).unwrap_or_default();
    limits
        .check_runs_anything()
        .map_err(|sentence| over_quota(call, Error::new(Reason::QuotaExceeded, sentence)))?;
    let order = mesh_pb::PlanOrder {
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
    let plan = read_plan(scheduler, call, &stored).await?;
    let tasks_count = plan.tasks.len();
    let plan = NewPlan {
        event_id: event_id(),
        plan_fingerprint: stored.plan_fingerprint,
        plan,
    };
    let new = Arc::new(new_run(scheduler, call, start, Some(plan)));
    check_size(&new.requested)?;
    let span =
        info_span!("servo.start_run", run_id = %new.run_id, plan_id = stored.plan_id, tasks_count);
    let submitted = scheduler
        .router
        .submit_one(ForwardableCommand::Run(new.clone()))
        .instrument(span)
        .await?;
    match (submitted.applied.acceptance(), submitted.applied.refusal()) {
        (pb::Acceptance::Folded, _) => {
            let event_id = submitted.applied.event_id;
            let run = match (submitted.run, &new.plan) {
                // A run that waits for capacity has no plan yet.
                (Some(standing), Some(_)) if standing.start_time.is_none() => {
                    wire::run_from_standing(&new.requested, None, "", standing)
                }
                (Some(standing), Some(plan)) => wire::run_from_standing(
                    &new.requested,
                    Some(&plan.plan),
                    &plan.plan_fingerprint,
                    standing,
                ),
                // An instance of an older version does not return the run.
                _ => {
                    runs::find(
                        &scheduler.reads,
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
        (_, reason) => Err(over_quota(
            call,
            Error::new(reason, submitted.applied.message),
        )),
    }
}

/// Checks the size of the request, which is stored as one event.
fn check_size(requested: &pb::RunRequested) -> Result<(), Error> {
    let (bytes, most) = (
        requested.encoded_len(),
        RUN_REQUEST_BYTES_MAX - FRAME_BYTES_MAX,
    );
    if bytes <= most {
        return Ok(());
    }
    let message = format!(
        "makes a request of {bytes} bytes, and {most} are allowed; name fewer partitions, or use a range"
    );
    Err(
        Error::new(Reason::MessageTooLarge, format!("spec: {message}"))
            .and_bad_field("spec", message),
    )
}

/// Adds the tenant whose limit was exceeded.
fn over_quota(call: &Call, error: Error) -> Error {
    if error.reason() != Reason::QuotaExceeded {
        return error;
    }
    let sentence = error.to_string();
    error.over_quota(format!("tenants/{}", call.tenant), sentence)
}

/// The command that begins the run.
pub(crate) fn new_run(
    scheduler: &Scheduler,
    call: &Call,
    start: RunStart,
    plan: Option<NewPlan>,
) -> NewRun {
    let RunStart {
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
        tenant: call.tenant.clone(),
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

/// Returns the plan of the planner's answer.
async fn read_plan(
    scheduler: &Scheduler,
    call: &Call,
    stored: &mesh_pb::StoredPlan,
) -> Result<Arc<Plan>, Error> {
    let (tenant, workspace) = (&call.tenant, call.workspace.as_str());
    let plan = scheduler
        .reads
        .plans
        .of_planner(scheduler.reads.store.loops(), tenant, workspace, stored)
        .await;
    plan.map_err(|error| {
        tracing::error!(%error, plan = stored.plan_id, "failed to read a plan");
        Error::new(
            Reason::NotReady,
            format!("plan {} cannot be read: {error}", stored.plan_id),
        )
    })
}
