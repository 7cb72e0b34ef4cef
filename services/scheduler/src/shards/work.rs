//! What is asked of a shard, and what it answers.

use std::sync::Arc;

use servo_model::RunId;
use servo_model::states::{RunState, TransitionReason};
use servo_proto::v1;
use servo_proto::v1::event::Body;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::admission::GateId;
use crate::core::{Counts, Graph, Refusal, Slot, Time, Verdict};

/// Asks of one caller, all for one shard. Each is judged by itself; all are stored together.
#[derive(Debug)]
pub(crate) struct Work {
    pub shard: i16,
    pub asks: Vec<Ask>,
    pub reply: oneshot::Sender<Result<Vec<Done>, NotDone>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Ask {
    /// A run that may be new, with its plan.
    Run(Arc<NewRun>),
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
    pub gate: GateId,
    pub run_id: RunId,
    pub admission_shard: i16,
    pub task: Slot,
    pub event_id: Uuid,
    pub claim: v1::Claim,
}

/// An attempt that a queue took. Whose it is follows from the run.
#[derive(Debug)]
pub(crate) struct Enqueued {
    /// The stream it came by.
    pub gate: GateId,
    pub run_id: RunId,
    pub task: Slot,
    pub event_id: Uuid,
    pub entry: v1::DispatchEnqueued,
}

/// A run to begin: RunRequested and PlanCreated, appended together.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub tenant: String,
    pub workspace: String,
    pub run_id: RunId,
    pub request_event: Uuid,
    pub plan_event: Uuid,
    pub asked: v1::RunRequested,
    pub plan_fingerprint: String,
    pub graph: Arc<Graph>,
    pub trace: Option<v1::TraceContext>,
}

/// An event to append to a run that exists.
#[derive(Debug)]
pub(crate) struct RunEvent {
    pub tenant: String,
    pub run_id: RunId,
    pub event_id: Uuid,
    pub idempotency_key: String,
    pub body: Body,
    pub trace: Option<v1::TraceContext>,
}

impl Ask {
    pub(crate) fn run_id(&self) -> RunId {
        match self {
            Ask::Run(run) => run.run_id,
            Ask::Event(event) => event.run_id,
            Ask::Claim(claim) => claim.run_id,
            Ask::Enqueued(enqueued) => enqueued.run_id,
        }
    }

    pub(crate) fn tenant(&self) -> &str {
        match self {
            Ask::Run(run) => &run.tenant,
            Ask::Event(event) => &event.tenant,
            Ask::Claim(claim) => &claim.claim.tenant,
            // A run with a live attempt is in memory.
            Ask::Enqueued(_) => "",
        }
    }
}

/// What came of one ask, stored.
#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub verdict: DoneAs,
    /// The event that records it.
    pub event_id: Uuid,
    /// The run as it stands then.
    pub run: Option<RunView>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DoneAs {
    Core(Verdict),
    /// The run exists by the same request.
    Exists,
    /// The run exists by another request, whose fingerprint this is.
    Conflict([u8; 32]),
    RunUnknown,
    /// The lease under which the claim was made is not the newest that is known.
    StaleAdmission,
    Bad(String),
}

impl From<Refusal> for DoneAs {
    fn from(refusal: Refusal) -> DoneAs {
        DoneAs::Core(Verdict::Refused(refusal))
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
}

/// Why nothing came of it. Whatever was asked may be asked again: events are known by their ids and keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotDone {
    #[error("this instance does not hold the run's shard")]
    NotHeld,
    #[error("{0}")]
    Unavailable(String),
    #[error("this instance is stopping")]
    Stopped,
}
