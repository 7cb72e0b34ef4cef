//! Random runs: graphs with retries, short deadlines, pools and mapped tasks.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_dispatcher::core::{Demand, PlanRef, Room, Shape, ShapedTask};
use servo_model::retry::{Backoff, RetryPolicy};
use servo_model::{AssetKey, AttemptId, Digest, DispatchId, Operation, RunId, TaskKey, TenantId};
use servo_scheduler::core::{AssetSettings, Graph, PlannedTask, RunHeader, Slot, Time};

use crate::dice::Dice;
use crate::{MS, SECOND};

/// The pool that limits are set for.
pub const POOL: &str = "db";

/// A run that somebody asks for: what it is to the scheduler and what it is to the dispatcher.
#[derive(Debug, Clone)]
pub struct Plan {
    pub header: RunHeader,
    pub graph: Arc<Graph>,
    pub plan: PlanRef,
    pub shape: Arc<Shape>,
    /// Requested by another service and planned afterwards, as a tick of a schedule is.
    pub requested_by_others: bool,
    /// There will be no plan.
    pub unplannable: bool,
}

impl Plan {
    pub fn random(number: usize, tasks: u32, tenants: &[TenantId], dice: &mut Dice) -> Plan {
        let tenant = dice.pick(tenants).clone();
        let mut id = dice.bytes();
        id[15] = number as u8;
        let run_id = RunId::from_bytes(id);
        let plan_id = Digest::of(run_id.as_bytes());
        let graph = Arc::new(graph(&plan_id, tasks, dice));
        let plan = PlanRef {
            tenant: tenant.clone(),
            workspace: "prod".parse().expect("a name"),
            plan_id,
        };
        let others = dice.percent(20);
        let shape = Arc::new(shape(&graph, &plan));
        Plan {
            header: header(run_id, &tenant, dice),
            graph,
            plan,
            shape,
            requested_by_others: others,
            unplannable: others && dice.percent(25),
        }
    }

    /// Another request under the same run key.
    pub fn rival(&self) -> Plan {
        let mut rival = self.clone();
        rival.header.fingerprint = [2; 32];
        rival
    }

    pub fn run_id(&self) -> RunId {
        self.header.run_id
    }

    pub fn attempt_id(&self, slot: Slot, attempt: u32) -> AttemptId {
        let planned = &self.graph.task(slot.ordinal).key;
        let key = slot
            .item
            .map_or_else(|| planned.clone(), |item| planned.child(item));
        DispatchId::new(&self.run_id(), &key, attempt).attempt_id()
    }

    /// Whether this task travels by the push queue.
    pub fn is_pushed(&self, slot: Slot) -> bool {
        slot.ordinal % 5 == 3
    }

    /// Whether somebody is mapped over this task, which then names items.
    pub fn is_mapped_over(&self, ordinal: u32) -> bool {
        self.graph
            .tasks
            .iter()
            .any(|task| task.mapped_over == Some(ordinal))
    }
}

fn header(run_id: RunId, tenant: &TenantId, dice: &mut Dice) -> RunHeader {
    // Rewritten when the run is recorded: a deadline counts from then.
    let duration = if dice.percent(20) {
        dice.between(3, 12) * SECOND
    } else {
        600 * SECOND
    };
    RunHeader {
        run_id,
        number: 0,
        tenant: tenant.clone(),
        workspace: "prod".parse().expect("a name"),
        fingerprint: [1; 32],
        created_at: 0,
        deadline: Some(duration),
        priority: dice.between(0, 2) as i32,
        backfill: dice.percent(20),
        trigger: servo_scheduler::core::TriggerType::Manual,
        traceparent: "".into(),
    }
}

fn graph(plan_id: &Digest, tasks: u32, dice: &mut Dice) -> Graph {
    let mut planned: Vec<PlannedTask> = Vec::new();
    for ordinal in 0..tasks {
        let ups = if ordinal == 0 {
            0
        } else {
            dice.below(3).min(u64::from(ordinal))
        };
        let upstream: BTreeSet<u32> = (0..ups)
            .map(|_| dice.below(u64::from(ordinal)) as u32)
            .collect();
        let mapped_over = upstream.first().copied().filter(|_| dice.percent(25));
        // As the planner marks them: never behind one that runs, and never one whose items are needed.
        let current =
            mapped_over.is_none() && upstream.iter().all(|up| planned[*up as usize].up_to_date);
        let up_to_date = current && dice.percent(12);
        if let Some(over) = mapped_over {
            wake(&mut planned, over);
        }
        planned.push(PlannedTask {
            key: TaskKey::new(
                AssetKey::new("t", &format!("a{ordinal}")).expect("a name"),
                None,
                Operation::Materialize,
            ),
            asset: ordinal,
            partition_key: "".into(),
            upstream: upstream.into_iter().collect(),
            mapped_over,
            up_to_date,
        });
    }
    let assets = (0..tasks).map(|asset| settings(asset, dice)).collect();
    Graph::new(*plan_id.as_bytes(), "d".into(), assets, planned)
        .expect("built in topological order")
}

/// The task must run, and hence everything that depends on it.
fn wake(planned: &mut [PlannedTask], ordinal: u32) {
    planned[ordinal as usize].up_to_date = false;
    for later in ordinal as usize + 1..planned.len() {
        let runs = planned[later]
            .upstream
            .iter()
            .any(|up| !planned[*up as usize].up_to_date);
        planned[later].up_to_date &= !runs;
    }
}

fn settings(asset: u32, dice: &mut Dice) -> AssetSettings {
    let initial_delay_ms = dice.between(200, 900).unsigned_abs();
    AssetSettings {
        asset_key: format!("t/a{asset}").into(),
        also_makes: Vec::new(),
        retry: RetryPolicy {
            backoff: *dice.pick(Backoff::ALL),
            initial_delay_ms,
            max_delay_ms: 2_000,
            max_attempts: dice.between(1, 4) as u32,
            ..RetryPolicy::default()
        },
        retry_types: Vec::new(),
        never_types: Vec::new(),
        execution_us: dice.between(2_000, 8_000) * MS,
        dispatch_ack_us: dice.between(1_000, 3_000) * MS,
        heartbeat_us: 2_000 * MS as Time,
        pool: if dice.percent(40) {
            POOL.into()
        } else {
            "".into()
        },
        priority: dice.between(0, 1) as i32,
        code_version: "".into(),
    }
}

fn shape(graph: &Graph, plan: &PlanRef) -> Shape {
    let demand = |settings: &AssetSettings| Demand {
        workspace: plan.workspace.clone(),
        pool: Some(settings.pool.clone()).filter(|pool| !pool.is_empty()),
        capabilities: BTreeSet::new(),
        handler: None,
        room: Room::default(),
    };
    Shape {
        assets: graph
            .assets
            .iter()
            .map(|asset| (Arc::new(demand(asset)), asset.priority))
            .collect(),
        tasks: graph
            .tasks
            .iter()
            .map(|task| ShapedTask {
                asset: task.asset,
                key: task.key.clone(),
            })
            .collect(),
    }
}
