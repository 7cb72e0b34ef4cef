//! Runs of tenants with limits: counted under a lock before they start, and kept waiting until there is a place.
//!
//! What starts a run is its PlanCreated. For a tenant with a limit it is appended in a transaction that first takes the
//! tenant's lock and counts, so whatever instance holds the run's shard, no two take the same place (ADR 0011).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use servo_model::{RunId, Stream, TenantId};
use servo_store::{LoopTx, StoreError, Timestamp, query};
use uuid::Uuid;

use super::command::{Command, Submission, UnplannedRun};
use super::flush::PendingFlush;
use super::lane::Lane;
use crate::core::{InUse, RunLimits, StartDecision, Time, decide_start, take_capacity};

/// Runs of one lane that have no plan yet, by tenant and age: most of them wait for a place.
#[derive(Debug, Default)]
pub(super) struct WaitingRuns {
    runs: BTreeMap<TenantId, BTreeMap<(Time, RunId), UnplannedRun>>,
    /// Those whose turn it is: their plan is on its way.
    called: HashSet<RunId>,
}

impl WaitingRuns {
    fn add(&mut self, tenant: TenantId, created_at: Time, run: UnplannedRun) {
        self.runs
            .entry(tenant)
            .or_default()
            .insert((created_at, run.run_id), run);
    }

    pub(super) fn remove(&mut self, tenant: &TenantId, created_at: Time, run_id: RunId) {
        self.called.remove(&run_id);
        if let Some(runs) = self.runs.get_mut(tenant) {
            runs.remove(&(created_at, run_id));
            if runs.is_empty() {
                self.runs.remove(tenant);
            }
        }
    }

    /// Its turn was not, after all: somebody else took the place.
    pub(super) fn return_to_waiting(&mut self, run_id: RunId) {
        self.called.remove(&run_id);
    }

    pub(super) fn drop_shard(&mut self, shard: i16) {
        self.called.retain(|run| run.shard() != shard);
        for runs in self.runs.values_mut() {
            runs.retain(|(_, run), _| run.shard() != shard);
        }
        self.runs.retain(|_, runs| !runs.is_empty());
    }

    /// Runs that may start now, each once.
    fn call(&mut self, tenant: &TenantId, turns: Option<&HashSet<RunId>>) -> Vec<UnplannedRun> {
        let runs = self.runs.get(tenant).into_iter().flat_map(BTreeMap::values);
        let due = runs.filter(|run| turns.is_none_or(|turns| turns.contains(&run.run_id)));
        due.filter(|run| self.called.insert(run.run_id))
            .cloned()
            .collect()
    }
}

/// What the tenants of a flush use, with the transaction that keeps it true.
pub(super) struct Counted {
    pub(super) tx: LoopTx,
    pub(super) in_use: HashMap<TenantId, InUse>,
    /// When, by the database. Whoever left a place did so before, whatever other instances think the time is.
    pub(super) at: Time,
}

impl Lane {
    /// What holds for a tenant; nothing while it is not known.
    fn limits_of(&self, tenant: &TenantId) -> Option<Arc<RunLimits>> {
        let limits = self.limits.borrow();
        limits.known.then(|| limits.of(tenant).clone())
    }

    /// Counts for the tenants of these works that need it. For all others there is nothing to ask.
    pub(super) async fn count_runs(
        &self,
        submissions: &[Submission],
    ) -> Result<Option<Counted>, StoreError> {
        let starts = submissions
            .iter()
            .flat_map(|submission| &submission.commands)
            .filter_map(starting_tenant);
        let limited = |tenant: &str| -> Option<(TenantId, i64)> {
            let tenant: TenantId = tenant.parse().ok()?;
            let limits = self.limits_of(&tenant).filter(|limits| limits.counts())?;
            Some((tenant, limits.max_daily_runs.map_or(0, i64::from)))
        };
        let limited: BTreeMap<TenantId, i64> = starts.filter_map(limited).collect();
        if limited.is_empty() {
            return Ok(None);
        }
        let mut tx = self.loops.begin().await?;
        let tenants: Vec<&str> = limited.keys().map(TenantId::as_str).collect();
        // A statement of its own: the count must see what was committed before the lock was given.
        tx.execute(query(include_str!("../store/lock_run_limits.sql")).bind(&tenants))
            .await?;
        let count = query(include_str!("../store/runs_in_use.sql"))
            .bind(&tenants)
            .bind(limited.values().copied().collect::<Vec<_>>())
            .bind(all_shards());
        let rows: Vec<(String, i64, i64, i64, Timestamp)> = tx.all(count).await?;
        let at = rows.iter().map(|row| row.4.unix_us()).max().unwrap_or(0);
        let number = |count: i64| u32::try_from(count).unwrap_or(u32::MAX);
        let in_use = rows
            .into_iter()
            .filter_map(|(tenant, concurrent, queued, today, _)| {
                let in_use = InUse {
                    concurrent: number(concurrent),
                    queued: number(queued),
                    today: number(today),
                };
                Some((tenant.parse().ok()?, in_use))
            });
        Ok(Some(Counted {
            tx,
            in_use: in_use.collect(),
            at,
        }))
    }

