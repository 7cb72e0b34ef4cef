//! Requests plans for runs that were appended without one: automation and backfills append only the
//! request. For a run that waited for capacity, the plan that RunRequested names is read when the
//! run may start.
//!
//! This happens outside the lanes, which keep folding. A planner that does not answer is called
//! again; the next holder of the shard starts over with every run that still has no plan.

use std::sync::Arc;
use std::time::Duration;

use servo_mesh::{Error, Reason};
use servo_model::TenantId;
use servo_proto::mesh::v1 as mesh_pb;
use servo_store::LoopStore;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::core::{Limits, RunLimits};
use crate::plan_batcher::PlanBatcher;
use crate::plans::Plans;
use crate::shards::{
    Command, NewPlan, PlanFailure, PlanResult, RequestedPlan, Shards, SubmitError, UnplannedRun,
    event_id,
};

/// How many runs are planned concurrently; the planner accepts this many in one call.
const CONCURRENT_MAX: usize = 256;
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Plans runs and submits their plans. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PlanRequester {
    pub(crate) plan_batcher: PlanBatcher,
    pub(crate) plans: Plans,
    pub(crate) shards: Shards,
    pub(crate) loops: LoopStore,
    pub(crate) limits: watch::Receiver<Limits>,
}

/// Runs until all lanes have stopped.
pub(crate) async fn plan_runs(mut waiting: mpsc::Receiver<UnplannedRun>, requester: PlanRequester) {
    let permits = Arc::new(Semaphore::new(CONCURRENT_MAX));
    while let Some(run) = waiting.recv().await {
        let Ok(permit) = permits.clone().acquire_owned().await else {
            return;
        };
        let requester = requester.clone();
        servo_actor::spawn_task("plan request", async move {
            requester.plan(&run).await;
            drop(permit);
        });
    }
}

impl PlanRequester {
    /// Returns when the run has its plan or the reason for having none, or when another instance
    /// holds its shard.
    async fn plan(&self, run: &UnplannedRun) {
        loop {
            let Some(result) = self.plan_for(run).await else {
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            };
            let plan = PlanResult {
                tenant: run.tenant.clone(),
                run_id: run.run_id,
                result,
            };
            let submitted = self
                .shards
                .submit(run.run_id.shard(), vec![Command::Plan(Arc::new(plan))])
                .await;
            match submitted {
                Ok(_)
                | Err(SubmitError::NotHeld | SubmitError::Stopped | SubmitError::KeyTaken) => {
                    return;
                }
                Err(SubmitError::Unavailable(error)) => {
                    tracing::warn!(error, run = %run.run_id, "failed to store a plan; retrying");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    /// Returns `None` when the planner must be called again.
    async fn plan_for(&self, run: &UnplannedRun) -> Option<Result<NewPlan, PlanFailure>> {
        if let Some(requested) = &run.requested_plan {
            return self.find_requested(run, requested).await;
        }
        let limits = self.limits_of(&run.tenant);
        if let Err(message) = limits.check_runs_anything() {
            let (reason, message) = (Reason::QuotaExceeded, message.to_owned());
            return Some(Err(PlanFailure {
                event_id: event_id(),
                reason,
                message,
            }));
        }
        let order = mesh_pb::PlanOrder {
            tenant: run.tenant.to_string(),
            workspace: run.workspace.clone(),
            spec: Some(run.spec.clone()),
            max_tasks: limits.max_tasks_per_run,
            ..Default::default()
        };
        let stored = match self.plan_batcher.plan(order).await {
            Ok(stored) => stored,
            Err(error) if is_temporary(&error) => {
                tracing::warn!(%error, run = %run.run_id, "failed to plan a run; retrying");
                return None;
            }
            Err(error) => {
                let (reason, message) = (error.reason(), error.to_string());
                return Some(Err(PlanFailure {
                    event_id: event_id(),
                    reason,
                    message,
                }));
            }
        };
        let plan = self
            .plans
            .of_planner(&self.loops, &run.tenant, &run.workspace, &stored)
            .await;
        match plan {
            Ok(plan) => Some(Ok(NewPlan {
                event_id: event_id(),
                plan_fingerprint: stored.plan_fingerprint,
                plan,
            })),
            Err(error) => {
                tracing::error!(%error, plan = stored.plan_id, "failed to read a plan; its run waits");
                None
            }
        }
    }

    /// Finds the plan that was made when the run was requested.
    async fn find_requested(
        &self,
        run: &UnplannedRun,
        requested: &RequestedPlan,
    ) -> Option<Result<NewPlan, PlanFailure>> {
        let plan_id = *requested.plan_id.as_bytes();
        match self
            .plans
            .find(&self.loops, &run.tenant, &run.workspace, plan_id)
            .await
        {
            Ok(Some(plan)) => {
                let plan_fingerprint = requested.fingerprint.clone();
                Some(Ok(NewPlan {
                    event_id: event_id(),
                    plan_fingerprint,
                    plan,
                }))
            }
            Ok(None) => {
                let message = format!(
                    "plan {} is no longer stored; trigger the run again",
                    requested.plan_id
                );
                Some(Err(PlanFailure {
                    event_id: event_id(),
                    reason: Reason::PlanNotFound,
                    message,
                }))
            }
            Err(error) => {
                tracing::warn!(%error, run = %run.run_id, "failed to read a plan; its run waits");
                None
            }
        }
    }

    fn limits_of(&self, tenant: &TenantId) -> Arc<RunLimits> {
        self.limits.borrow().of(tenant).clone()
    }
}

/// Whether the error is the planner's and not the run's.
fn is_temporary(error: &Error) -> bool {
    matches!(
        error.reason(),
        Reason::NotReady | Reason::Internal | Reason::DependencyUnavailable | Reason::Overloaded
    )
}
