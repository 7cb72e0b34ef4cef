//! Attempts that hold a slot, from the moment they are chosen until their end is told.

use std::sync::Arc;

use servo_model::{AttemptId, RunId, TenantId, WorkerId};

use super::Seconds;
use super::demand::{PlanRef, Task};
use super::streams::SourceId;
use super::workers::WorkerKey;

#[derive(Debug, Clone)]
pub struct Live {
    pub attempt_id: AttemptId,
    pub tenant: TenantId,
    pub run: RunId,
    pub(crate) plan: PlanRef,
    pub task: Task,
    pub attempt: u32,
    /// As far as it is known.
    pub worker: Option<WorkerId>,
    pub(crate) since: Seconds,
    pub(crate) backfill: bool,
    pub cancelling: bool,
    /// Travels through the queue.
    pub pushed: bool,
    pub(crate) pool: Pool,
    pub(crate) phase: Phase,
    /// The process that we last sent it to. Nobody else may get it, for that one may have begun it.
    pub(crate) sent_to: Option<Arc<str>>,
    /// What an envelope needs beside the plan; known to whoever chose the task.
    pub(crate) order: Option<Arc<Order>>,
    /// What the run was charged for it in advance.
    pub(crate) charged: Seconds,
}

impl Live {
    /// An attempt like any other, for tests of what is made of one.
    #[cfg(test)]
    pub(crate) fn of_nobody() -> Live {
        let (tenant, workspace): (TenantId, _) = ("acme".parse().unwrap(), "prod".parse().unwrap());
        Live {
            attempt_id: AttemptId::from_bytes([1; 16]),
            run: RunId::from_bytes([2; 16]),
            plan: PlanRef {
                tenant: tenant.clone(),
                workspace,
                plan_id: servo_model::Digest::of(""),
            },
            tenant,
            task: Task {
                ordinal: 0,
                map_index: None,
            },
            attempt: 1,
            worker: None,
            since: 0.0,
            backfill: false,
            cancelling: false,
            pushed: false,
            pool: Pool::None,
            phase: Phase::Sent,
            sent_to: None,
            order: None,
            charged: 0.0,
        }
    }

    /// Whether this is its worker, as far as the id tells.
    pub fn may_be_with(&self, worker: &WorkerKey) -> bool {
        self.worker == Some(worker.id)
            && worker
                .tenant
                .as_ref()
                .is_none_or(|tenant| self.tenant == *tenant)
    }

    /// Whether it holds a credit of its worker that the worker does not know to be spent.
    pub(crate) fn has_credit(&self) -> bool {
        self.order.is_some() && self.phase != Phase::Sent
    }
}

/// The pool that an attempt takes a slot from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pool {
    /// Its plan is not read yet; until then it counts for every pool.
    Unknown,
    None,
    Named(Arc<str>),
}

impl Pool {
    /// Empty for none, or while it is not known.
    pub(crate) fn name(&self) -> &str {
        match self {
            Pool::Named(name) => name,
            Pool::Unknown | Pool::None => "",
        }
    }
}

/// How far a claim has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Sent on this stream to the owner of the run's shard, not answered.
    Claiming(SourceId),
    /// The stream broke before the answer; the shard's next snapshot tells.
    Unsure,
    /// In the ledger, and not with its worker.
    Accepted,
    /// Handed over, or claimed by somebody before us.
    Sent,
}

/// What a ready task said that its plan does not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Order {
    pub(crate) failures: u32,
    pub(crate) item_json: Arc<str>,
    /// W3C traceparent and tracestate.
    pub(crate) trace: Arc<(String, String)>,
}
