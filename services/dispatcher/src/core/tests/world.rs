//! A small model of a scheduler and of workers that drives a real [`Admission`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use servo_model::{
    AdmissionShard, AttemptId, Digest, Epoch, RunId, ShardId, Stream, TaskRef, TenantId,
    TenantScope, Timestamp, WorkerId,
};

use crate::core::*;

pub(super) const STREAM: SchedulerStreamId = SchedulerStreamId(1);

pub(super) struct World {
    pub(super) admission: Admission,
    pub(super) now: Timestamp,
    pub(super) live: BTreeMap<AttemptId, Claim>,
    /// Accepted attempts that were delivered.
    pub(super) delivered: BTreeSet<AttemptId>,
    batch: u64,
    runs: u8,
}

impl World {
    /// All admission shards are held, and every execution shard has reported that it is empty.
    pub(super) fn new() -> World {
        let mut world = World::unreported();
        for shard in Stream::Execution.shards() {
            world.snapshot(shard, vec![], vec![]);
        }
        world
    }

    /// All admission shards are held, and no execution shard has reported yet.
    pub(super) fn unreported() -> World {
        let mut admission = Admission::default();
        admission.set_held(
            AdmissionShard::all()
                .map(|shard| (shard, Epoch::new(1)))
                .collect(),
        );
        admission.set_limits(Limits::none());
        admission.stream_opened(STREAM, AdmissionShard::all());
        World {
            admission,
            now: Timestamp::from_unix_seconds(1_000),
            live: BTreeMap::new(),
            delivered: BTreeSet::new(),
            batch: 0,
            runs: 0,
        }
    }

    pub(super) fn snapshot(
        &mut self,
        shard: ShardId,
        ready: Vec<ReadyRun>,
        live: Vec<SnapshotAttempt>,
    ) {
        let whole = Snapshot {
            shard,
            epoch: Epoch::new(1),
            first: true,
            last: true,
            ready,
            live,
        };
        self.admission.apply_snapshot(STREAM, whole, self.now);
    }

    pub(super) fn worker(&mut self, number: u8, tenant: Option<&str>, slots: u32) -> WorkerKey {
        self.worker_with(number, tenant, slots, |_| {})
    }

    pub(super) fn worker_with(
        &mut self,
        number: u8,
        tenant: Option<&str>,
        slots: u32,
        change: impl FnOnce(&mut Worker),
    ) -> WorkerKey {
        let mut worker = Worker {
            id: WorkerId::from_bytes([number; 16]),
            session: "first".into(),
            tenant: tenant.map_or(TenantScope::All, |name| name.parse().unwrap()),
            workspaces: BTreeSet::new(),
            pools: BTreeSet::new(),
            capabilities: BTreeSet::new(),
            handlers: BTreeSet::new(),
            resources: Resources::default(),
            slots,
            credits: slots,
            draining: false,
            pushed: false,
        };
        change(&mut worker);
        let key = worker.key();
        self.admission.connect_worker(worker);
        key
    }

    /// Offers a run of `count` tasks of the same kind and loads its plan at once.
    pub(super) fn offer(&mut self, tenant: &str, count: u32, kind: Kind) -> RunId {
        self.runs += 1;
        let run = RunId::from_bytes([self.runs; 16]);
        self.offer_run(tenant, run, 0..count, kind);
        run
    }

    pub(super) fn offer_run(
        &mut self,
        tenant: &str,
        id: RunId,
        tasks: std::ops::Range<u32>,
        kind: Kind,
    ) {
        let plan = plan_of(tenant, id);
        let backfill = kind.backfill;
        let tasks = tasks.map(|ordinal| offered(ordinal, 1)).collect();
        let run = ReadyRun {
            run: id,
            plan: plan.clone(),
            backfill,
            trace: Default::default(),
            tasks,
        };
        let update = Update {
            ready: vec![run],
            ..no_update(id)
        };
        self.admission.apply_update(STREAM, update, self.now);
        self.read_plans(&kind);
    }

    pub(super) fn read_plans(&mut self, kind: &Kind) {
        for effect in self.admission.take_effects() {
            if let Effect::LoadPlan(plan) = effect {
                self.admission
                    .plan_loaded(&plan, &kind.admission_plan(&plan), self.now);
            }
        }
    }

    /// Chooses and sends one batch, without an answer.
    pub(super) fn choose(&mut self) -> Vec<Claim> {
        let chosen = self.admission.choose(self.now, CLAIMS_PER_BATCH_MAX);
        if !chosen.is_empty() {
            self.batch += 1;
            let claims = chosen.iter().map(|claim| claim.attempt_id).collect();
            self.admission.claims_sent(STREAM, self.batch, claims);
        }
        chosen
    }

