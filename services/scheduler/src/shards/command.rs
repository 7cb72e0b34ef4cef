//! What is asked of a shard, and what it answers.

use std::sync::Arc;

use servo_model::request::RequestFingerprint;
use servo_model::states::{RunState, TransitionReason};
use servo_model::{Digest, RunId, RunKey, TaskRef};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use tokio::sync::oneshot;
use ulid::Ulid;
use uuid::Uuid;

use super::admission::DispatcherStreamId;
use crate::core::{Counts, Excess, Plan, Refusal, Run, Time, Verdict};

/// Asks of one caller, all for one shard. Each is judged by itself; all are stored together.
#[derive(Debug)]
pub(crate) struct Submission {
    pub shard: i16,
    pub commands: Vec<Command>,
    pub reply: oneshot::Sender<Result<Vec<Applied>, SubmitError>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Command {
    /// A run that may be new.
    Run(Arc<NewRun>),
    /// A plan for a run that waits for one.
    Plan(Arc<PlanOutcome>),
    /// Something happened to a run.
    Event(Arc<RunEvent>),
    /// A dispatcher chose a task.
    Claim(Arc<Claim>),
    /// A queue took an attempt.
    Enqueued(Arc<Enqueued>),
}

/// A task that a dispatcher chose. What else its event says follows from the run's plan.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The stream it came by.
    pub stream: DispatcherStreamId,
    pub run_id: RunId,
    pub admission_shard: i16,
    pub task: TaskRef,
    pub event_id: Uuid,
    pub claim: pb::Claim,
}

/// An attempt that a queue took. Whose it is follows from the run.
#[derive(Debug)]
pub(crate) struct Enqueued {
    /// The stream it came by.
    pub stream: DispatcherStreamId,
    pub run_id: RunId,
    pub task: TaskRef,
    pub event_id: Uuid,
    pub entry: pb::DispatchEnqueued,
}

/// A run to begin. With its plan, RunRequested and PlanCreated are appended together; without, the plan comes later.
/// Where the run exists by another request, the request alone is appended, as a conflict.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub tenant: String,
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

/// What became of planning a run that exists.
#[derive(Debug)]
pub(crate) struct PlanOutcome {
    pub tenant: String,
    pub run_id: RunId,
    pub result: Result<NewPlan, PlanFailure>,
}

impl PlanOutcome {
    pub(crate) fn event_id(&self) -> Uuid {
        match &self.result {
            Ok(plan) => plan.event_id,
            Err(failed) => failed.event_id,
        }
    }
}

/// Why a run has no plan and never will.
#[derive(Debug)]
pub(crate) struct PlanFailure {
    pub event_id: Uuid,
    pub reason: pb::ErrorReason,
    pub message: String,
}

/// A run that waits for its plan.
#[derive(Debug, Clone)]
pub(crate) struct UnplannedRun {
    pub run_id: RunId,
    pub tenant: String,
    pub workspace: String,
    pub spec: pb::RunSpec,
    /// The plan that was made when it was asked for.
    pub requested_plan: Option<RequestedPlan>,
}

/// A plan that lies where the planner stored it.
#[derive(Debug, Clone)]
pub(crate) struct RequestedPlan {
    pub plan_id: Digest,
    pub fingerprint: String,
}

/// An event to append to a run that exists.
#[derive(Debug)]
pub(crate) struct RunEvent {
    pub tenant: String,
    pub run_id: RunId,
    pub event_id: Uuid,
    pub idempotency_key: String,
    pub body: Body,
    pub trace: Option<pb::TraceContext>,
}

/// The id of an event that is to be appended.
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

    /// The event that records it.
    pub(crate) fn event_id(&self) -> Uuid {
        match self {
            Command::Run(run) => run.event_id,
            Command::Plan(plan) => plan.event_id(),
            Command::Event(event) => event.event_id,
            Command::Claim(claim) => claim.event_id,
            Command::Enqueued(enqueued) => enqueued.event_id,
        }
    }

    /// How many tasks it may begin, each a row.
    pub(crate) fn planned_tasks(&self) -> usize {
        let plan = match self {
            Command::Run(new) => new.plan.as_ref(),
            Command::Plan(plan) => plan.result.as_ref().ok(),
            Command::Event(_) | Command::Claim(_) | Command::Enqueued(_) => None,
        };
        plan.map_or(0, |plan| plan.plan.tasks.len())
    }

    /// Empty where only the run knows it.
    pub(crate) fn tenant(&self) -> &str {
        match self {
            Command::Run(run) => &run.tenant,
            Command::Plan(plan) => &plan.tenant,
            Command::Event(event) => &event.tenant,
            Command::Claim(claim) => &claim.claim.tenant,
            Command::Enqueued(_) => "",
        }
    }
}

/// What came of one ask, stored.
#[derive(Debug, Clone)]
pub(crate) struct Applied {
    pub outcome: CommandOutcome,
    /// The event that records it.
    pub event_id: Uuid,
    /// The run as it stands then.
    pub run: Option<RunView>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    Fold(Verdict),
    /// The run exists by the same request.
    Exists,
    /// The run exists by another request; this one is on record as a conflict.
    Conflict,
    RunUnknown,
    /// The lease under which the claim was made is not the newest that is known.
    StaleAdmission,
    /// The tenant has as many runs as it may.
    OverLimit(Excess),
    /// There is no place for the run yet; it waits.
    NoCapacity,
    /// An event of the run could not be folded; an operator must look at it.
    SetAside,
    Invalid(String),
    /// Larger than an event may be.
    TooLarge(String),
}

impl From<Refusal> for CommandOutcome {
    fn from(refusal: Refusal) -> CommandOutcome {
        CommandOutcome::Fold(Verdict::Refused(refusal))
    }
}

/// A run in an answer.
#[derive(Debug, Clone)]
pub(crate) struct RunView {
    pub state: RunState,
    pub reason: TransitionReason,
    pub version: u64,
    pub counts: Counts,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub deadline: Option<Time>,
    /// What went wrong first.
    pub error: Option<String>,
}

impl RunView {
    pub(crate) fn of(run: &Run) -> RunView {
        RunView {
            state: run.state,
            reason: run.reason,
            version: run.version,
            counts: *run.counts(),
            created_at: run.header.created_at,
            started_at: run.started_at,
            ended_at: run.ended_at,
            deadline: run.header.deadline,
            error: run.error.as_ref().map(|(_, error)| error.clone()),
        }
    }
}

/// Why nothing came of it. Whatever was asked may be asked again: events are known by their ids and keys.
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
