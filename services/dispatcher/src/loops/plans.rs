//! Plans in memory, within a bound, and the reading of those that are not.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use servo_model::AttemptId;
use servo_proto::v1 as pb;
use servo_store::LoopStore;
use tracing::warn;

use super::engine::{Engine, Message};
use crate::core::{PlanRef, WorkerKey};
use crate::envelope::StoredPlan;
use crate::inputs;
use crate::{store, wire};

/// How long to wait before a plan that could not be read is tried again: its tenant waits for it.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// A decoded plan takes about this much more memory than its bytes.
const DECODED_FACTOR: usize = 4;

pub(crate) struct Plans {
    engine: Engine,
    loops: LoopStore,
    bytes_max: usize,
    bytes: usize,
    uses: u64,
    cached: HashMap<PlanRef, (Arc<StoredPlan>, u64)>,
    /// Plans that are being read, with the deliveries that wait for them.
    reading: HashMap<PlanRef, Vec<(WorkerKey, AttemptId)>>,
}

impl Plans {
    pub(crate) fn new(engine: Engine, loops: LoopStore, bytes_max: usize) -> Plans {
        Plans {
            engine,
            loops,
            bytes_max,
            bytes: 0,
            uses: 0,
            cached: HashMap::new(),
            reading: HashMap::new(),
        }
    }

    /// The plan, or `None` and it is being read: the engine will hear of it.
    pub(crate) fn get(&mut self, plan: &PlanRef) -> Option<Arc<StoredPlan>> {
        self.uses += 1;
        if let Some((stored, used)) = self.cached.get_mut(plan) {
            *used = self.uses;
            return Some(stored.clone());
        }
        if !self.reading.contains_key(plan) {
            self.reading.insert(plan.clone(), Vec::new());
            tokio::spawn(read(self.engine.clone(), self.loops.clone(), plan.clone()));
        }
        None
    }

    /// The same for a delivery, which waits when the plan must be read first.
    pub(crate) fn get_for(
        &mut self,
        plan: &PlanRef,
        worker: WorkerKey,
        attempt: AttemptId,
    ) -> Option<Arc<StoredPlan>> {
        let stored = self.get(plan);
        if stored.is_none() {
            self.reading
                .entry(plan.clone())
                .or_default()
                .push((worker, attempt));
        }
        stored
    }

    /// A plan was read, or is being tried again; answers the deliveries that waited for it.
    pub(crate) fn arrived(
        &mut self,
        plan: &PlanRef,
        stored: Option<&Arc<StoredPlan>>,
    ) -> Vec<(WorkerKey, AttemptId)> {
        let Some(stored) = stored else {
            tokio::spawn(read(self.engine.clone(), self.loops.clone(), plan.clone()));
            return Vec::new();
        };
        self.bytes += stored.bytes;
        self.cached
            .insert(plan.clone(), (stored.clone(), self.uses));
        self.make_room(plan);
        self.reading.remove(plan).unwrap_or_default()
    }

    /// Forgets what was not used for longest, but not what just came.
    fn make_room(&mut self, keep: &PlanRef) {
        while self.bytes > self.bytes_max {
            let others = self.cached.iter().filter(|(plan, _)| *plan != keep);
            let Some(oldest) = others
                .min_by_key(|(_, (_, used))| *used)
                .map(|(plan, _)| plan.clone())
            else {
                return;
            };
            self.bytes -= self
                .cached
                .remove(&oldest)
                .map_or(0, |(stored, _)| stored.bytes);
        }
    }
}

async fn read(engine: Engine, loops: LoopStore, plan: PlanRef) {
    let stored = match read_stored(&loops, &plan).await {
        Ok(stored) => Some(Arc::new(stored)),
        Err(fault) => {
            warn!(tenant = %plan.tenant, plan = %plan.plan_id, fault, "cannot read a plan, trying again");
            tokio::time::sleep(AGAIN_AFTER).await;
            None
        }
    };
    engine.tell(Message::Plan(plan, stored));
}

async fn read_stored(loops: &LoopStore, plan: &PlanRef) -> Result<StoredPlan, String> {
    let bytes = store::read_plan(loops, plan)
        .await
        .map_err(|error| error.to_string())?;
    let bytes = bytes.ok_or("planner.plans has no such plan")?;
    let decoded = pb::Plan::decode(&*bytes).map_err(|error| error.to_string())?;
    let shape = Arc::new(wire::shape(&decoded).map_err(|error| error.to_string())?);
    let taken_over = inputs::taken_over(&decoded);
    Ok(StoredPlan {
        plan: decoded,
        taken_over,
        shape,
        bytes: bytes.len() * DECODED_FACTOR,
    })
}
