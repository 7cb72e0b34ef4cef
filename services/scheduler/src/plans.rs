//! The cache of plans, shared by all runs that follow them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use prost::Message;
use servo_model::TenantId;
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;
use servo_service::Cache;
use servo_store::{LoopStore, StoreError};

use crate::core::Plan;
use crate::store::plans as store;
use crate::store::plans::PlanLocation;
use crate::wire;

/// How many recently used plans are kept even when no run follows them.
const RECENT_PLANS_MAX: usize = 64;

const PLANS_PER_READ_MAX: usize = 8;

type PlanId = [u8; 32];

/// Plans by their id.
pub(crate) type LoadedPlans = HashMap<PlanId, Arc<Plan>>;

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

/// Shares a plan between the runs that follow it, and keeps recently used plans. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Plans {
    in_use: Arc<Mutex<HashMap<PlanId, Weak<Plan>>>>,
    recent: Arc<Cache<PlanId, Arc<Plan>>>,
}

impl Default for Plans {
    fn default() -> Plans {
        Plans {
            in_use: Arc::default(),
            recent: Arc::new(Cache::new(RECENT_PLANS_MAX)),
        }
    }
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
        self.keep(std::slice::from_ref(&plan));
        Ok(plan)
    }

    fn get(&self, plan_id: &PlanId) -> Option<Arc<Plan>> {
        if let Some(recent) = self.recent.get(plan_id) {
            return Some(recent);
        }
        let plan = self.lock().get(plan_id).and_then(Weak::upgrade)?;
        self.recent.insert(*plan_id, plan.clone(), 1);
        Some(plan)
    }

    /// Finds a plan in the cache or in the store.
    pub(crate) async fn find(
        &self,
        loops: &LoopStore,
        tenant: &TenantId,
        workspace: &str,
        plan_id: PlanId,
    ) -> Result<Option<Arc<Plan>>, StoreError> {
        let location = PlanLocation {
            plan_id,
            tenant: tenant.clone(),
            workspace: workspace.to_owned(),
        };
        Ok(self.load(loops, vec![location]).await?.remove(&plan_id))
    }

    /// Returns the plan of a planner's answer, which contains small plans and only names large
    /// ones.
    pub(crate) async fn of_planner(
        &self,
        loops: &LoopStore,
        tenant: &TenantId,
        workspace: &str,
        stored: &mesh_pb::StoredPlan,
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

    /// Returns the plans that exist, from the cache or the store. A broken plan is left out and
    /// logged. The caller keeps the plans until its runs follow them, because the cache keeps only
    /// some.
    pub(crate) async fn load(
        &self,
        loops: &LoopStore,
        mut locations: Vec<PlanLocation>,
    ) -> Result<LoadedPlans, StoreError> {
        locations.sort_unstable();
        locations.dedup();
        let mut loaded = LoadedPlans::new();
        let mut missing = Vec::new();
        for location in locations {
            match self.get(&location.plan_id) {
                Some(plan) => drop(loaded.insert(location.plan_id, plan)),
                None => missing.push(location),
            }
        }
        // In groups: one plan per statement is slow, all at once may be a hundred megabytes.
        for some in missing.chunks(PLANS_PER_READ_MAX) {
            let rows = store::find(loops, some).await?;
            let plans: Vec<Arc<Plan>> = rows.iter().filter_map(|plan| decode(plan)).collect();
            self.keep(&plans);
            loaded.extend(plans.into_iter().map(|plan| (plan.plan_id, plan)));
        }
        Ok(loaded)
    }

    fn keep(&self, plans: &[Arc<Plan>]) {
        let mut in_use = self.lock();
        in_use.retain(|_, plan| plan.strong_count() > 0);
        for plan in plans {
            in_use.insert(plan.plan_id, Arc::downgrade(plan));
            self.recent.insert(plan.plan_id, plan.clone(), 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PlanId, Weak<Plan>>> {
        self.in_use
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Decodes a stored plan; `None` for a broken one, which is logged.
fn decode(plan: &[u8]) -> Option<Arc<Plan>> {
    let decoded = pb::Plan::decode(plan).map_err(|error| error.to_string());
    let plan = decoded.and_then(|plan| {
        wire::plan(&plan).map_err(|error| format!("plan {}: {error}", plan.plan_id))
    });
    plan.map(Arc::new)
        .inspect_err(|error| tracing::error!(error, "failed to decode a stored plan"))
        .ok()
}
