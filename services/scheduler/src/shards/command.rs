//! Commands to a lane and their results.

use std::sync::Arc;

use servo_model::request::RequestFingerprint;
use servo_model::{AdmissionShard, Digest, RunId, RunKey, ShardId, TaskRef, TenantId};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use tokio::sync::oneshot;
use ulid::Ulid;
use uuid::Uuid;

use super::dispatcher_streams::DispatcherStreamId;
use crate::core::{Excess, Plan, Refusal, RunView, Verdict};

/// The commands of one caller for one shard. Each has its own result; all are stored together.
#[derive(Debug)]
pub(crate) struct Submission {
    pub shard: ShardId,
    pub commands: Vec<Command>,
    pub reply: oneshot::Sender<Result<Vec<Applied>, SubmitError>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Command {
    /// Begins a run, unless it exists.
    Run(Arc<NewRun>),
    /// Adds the plan of a run, or the reason why it has none.
    Plan(Arc<PlanResult>),
    /// Applies an event to a run.
    Event(Arc<RunEvent>),
    /// Claims a task for a dispatcher.
    Claim(Arc<Claim>),
    /// Records that the push queue accepted an attempt.
    Enqueued(Arc<Enqueued>),
}

/// A task that a dispatcher chose. The run's plan provides the other fields of the event.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The stream on which it arrived.
    pub stream: DispatcherStreamId,
    pub tenant: TenantId,
    pub run_id: RunId,
    pub admission_shard: AdmissionShard,
    pub task: TaskRef,
    pub event_id: Uuid,
    pub message: mesh_pb::Claim,
}

/// An attempt that the push queue accepted. The run provides the tenant.
#[derive(Debug)]
pub(crate) struct Enqueued {
    /// The stream on which it arrived.
    pub stream: DispatcherStreamId,
    pub run_id: RunId,
    pub task: TaskRef,
    pub event_id: Uuid,
    pub entry: pb::DispatchEnqueued,
}

/// A run to begin. RunRequested and PlanCreated are appended together when the plan is given;
/// otherwise the plan follows later. If the run exists with another request, only the request is
/// appended, as a conflict.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub tenant: TenantId,
    pub workspace: String,
    pub run_id: RunId,
    pub event_id: Uuid,
    pub key: RunKey,
    pub fingerprint: RequestFingerprint,
    pub requested: pb::RunRequested,
    pub plan: Option<NewPlan>,
    pub trace: Option<pb::TraceContext>,
}

/// A plan that the planner stored.
#[derive(Debug, Clone)]
pub(crate) struct NewPlan {
    pub event_id: Uuid,
    pub plan_fingerprint: String,
    pub plan: Arc<Plan>,
}

/// The result of planning a run that exists.
#[derive(Debug)]
pub(crate) struct PlanResult {
    pub tenant: TenantId,
    pub run_id: RunId,
    pub result: Result<NewPlan, PlanFailure>,
}

impl PlanResult {
    pub(crate) fn event_id(&self) -> Uuid {
        match &self.result {
            Ok(plan) => plan.event_id,
            Err(failed) => failed.event_id,
        }
    }
}

/// Why a run cannot be planned.
#[derive(Debug)]
pub(crate) struct PlanFailure {
    pub event_id: Uuid,
    pub reason: pb::ErrorReason,
    pub message: String,
}

/// A run without a plan.
#[derive(Debug, Clone)]
pub(crate) struct UnplannedRun {
    pub run_id: RunId,
    pub tenant: TenantId,
    pub workspace: String,
    pub spec: pb::RunSpec,
    /// The plan that was made when the run was requested.
    pub requested_plan: Option<RequestedPlan>,
}

/// A stored plan that RunRequested names.
#[derive(Debug, Clone)]
pub(crate) struct RequestedPlan {
    pub plan_id: Digest,
    pub fingerprint: String,
}

/// An event to append to a run that exists.
#[derive(Debug)]
pub(crate) struct RunEvent {
    pub tenant: TenantId,
    pub run_id: RunId,
    pub event_id: Uuid,
    pub idempotency_key: String,
    pub body: Body,
    pub trace: Option<pb::TraceContext>,
}

/// A new event id.
pub(crate) fn event_id() -> Uuid {
    Uuid::from_u128(Ulid::generate().into())
}

impl Command {
    pub(crate) fn run_id(&self) -> RunId {
        match self {
            Command::Run(run) => run.run_id,
            Command::Plan(plan) => plan.run_id,
            Command::Event(event) => event.run_id,
            Command::Claim(claim) => claim.run_id,
            Command::Enqueued(enqueued) => enqueued.run_id,
        }
    }

    /// The id of the event that records the command.
    pub(crate) fn event_id(&self) -> Uuid {
        match self {
            Command::Run(run) => run.event_id,
            Command::Plan(plan) => plan.event_id(),
            Command::Event(event) => event.event_id,
            Command::Claim(claim) => claim.event_id,
            Command::Enqueued(enqueued) => enqueued.event_id,
        }
    }

    /// How many task rows the command may insert.
    pub(crate) fn planned_tasks(&self) -> usize {
        let plan = match self {
            Command::Run(new) => new.plan.as_ref(),
            Command::Plan(plan) => plan.result.as_ref().ok(),
            Command::Event(_) | Command::Claim(_) | Command::Enqueued(_) => None,
        };
        plan.map_or(0, |plan| plan.plan.tasks.len())
    }

    /// The tenant; `None` where only the run knows it.
    pub(crate) fn tenant(&self) -> Option<&TenantId> {
        match self {
            Command::Run(run) => Some(&run.tenant),
            Command::Plan(plan) => Some(&plan.tenant),
            Command::Event(event) => Some(&event.tenant),
            Command::Claim(claim) => Some(&claim.tenant),
            Command::Enqueued(_) => None,
        }
    }
}

/// The answer to a command whose flush is stored.
#[derive(Debug, Clone)]
pub(crate) struct Applied {
    pub result: CommandResult,
    /// The id of the event that records the command.
    pub event_id: Uuid,
    /// The run afterwards.
    pub run: Option<RunView>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandResult {
    Fold(Verdict),
    /// The run exists with the same request.
    Exists,
    /// The run exists with another request; this one is recorded as a conflict.
    Conflict,
    RunUnknown,
    /// The claim or queue report did not arrive on the newest stream for the admission shard, or
    /// the claim was made under an older admission lease.
    StaleAdmission,
    /// The run would exceed a limit of the tenant.
    OverLimit(Excess),
    /// There is no capacity for the run yet; it waits.
    NoCapacity,
    /// The run is set aside.
    SetAside,
    Invalid(String),
    /// The event would exceed its size limit.
    TooLarge(String),
}

impl From<Refusal> for CommandResult {
    fn from(refusal: Refusal) -> CommandResult {
        CommandResult::Fold(Verdict::Refused(refusal))
    }
}

/// Why a submission was not stored. It may be repeated, because event ids and idempotency keys
/// identify its events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SubmitError {
    #[error("this instance does not hold the run's shard")]
    NotHeld,
    #[error("the ledger has another event under the same key")]
    KeyTaken,
    #[error("{0}")]
    Unavailable(String),
    #[error("this instance is stopping")]
    Stopped,
}
