//! Plans for runs that others asked for: automation and backfills append the request alone.
//!
//! Beside the lanes, which go on folding meanwhile. A planner that does not answer is asked again; whoever takes the
//! shard over begins anew with every run that still waits.

use std::sync::Arc;
use std::time::Duration;

use servo_mesh::{Error, Reason};
use servo_model::TenantId;
use servo_proto::v1;
use servo_store::LoopStore;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::core::{Limits, RunLimits};
use crate::planning::Planning;
use crate::shards::{
    Ask, MadePlan, NewPlan, NoPlan, NotDone, Plans, RunPlan, Shards, Unplanned, event_id,
};

/// How many runs wait for the planner at once; it takes this many in one call.
const PLANNED_AT_ONCE_MAX: usize = 256;
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// What it takes to have a run planned. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) planning: Planning,
    pub(crate) plans: Plans,
    pub(crate) shards: Shards,
    pub(crate) loops: LoopStore,
    pub(crate) limits: watch::Receiver<Limits>,
}

/// Runs until nobody can ask any more.
pub(crate) async fn plan_runs(mut waiting: mpsc::UnboundedReceiver<Unplanned>, desk: Desk) {
    let room = Arc::new(Semaphore::new(PLANNED_AT_ONCE_MAX));
    while let Some(run) = waiting.recv().await {
        let Ok(place) = room.clone().acquire_owned().await else {
            return;
        };
        let desk = desk.clone();
        tokio::spawn(async move {
            desk.plan(&run).await;
            drop(place);
        });
    }
}

impl Desk {
    /// Ends when the run has its plan, or a reason why there is none, or belongs to another holder.
    async fn plan(&self, run: &Unplanned) {
        loop {
            let Some(made) = self.make(run).await else {
                tokio::time::sleep(ASK_AGAIN).await;
                continue;
            };
            let plan = RunPlan {
                tenant: run.tenant.clone(),
                run_id: run.run_id,
                made,
            };
            let told = self
                .shards
                .submit(run.run_id.shard(), vec![Ask::Plan(Arc::new(plan))])
                .await;
            match told {
                Ok(_) | Err(NotDone::NotHeld | NotDone::Stopped | NotDone::KeyTaken) => return,
                Err(NotDone::Unavailable(error)) => {
                    tracing::warn!(error, run = %run.run_id, "a plan could not be stored yet");
                    tokio::time::sleep(ASK_AGAIN).await;
                }
            }
        }
    }

    /// Nothing when it is not known yet.
    async fn make(&self, run: &Unplanned) -> Option<Result<NewPlan, NoPlan>> {
        if let Some(made) = &run.plan {
            return self.find(run, made).await;
        }
        let limits = self.limits_of(&run.tenant);
        if let Err(message) = limits.check_any() {
            let (reason, message) = (Reason::QuotaExceeded, message.to_owned());
            return Some(Err(NoPlan {
                event_id: event_id(),
                reason,
                message,
            }));
        }
        let order = v1::PlanOrder {
            tenant: run.tenant.clone(),
            workspace: run.workspace.clone(),
            spec: Some(run.spec.clone()),
            max_tasks: limits.max_tasks_per_run,
            ..Default::default()
        };
        let stored = match self.planning.plan(order).await {
            Ok(stored) => stored,
            Err(error) if passes(&error) => {
                tracing::warn!(%error, run = %run.run_id, "a run waits for its plan");
                return None;
            }
            Err(error) => {
                let (reason, message) = (error.reason(), error.to_string());
                return Some(Err(NoPlan {
                    event_id: event_id(),
                    reason,
                    message,
                }));
            }
        };
        let graph = self
            .plans
            .of_stored(&self.loops, &run.tenant, &run.workspace, &stored)
            .await;
        match graph {
            Ok(graph) => Some(Ok(NewPlan {
                event_id: event_id(),
                plan_fingerprint: stored.plan_fingerprint,
                graph,
            })),
            Err(error) => {
                tracing::error!(%error, plan = stored.plan_id, "a plan cannot be read; its run waits");
                None
            }
        }
    }

    /// What was planned when the run was asked for.
    async fn find(&self, run: &Unplanned, made: &MadePlan) -> Option<Result<NewPlan, NoPlan>> {
        let plan_id = *made.plan_id.as_bytes();
        match self
            .plans
            .find(&self.loops, &run.tenant, &run.workspace, plan_id)
            .await
        {
            Ok(Some(graph)) => {
                let plan_fingerprint = made.fingerprint.clone();
                Some(Ok(NewPlan {
                    event_id: event_id(),
                    plan_fingerprint,
                    graph,
                }))
            }
            Ok(None) => {
                let message = format!(
                    "plan {} is no longer stored; trigger the run again",
                    made.plan_id
                );
                Some(Err(NoPlan {
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
fn passes(error: &Error) -> bool {
    matches!(
        error.reason(),
        Reason::NotReady | Reason::Internal | Reason::DependencyUnavailable | Reason::Overloaded
    )
}
