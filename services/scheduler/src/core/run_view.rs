//! A run as answers show it.

use servo_model::Timestamp;
use servo_model::states::{RunState, TransitionReason};

use super::run::{Counts, Run};

/// The state of a run at one moment.
#[derive(Debug, Clone)]
pub struct RunView {
    pub state: RunState,
    pub reason: TransitionReason,
    pub version: u64,
    pub counts: Counts,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub deadline: Option<Timestamp>,
    /// The error of the first failed task in plan order.
    pub error: Option<String>,
}

impl RunView {
    pub fn of(run: &Run) -> RunView {
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
