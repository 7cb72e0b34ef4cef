//! A bounded cache of plans, and loading of those that are missing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use servo_model::AttemptId;
use servo_proto::v1 as pb;
use servo_service::Cache;
use servo_store::LoopStore;
use tracing::warn;

use super::{Engine, Message};
use crate::core::{PlanRef, WorkerKey};
use crate::stored_plan::{StoredPlan, pinned_versions};
use crate::{store, wire};

/// Delay before a failed load is retried.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// Memory of a decoded plan relative to its encoded size.
const DECODED_FACTOR: usize = 4;

pub(crate) struct Plans {
    engine: Engine,
    loops: LoopStore,
    cached: Cache<PlanRef, Arc<StoredPlan>>,
    /// Plans that are being loaded, with the deliveries that wait for them.
    loading: HashMap<PlanRef, Vec<(WorkerKey, AttemptId)>>,
}

impl Plans {
    pub(crate) fn new(engine: Engine, loops: LoopStore, bytes_max: usize) -> Plans {
        Plans {
            engine,
            loops,
            cached: Cache::new(bytes_max),
            loading: HashMap::new(),
        }
    }

    /// Returns the plan, or starts loading it. The engine receives `PlanLoaded` when it is loaded.
    pub(crate) fn get(&mut self, plan: &PlanRef) -> Option<Arc<StoredPlan>> {
        if let Some(stored) = self.cached.get(plan) {
            return Some(stored);
        }
        if !self.loading.contains_key(plan) {
            self.loading.insert(plan.clone(), Vec::new());
            self.start_loading(plan);
        }
        None
    }

    /// Like [`Plans::get`]; if the plan must be loaded first, the delivery is returned by
    /// [`Plans::loaded`].
    pub(crate) fn get_for(
        &mut self,
        plan: &PlanRef,
        worker: WorkerKey,
        attempt: AttemptId,
    ) -> Option<Arc<StoredPlan>> {
        let stored = self.get(plan);
        if stored.is_none() {
            self.loading
                .entry(plan.clone())
                .or_default()
                .push((worker, attempt));
        }
        stored
    }

    /// Caches a loaded plan and returns the deliveries that waited for it. `None` retries the load.
    pub(crate) fn loaded(
        &mut self,
        plan: &PlanRef,
        stored: Option<&Arc<StoredPlan>>,
    ) -> Vec<(WorkerKey, AttemptId)> {
        let Some(stored) = stored else {
            self.start_loading(plan);
            return Vec::new();
        };
        self.cached
            .insert(plan.clone(), stored.clone(), stored.bytes);
        self.loading.remove(plan).unwrap_or_default()
    }

    /// Returns whether the delivery of this attempt waits for its plan.
    pub(crate) fn is_awaited(&self, attempt: AttemptId) -> bool {
        let mut deliveries = self.loading.values().flatten();
        deliveries.any(|(_, waiting)| *waiting == attempt)
    }

    fn start_loading(&self, plan: &PlanRef) {
        let load = load(self.engine.clone(), self.loops.clone(), plan.clone());
        servo_actor::spawn_task("plan load", load);
    }
}

async fn load(engine: Engine, loops: LoopStore, plan: PlanRef) {
    let stored = match load_stored(&loops, &plan).await {
        Ok(stored) => Some(Arc::new(stored)),
        Err(fault) => {
            warn!(tenant = %plan.tenant, plan = %plan.plan_id, fault, "failed to load a plan; retrying");
            tokio::time::sleep(RETRY_DELAY).await;
            None
        }
    };
    engine.send(Message::PlanLoaded(plan, stored)).await;
}

async fn load_stored(loops: &LoopStore, plan: &PlanRef) -> Result<StoredPlan, String> {
    let bytes = store::read_plan(loops, plan)
        .await
        .map_err(|error| error.to_string())?;
    let bytes = bytes.ok_or("planner.plans has no such plan")?;
    let decoded = pb::Plan::decode(&*bytes).map_err(|error| error.to_string())?;
    let admission = Arc::new(wire::admission_plan(&decoded).map_err(|error| error.to_string())?);
    let pinned = pinned_versions(&decoded);
    Ok(StoredPlan {
        tenant: plan.tenant.clone(),
        plan: decoded,
        pinned,
        admission,
        bytes: bytes.len() * DECODED_FACTOR,
    })
}
