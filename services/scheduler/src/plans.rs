//! Plans by their id, shared by all runs that follow them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use prost::Message;
use servo_proto::v1 as pb;
use servo_store::{LoopStore, StoreError, query};

use crate::core::Plan;
use crate::wire;

/// How many plans are kept although no run follows them just now.
const IDLE_PLANS_MAX: usize = 64;

const PLANS_PER_READ_MAX: usize = 8;

type PlanId = [u8; 32];

/// Where a plan lies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlanLocation {
    pub(crate) plan_id: PlanId,
    pub(crate) tenant: String,
    pub(crate) workspace: String,
}

/// Why a plan that was just made cannot be followed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanUnreadable {
    #[error("it is not stored, or cannot be decoded")]
    Missing,
    #[error(transparent)]
    Bad(#[from] crate::core::BadPlan),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A plan lives as long as a run follows it, and a little longer if it was used lately. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plans {
    known: Arc<Mutex<Cache>>,
}

#[derive(Debug, Default)]
struct Cache {
    plans_by_run: HashMap<PlanId, Weak<Plan>>,
    recent: Vec<Arc<Plan>>,
}

impl Plans {
    /// The graph of a plan that was just made, unless it is known.
    pub(crate) fn learn(&self, plan: &pb::Plan) -> Result<Arc<Plan>, crate::core::BadPlan> {
        let plan_id = plan
            .plan_id
            .parse::<servo_model::Digest>()
            .ok()
            .map(|digest| *digest.as_bytes());
        if let Some(known) = plan_id.and_then(|plan_id| self.get(&plan_id)) {
            return Ok(known);
        }
        let plan = Arc::new(wire::plan(plan)?);
        self.keep(plan.clone());
        Ok(plan)
    }

    pub(crate) fn get(&self, plan_id: &PlanId) -> Option<Arc<Plan>> {
        self.lock()
            .plans_by_run
            .get(plan_id)
            .and_then(Weak::upgrade)
    }

    /// A plan of this tenant and workspace, wherever it is.
    pub(crate) async fn find(
        &self,
        loops: &LoopStore,
        tenant: &str,
        workspace: &str,
        plan_id: PlanId,
    ) -> Result<Option<Arc<Plan>>, StoreError> {
        if let Some(known) = self.get(&plan_id) {
            return Ok(Some(known));
        }
        let location = PlanLocation {
            plan_id,
            tenant: tenant.to_owned(),
            workspace: workspace.to_owned(),
        };
        self.load(loops, vec![location]).await?;
        Ok(self.get(&plan_id))
    }

    /// The graph of a plan that the planner just answered; a large one lies where it was stored.
    pub(crate) async fn of_stored(
        &self,
        loops: &LoopStore,
        tenant: &str,
        workspace: &str,
        stored: &pb::StoredPlan,
    ) -> Result<Arc<Plan>, PlanUnreadable> {
        if let Some(plan) = &stored.plan {
            return Ok(self.learn(plan)?);
        }
        let plan_id: servo_model::Digest = stored
            .plan_id
            .parse()
            .map_err(|_| PlanUnreadable::Missing)?;
        let found = self
            .find(loops, tenant, workspace, *plan_id.as_bytes())
            .await?;
        found.ok_or(PlanUnreadable::Missing)
    }

    /// A plan as the planner stored it, with what no graph keeps.
    pub(crate) async fn read(
        loops: &LoopStore,
        tenant: &str,
        workspace: &str,
        plan_id: &servo_model::Digest,
    ) -> Result<Option<pb::Plan>, StoreError> {
        let select = query(include_str!("store/plans.sql"))
            .bind(vec![tenant])
            .bind(vec![workspace])
            .bind(vec![plan_id.as_bytes().as_slice()]);
        let rows: Vec<(Vec<u8>,)> = loops.all(select).await?;
        Ok(rows
            .first()
            .and_then(|(plan,)| pb::Plan::decode(plan.as_slice()).ok()))
    }

    /// Reads the plans that are not known. One that is missing or broken is left out, and said.
    pub(crate) async fn load(
        &self,
        loops: &LoopStore,
        mut wanted: Vec<PlanLocation>,
    ) -> Result<(), StoreError> {
        wanted.retain(|plan| self.get(&plan.plan_id).is_none());
        wanted.sort_unstable();
        wanted.dedup();
        // One by one would be a statement each, all at once may be a hundred megabytes.
        for some in wanted.chunks(PLANS_PER_READ_MAX) {
            let select = query(include_str!("store/plans.sql"))
                .bind(
                    some.iter()
                        .map(|plan| plan.tenant.as_str())
                        .collect::<Vec<_>>(),
                )
                .bind(
                    some.iter()
                        .map(|plan| plan.workspace.as_str())
                        .collect::<Vec<_>>(),
                )
                .bind(
                    some.iter()
                        .map(|plan| plan.plan_id.as_slice())
                        .collect::<Vec<_>>(),
                );
            let rows: Vec<(Vec<u8>,)> = loops.all(select).await?;
            for (plan,) in rows {
                match decode(&plan) {
                    Ok(plan) => self.keep(Arc::new(plan)),
                    Err(error) => {
                        tracing::error!(error, "a stored plan cannot be read; its runs wait")
                    }
                }
            }
        }
        Ok(())
    }

    fn keep(&self, plan: Arc<Plan>) {
        let mut known = self.lock();
        known
            .plans_by_run
            .insert(plan.plan_id, Arc::downgrade(&plan));
        known.recent.push(plan);
        if known.recent.len() > IDLE_PLANS_MAX {
            known.recent.remove(0);
            known.plans_by_run.retain(|_, plan| plan.strong_count() > 0);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.known
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn decode(plan: &[u8]) -> Result<Plan, String> {
    let plan = pb::Plan::decode(plan).map_err(|error| error.to_string())?;
    wire::plan(&plan).map_err(|error| format!("plan {}: {error}", plan.plan_id))
}
