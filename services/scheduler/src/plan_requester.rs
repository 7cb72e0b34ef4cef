//! Plans for runs that others asked for: automation and backfills append the request alone.
//!
//! Beside the lanes, which go on folding meanwhile. A planner that does not answer is asked again; whoever takes the
//! shard over begins anew with every run that still waits.

use std::sync::Arc;
use std::time::Duration;

use servo_mesh::{Error, Reason};
use servo_model::TenantId;
use servo_proto::v1 as pb;
use servo_store::LoopStore;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::core::{Limits, RunLimits};
use crate::plan_batcher::PlanBatcher;
use crate::plans::Plans;
use crate::shards::{
    Command, NewPlan, PlanFailure, PlanOutcome, RequestedPlan, Shards, SubmitError, UnplannedRun,
    event_id,
};

/// How many runs wait for the planner at once; it takes this many in one call.
const PLANNED_AT_ONCE_MAX: usize = 256;
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// What it takes to have a run planned. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PlanRequester {
    pub(crate) plan_batcher: PlanBatcher,
    pub(crate) plans: Plans,
    pub(crate) shards: Shards,
    pub(crate) loops: LoopStore,
    pub(crate) limits: watch::Receiver<Limits>,
}

/// Runs until nobody can ask any more.
pub(crate) async fn plan_runs(
    mut waiting: mpsc::UnboundedReceiver<UnplannedRun>,
    requester: PlanRequester,
) {
    let permits = Arc::new(Semaphore::new(PLANNED_AT_ONCE_MAX));
    while let Some(run) = waiting.recv().await {
        let Ok(permit) = permits.clone().acquire_owned().await else {
            return;
        };
        let requester = requester.clone();
        tokio::spawn(async move {
            requester.plan(&run).await;
            drop(permit);
        });
    }
}

impl PlanRequester {
    /// Ends when the run has its plan, or a reason why there is none, or belongs to another holder.
    async fn plan(&self, run: &UnplannedRun) {
        loop {
            let Some(result) = self.plan_for(run).await else {
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            };
            let plan = PlanOutcome {
                tenant: run.tenant.clone(),
                run_id: run.run_id,
                result,
            };
            let told = self
                .shards
                .submit(run.run_id.shard(), vec![Command::Plan(Arc::new(plan))])
                .await;
            match told {
                Ok(_)
                | Err(SubmitError::NotHeld | SubmitError::Stopped | SubmitError::KeyTaken) => {
                    return;
                }
                Err(SubmitError::Unavailable(error)) => {
                    tracing::warn!(error, run = %run.run_id, "a plan could not be stored yet");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    /// Nothing when it is not known yet.
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
        let order = pb::PlanOrder {
            tenant: run.tenant.clone(),
            workspace: run.workspace.clone(),
            spec: Some(run.spec.clone()),
            max_tasks: limits.max_tasks_per_run,
            ..Default::default()
        };
        let stored = match self.plan_batcher.plan(order).await {
            Ok(stored) => stored,
            Err(error) if is_temporary(&error) => {
                tracing::warn!(%error, run = %run.run_id, "a run waits for its plan");
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
            .of_stored(&self.loops, &run.tenant, &run.workspace, &stored)
            .await;
        match plan {
            Ok(plan) => Some(Ok(NewPlan {
                event_id: event_id(),
                plan_fingerprint: stored.plan_fingerprint,
                plan,
            })),
            Err(error) => {
                tracing::error!(%error, plan = stored.plan_id, "a plan cannot be read; its run waits");
                None
            }
        }
    }

    /// What was planned when the run was asked for.
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
                tracing::warn!(%error, run = %run.run_id, "a plan cannot be read; its run waits");
                None
            }
        }
    }

    fn limits_of(&self, tenant: &str) -> Arc<RunLimits> {
        let tenant: Option<TenantId> = tenant.parse().ok();
        tenant.map_or_else(Arc::default, |tenant| {
            self.limits.borrow().of(&tenant).clone()
        })
    }
}

/// Whether it is the planner's trouble rather than the run's.
fn is_temporary(error: &Error) -> bool {
    matches!(
        error.reason(),
        Reason::NotReady | Reason::Internal | Reason::DependencyUnavailable | Reason::Overloaded
    )
}