    /// What becomes of a new run.
    pub(super) fn decide_start(
        &self,
        tenant: &TenantId,
        pending: &mut PendingFlush,
    ) -> StartDecision {
        match (self.limits_of(tenant), pending.in_use.get_mut(tenant)) {
            (None, _) => StartDecision::Wait,
            (Some(limits), Some(in_use)) => decide_start(&limits, in_use),
            // The limit came after the count: with the next look it is known how many there are.
            (Some(limits), None) if limits.counts() => StartDecision::Wait,
            (Some(_), None) => StartDecision::Start,
        }
    }

    /// Whether a run that waits may start.
    pub(super) fn may_start(&self, tenant: &TenantId, pending: &mut PendingFlush) -> bool {
        match (self.limits_of(tenant), pending.in_use.get_mut(tenant)) {
            (None, _) => false,
            (Some(limits), Some(in_use)) => take_capacity(&limits, in_use),
            (Some(limits), None) => limits.max_concurrent_runs.is_none(),
        }
    }

    /// Has a run planned now, or when it is its turn.
    pub(super) fn plan_or_wait(&mut self, tenant: TenantId, created_at: Time, run: UnplannedRun) {
        let free = self
            .limits_of(&tenant)
            .is_some_and(|limits| limits.max_concurrent_runs.is_none());
        // Also what need not wait: a limit may come before its plan does.
        self.waiting.add(tenant, created_at, run.clone());
        if !free {
            return self.run_capacity.wanted();
        }
        self.waiting.called.insert(run.run_id);
        // Nobody plans in a process that is stopping; the next holder finds the run.
        let _ = self.unplanned.send(run);
    }

    /// Somebody of a tenant with a limit has left.
    pub(super) fn release_capacity(&self, tenant: &TenantId) {
        if self
            .limits_of(tenant)
            .is_some_and(|limits| limits.max_concurrent_runs.is_some())
        {
            self.run_capacity.left();
        }
    }

    /// Calls those whose turn it is.
    pub(super) async fn start_waiting_runs(&mut self) {
        if self.waiting.runs.is_empty() {
            return;
        }
        self.run_capacity.wanted();
        let tenants: Vec<TenantId> = self.waiting.runs.keys().cloned().collect();
        let known = tenants
            .iter()
            .filter_map(|tenant| Some((tenant, self.limits_of(tenant)?)));
        let (limited, free): (Vec<_>, Vec<_>) =
            known.partition(|(_, limits)| limits.max_concurrent_runs.is_some());
        let turns = match self.startable_runs(&limited).await {
            Ok(turns) => turns,
            Err(error) => return tracing::warn!(%error, "runs that wait could not be looked at"),
        };
        let mut called = Vec::new();
        for (tenant, _) in limited {
            called.extend(self.waiting.call(tenant, Some(&turns)));
        }
        for (tenant, _) in free {
            called.extend(self.waiting.call(tenant, None));
        }
        called
            .into_iter()
            .for_each(|run| drop(self.unplanned.send(run)));
    }

    async fn startable_runs(
        &self,
        limited: &[(&TenantId, Arc<RunLimits>)],
    ) -> Result<HashSet<RunId>, StoreError> {
        if limited.is_empty() {
            return Ok(HashSet::new());
        }
        let most = |limits: &RunLimits| i64::from(limits.max_concurrent_runs.unwrap_or(u32::MAX));
        let select = query(include_str!("../store/whose_turn.sql"))
            .bind(
                limited
                    .iter()
                    .map(|(tenant, _)| tenant.as_str())
                    .collect::<Vec<_>>(),
            )
            .bind(
                limited
                    .iter()
                    .map(|(_, limits)| most(limits))
                    .collect::<Vec<_>>(),
            )
            .bind(all_shards());
        let rows: Vec<(Uuid,)> = self.loops.all(select).await?;
        Ok(rows
            .into_iter()
            .map(|(run,)| RunId::from_bytes(run.into_bytes()))
            .collect())
    }
}

pub(crate) fn all_shards() -> Vec<i16> {
    (0..Stream::Execution.shards()).collect()
}

/// Whose run may start by this.
fn starting_tenant(command: &Command) -> Option<&str> {
    match command {
        Command::Run(new) => Some(&new.tenant),
        Command::Plan(plan) if plan.result.is_ok() => Some(&plan.tenant),
        _ => None,
    }
}
