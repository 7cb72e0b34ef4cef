//! The cache of plans, shared by all runs that follow them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use prost::Message;
use servo_model::TenantId;
use servo_proto::v1 as pb;
use servo_store::{LoopStore, StoreError};

use crate::core::Plan;
use crate::store::plans as store;
use crate::store::plans::PlanLocation;
use crate::wire;

/// How many plans are kept without a run that follows them.
const IDLE_PLANS_MAX: usize = 64;

const PLANS_PER_READ_MAX: usize = 8;

type PlanId = [u8; 32];

/// Why a new plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanUnreadable {
    #[error("the plan is not stored or cannot be decoded")]
    Missing,
    #[error(transparent)]
    Bad(#[from] crate::core::BadPlan),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps a plan as long as a run follows it, and longer if it was used recently. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plans {
    cache: Arc<Mutex<Cache>>,
}

#[derive(Debug, Default)]
struct Cache {
    by_id: HashMap<PlanId, Weak<Plan>>,
    recent: Vec<Arc<Plan>>,
}

impl Plans {
    /// Returns the cached plan, or adds it to the cache.
    pub(crate) fn get_or_insert(&self, plan: &pb::Plan) -> Result<Arc<Plan>, crate::core::BadPlan> {
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
        self.lock().by_id.get(plan_id).and_then(Weak::upgrade)
    }

    /// Finds a plan in the cache or in the store.
    pub(crate) async fn find(
        &self,
        loops: &LoopStore,
        tenant: &TenantId,
        workspace: &str,
        plan_id: PlanId,
    ) -> Result<Option<Arc<Plan>>, StoreError> {
        if let Some(known) = self.get(&plan_id) {
            return Ok(Some(known));
        }
        let location = PlanLocation {
            plan_id,
            tenant: tenant.clone(),
            workspace: workspace.to_owned(),
        };
        self.load(loops, vec![location]).await?;
        Ok(self.get(&plan_id))
    }

    /// Returns the plan of a planner's answer, which contains small plans and only names large
    /// ones.
    pub(crate) async fn of_planner(
        &self,
        loops: &LoopStore,
        tenant: &TenantId,
        workspace: &str,
        stored: &pb::StoredPlan,
    ) -> Result<Arc<Plan>, PlanUnreadable> {
        if let Some(plan) = &stored.plan {
            return Ok(self.get_or_insert(plan)?);
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

    /// Reads a plan with the fields that the cache does not keep.
    pub(crate) async fn read(
        loops: &LoopStore,
        tenant: &TenantId,
        workspace: &str,
        plan_id: &servo_model::Digest,
    ) -> Result<Option<pb::Plan>, StoreError> {
        let location = PlanLocation {
            plan_id: *plan_id.as_bytes(),
            tenant: tenant.clone(),
            workspace: workspace.to_owned(),
        };
        let rows = store::find(loops, &[location]).await?;
        Ok(rows
            .first()
            .and_then(|plan| pb::Plan::decode(plan.as_slice()).ok()))
    }

    /// Loads the plans that are not cached. A missing or broken plan is left out and logged.
    pub(crate) async fn load(
        &self,
        loops: &LoopStore,
        mut missing: Vec<PlanLocation>,
    ) -> Result<(), StoreError> {
        missing.retain(|plan| self.get(&plan.plan_id).is_none());
        missing.sort_unstable();
        missing.dedup();
        // In groups: one plan per statement is slow, all at once may be a hundred megabytes.
        for some in missing.chunks(PLANS_PER_READ_MAX) {
            for plan in store::find(loops, some).await? {
                match decode(&plan) {
                    Ok(plan) => self.keep(Arc::new(plan)),
                    Err(error) => {
                        tracing::error!(error, "failed to decode a stored plan; its runs wait")
                    }
                }
            }
        }
        Ok(())
    }

    fn keep(&self, plan: Arc<Plan>) {
        let mut cache = self.lock();
        cache.by_id.insert(plan.plan_id, Arc::downgrade(&plan));
        cache.recent.push(plan);
        if cache.recent.len() > IDLE_PLANS_MAX {
            cache.recent.remove(0);
            cache.by_id.retain(|_, plan| plan.strong_count() > 0);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.cache
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn decode(plan: &[u8]) -> Result<Plan, String> {
    let plan = pb::Plan::decode(plan).map_err(|error| error.to_string())?;
    wire::plan(&plan).map_err(|error| format!("plan {}: {error}", plan.plan_id))
}
