//! Attempts that hold a slot, from the moment they are chosen until the scheduler reports their
//! end.

use std::sync::Arc;

use servo_model::{AttemptId, RunId, TaskRef, TenantId, Timestamp, WorkerId};

use super::demand::PlanRef;
use super::streams::SchedulerStreamId;
use super::workers::WorkerKey;

#[derive(Debug, Clone)]
pub struct LiveAttempt {
    pub attempt_id: AttemptId,
    pub tenant: TenantId,
    pub run: RunId,
    pub(crate) plan: PlanRef,
    pub task: TaskRef,
    pub attempt: u32,
    /// `None` when the scheduler did not report a worker.
    pub worker: Option<WorkerId>,
    pub(crate) since: Timestamp,
    pub(crate) backfill: bool,
    pub cancelling: bool,
    /// Delivered through the push queue.
    pub pushed: bool,
    pub(crate) pool: Pool,
    pub(crate) phase: Phase,
    /// The session that the envelope was last sent to. Only this session may receive it again,
    /// because it may have started the attempt.
    pub(crate) sent_to: Option<Arc<str>>,
    /// Everything that an envelope needs in addition to the plan. `None` for an attempt that
    /// another dispatcher claimed and delivered.
    pub(crate) details: Option<Arc<DispatchDetails>>,
    /// Worker seconds that the run was charged in advance.
    pub(crate) charged_seconds: f64,
    /// Whether the run counts this attempt as live. A snapshot's attempt is not counted when its
    /// run is not known yet.
    pub(crate) counted_in_run: bool,
}

impl LiveAttempt {
    /// An arbitrary attempt for tests.
    #[cfg(test)]
    pub(crate) fn sample() -> LiveAttempt {
        let (tenant, workspace): (TenantId, _) = ("acme".parse().unwrap(), "prod".parse().unwrap());
        LiveAttempt {
            attempt_id: AttemptId::from_bytes([1; 16]),
            run: RunId::from_bytes([2; 16]),
            plan: PlanRef {
                tenant: tenant.clone(),
                workspace,
                plan_id: servo_model::Digest::of(""),
            },
            tenant,
            task: TaskRef::planned(0),
            attempt: 1,
            worker: None,
            since: Timestamp::UNIX_EPOCH,
            backfill: false,
            cancelling: false,
            pushed: false,
            pool: Pool::None,
            phase: Phase::Delivering,
            sent_to: None,
            details: None,
            charged_seconds: 0.0,
            counted_in_run: false,
        }
    }

    /// Returns whether the attempt was given to this worker. An id of another tenant's worker does
    /// not match.
    pub fn belongs_to(&self, worker: &WorkerKey) -> bool {
        self.worker == Some(worker.id) && worker.tenant.contains(&self.tenant)
    }

    /// Returns whether the attempt still uses a credit of its worker: its envelope is not sent yet,
    /// so the credit must be returned if it never is.
    pub(crate) fn has_credit(&self) -> bool {
        self.details.is_some() && self.phase != Phase::Delivering
    }
}

/// The pool that an attempt takes a slot from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pool {
    /// The plan is not loaded yet. Until then the attempt counts against every pool.
    Unknown,
    None,
    Named(Arc<str>),
}

impl Pool {
    /// Returns an empty name for no pool or an unknown one.
    pub(crate) fn name(&self) -> &str {
        match self {
            Pool::Named(name) => name,
            Pool::Unknown | Pool::None => "",
        }
    }
}

/// How far a claim has progressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Sent on this stream to the scheduler that holds the run's shard; not answered yet.
    Claiming(SchedulerStreamId),
    /// The stream broke before the answer. The next snapshot of the shard decides.
    Unsure,
    /// Stored in the ledger, but not sent to the worker.
    Accepted,
    /// Its envelope is being built, or was sent. There is no later phase, because only the
    /// scheduler follows an attempt after that. Also the phase of an attempt that another
    /// dispatcher claimed and delivered.
    Delivering,
}

/// Details that the scheduler sends with a ready task and that its plan does not contain.
#[derive(Debug, Clone, PartialEq)]
pub struct DispatchDetails {
    pub failures: u32,
    pub item_json: Arc<str>,
    /// W3C traceparent and tracestate.
    pub trace: Arc<(String, String)>,
}