    /// Answers the last batch; `refused` are indexes in it.
    pub(super) fn answer(&mut self, chosen: &[Claim], refused: &[u32]) {
        let refused: BTreeSet<u32> = refused.iter().copied().collect();
        self.admission
            .claim_results(STREAM, self.batch, &refused, self.now);
        for (index, claim) in (0..).zip(chosen) {
            if !refused.contains(&index) {
                self.live.insert(claim.attempt_id, claim.clone());
            }
        }
        self.note_deliveries();
    }

    pub(super) fn note_deliveries(&mut self) {
        for effect in self.admission.take_effects() {
            if let Effect::Deliver { attempt, .. } = effect {
                assert!(
                    self.delivered.insert(attempt),
                    "{attempt} is delivered twice"
                );
            }
        }
    }

    /// Chooses and accepts until nothing more can be admitted.
    pub(super) fn admit_all(&mut self) -> Vec<Claim> {
        let mut all = Vec::new();
        loop {
            let chosen = self.choose();
            if chosen.is_empty() {
                return all;
            }
            self.answer(&chosen, &[]);
            all.extend(chosen);
        }
    }

    /// Ends an attempt, and its worker grants the credit again.
    pub(super) fn end(&mut self, attempt: AttemptId, held: Duration) {
        let claim = self.live.remove(&attempt).unwrap();
        let ended = vec![Ended {
            attempt_id: attempt,
            held,
        }];
        let update = Update {
            ended,
            ..no_update(claim.run)
        };
        self.admission.apply_update(STREAM, update, self.now);
        let worker = self
            .admission
            .workers
            .named(&claim.tenant, claim.worker)
            .map(Worker::key);
        worker
            .iter()
            .for_each(|worker| self.admission.add_credits(worker, 1));
    }

    pub(super) fn limit(&mut self, tenant: &str, limits: TenantLimits) {
        let mut all = self.admission.limits.clone();
        all.tenants
            .insert(tenant.parse().unwrap(), Arc::new(limits));
        self.admission.set_limits(all);
    }
}

pub(super) fn offered(ordinal: u32, attempt: u32) -> ReadyTask {
    let task = TaskRef::planned(ordinal);
    ReadyTask {
        task,
        attempt,
        failures: 0,
        item_json: String::new(),
    }
}

/// An update of the run's shard that changes nothing.
pub(super) fn no_update(run: RunId) -> Update {
    Update {
        shard: run.shard(),
        ready: Vec::new(),
        withdrawn: Vec::new(),
        ended: Vec::new(),
        cancelled: Vec::new(),
    }
}

pub(super) fn plan_of(tenant: &str, run: RunId) -> PlanRef {
    PlanRef {
        tenant: tenant.parse().unwrap(),
        workspace: "prod".parse().unwrap(),
        plan_id: Digest::of(run.to_string()),
    }
}

pub(super) fn tenant(name: &str) -> TenantId {
    name.parse().unwrap()
}

/// Properties of a run's tasks.
#[derive(Debug, Clone, Default)]
pub(super) struct Kind {
    pub(super) pool: Option<&'static str>,
    pub(super) capability: Option<&'static str>,
    pub(super) priority: i32,
    pub(super) backfill: bool,
}

impl Kind {
    pub(super) fn admission_plan(&self, plan: &PlanRef) -> Arc<AdmissionPlan> {
        let demand = Demand {
            workspace: plan.workspace.clone(),
            pool: self.pool.map(Arc::from),
            capabilities: self.capability.map(Arc::from).into_iter().collect(),
            handler: None,
            resources: Resources::default(),
        };
        let task = |number: u32| AdmissionTask {
            asset: 0,
            key: format!("raw/a{number}:check").parse().unwrap(),
        };
        Arc::new(AdmissionPlan {
            assets: vec![(Arc::new(demand), self.priority)],
            tasks: (0..2_000).map(task).collect(),
        })
    }
}

pub(super) fn pool(name: &'static str) -> Kind {
    Kind {
        pool: Some(name),
        ..Kind::default()
    }
}

pub(super) fn plain() -> Kind {
    Kind::default()
}

/// Counts the chosen tasks per tenant, the highest count first.
pub(super) fn per_tenant(chosen: &[Claim]) -> Vec<(Reverse<usize>, String)> {
    let mut counts = BTreeMap::<String, usize>::new();
    for claim in chosen {
        *counts.entry(claim.tenant.to_string()).or_default() += 1;
    }
    let mut counts: Vec<_> = counts
        .into_iter()
        .map(|(name, count)| (Reverse(count), name))
        .collect();
    counts.sort();
    counts
}
