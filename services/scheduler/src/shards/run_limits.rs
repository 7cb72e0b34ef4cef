//! Limits on concurrent, waiting and daily runs (ADR 11).
//!
//! A run starts with its PlanCreated. For a tenant with a limit the event is appended in a
//! transaction that first takes the tenant's lock and counts its runs, so that two instances never
//! use the same free capacity. A run above the limit keeps its request and waits without a plan.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use servo_model::{RunId, ShardId, TenantId, Timestamp};
use servo_store::{LoopTx, StoreError};
use tokio::sync::mpsc;

use super::command::{Command, Submission, UnplannedRun};
use super::flush::PendingFlush;
use super::lane::Lane;
use crate::core::{InUse, RunLimits, StartDecision, decide_start, take_capacity};
use crate::store::limits;

/// Runs of one lane without a plan, by tenant and age. Most of them wait for capacity.
#[derive(Debug, Default)]
pub(super) struct UnplannedRuns {
    runs: BTreeMap<TenantId, BTreeMap<(Timestamp, RunId), UnplannedRun>>,
    /// Runs that may start: their plan is requested.
    starting: HashSet<RunId>,
}

impl UnplannedRuns {
    fn add(&mut self, tenant: TenantId, created_at: Timestamp, run: UnplannedRun) {
        self.runs
            .entry(tenant)
            .or_default()
            .insert((created_at, run.run_id), run);
    }

    pub(super) fn remove(&mut self, tenant: &TenantId, created_at: Timestamp, run_id: RunId) {
        self.starting.remove(&run_id);
        if let Some(runs) = self.runs.get_mut(tenant) {
            runs.remove(&(created_at, run_id));
            if runs.is_empty() {
                self.runs.remove(tenant);
            }
        }
    }

    /// Another run took the capacity first; this run waits again.
    pub(super) fn return_to_waiting(&mut self, run_id: RunId) {
        self.starting.remove(&run_id);
    }

    pub(super) fn remove_shard(&mut self, shard: ShardId) {
        self.starting.retain(|run| run.shard() != shard);
        for runs in self.runs.values_mut() {
            runs.retain(|(_, run), _| run.shard() != shard);
        }
        self.runs.retain(|_, runs| !runs.is_empty());
    }

    /// Returns the runs that may start now, each run once.
    fn take_startable(
        &mut self,
        tenant: &TenantId,
        startable: Option<&HashSet<RunId>>,
    ) -> Vec<UnplannedRun> {
        let runs = self.runs.get(tenant).into_iter().flat_map(BTreeMap::values);
        let due =
            runs.filter(|run| startable.is_none_or(|startable| startable.contains(&run.run_id)));
        due.filter(|run| self.starting.insert(run.run_id))
            .cloned()
            .collect()
    }
}

/// The usage of the tenants of a flush, and the transaction whose lock keeps the counts valid.
pub(super) struct CountedRuns {
    pub(super) tx: LoopTx,
    pub(super) in_use: HashMap<TenantId, InUse>,
    /// The database's time of the count, which is after the end of every run that it counted as
    /// ended.
    pub(super) at: Timestamp,
}

impl Lane {
    /// The limits of a tenant; `None` until the quota service has sent them.
    fn limits_of(&self, tenant: &TenantId) -> Option<Arc<RunLimits>> {
        let limits = self.limits.borrow();
        limits.known.then(|| limits.of(tenant).clone())
    }

    /// Locks and counts for the tenants of these submissions that have a limit. Returns `None` when
    /// there is nothing to count.
    pub(super) async fn count_runs(
        &self,
        submissions: &[Submission],
    ) -> Result<Option<CountedRuns>, StoreError> {
        let starting = submissions
            .iter()
            .flat_map(|submission| &submission.commands)
            .filter_map(starting_tenant);
        let limited = |tenant: &TenantId| {
            let limits = self.limits_of(tenant).filter(|limits| limits.counts())?;
            Some((tenant.clone(), limits.max_daily_runs.map_or(0, i64::from)))
        };
        let limited: BTreeMap<TenantId, i64> = starting.filter_map(limited).collect();
        if limited.is_empty() {
            return Ok(None);
        }
        let mut tx = self.loops.begin().await?;
        // A separate statement, because the count must see everything that was committed before the
        // lock was granted.
        limits::lock(&mut tx, limited.keys()).await?;
        let (in_use, at) = limits::count_in_use(&mut tx, &limited).await?;
        Ok(Some(CountedRuns { tx, in_use, at }))
    }

    /// Decides whether a new run starts, waits or is refused.
    pub(super) fn decide_start(
        &self,
        tenant: &TenantId,
        pending: &mut PendingFlush,
    ) -> StartDecision {
        match (self.limits_of(tenant), pending.in_use.get_mut(tenant)) {
            (None, _) => StartDecision::Wait,
            (Some(limits), Some(in_use)) => decide_start(&limits, in_use),
            // The limit arrived after the count; the next look counts the runs.
            (Some(limits), None) if limits.counts() => StartDecision::Wait,
            (Some(_), None) => StartDecision::Start,
        }
    }

    /// Takes capacity for a waiting run; returns false when there is none.
    pub(super) fn take_run_capacity(&self, tenant: &TenantId, pending: &mut PendingFlush) -> bool {
        match (self.limits_of(tenant), pending.in_use.get_mut(tenant)) {
            (None, _) => false,
            (Some(limits), Some(in_use)) => take_capacity(&limits, in_use),
            (Some(limits), None) => limits.max_concurrent_runs.is_none(),
        }
    }

    /// Requests the plan of a run now, or lets the run wait for capacity.
    pub(super) fn plan_or_wait(
        &mut self,
        tenant: TenantId,
        created_at: Timestamp,
        run: UnplannedRun,
    ) {
        let free = self
            .limits_of(&tenant)
            .is_some_and(|limits| limits.max_concurrent_runs.is_none());
        // Also a run that need not wait, because a limit may arrive before its plan.
        self.unplanned_runs.add(tenant, created_at, run.clone());
        if !free {
            return self.run_capacity.awaited();
        }
        self.unplanned_runs.starting.insert(run.run_id);
        self.request_plan(run);
    }

    /// Reports that a run of the tenant has ended.
    pub(super) fn release_capacity(&self, tenant: &TenantId) {
        if self
            .limits_of(tenant)
            .is_some_and(|limits| limits.max_concurrent_runs.is_some())
        {
            self.run_capacity.released();
        }
    }

    /// Requests the plans of the waiting runs that may start now.
    pub(super) async fn start_waiting_runs(&mut self) {
        if self.unplanned_runs.runs.is_empty() {
            return;
        }
        self.run_capacity.awaited();
        let tenants: Vec<TenantId> = self.unplanned_runs.runs.keys().cloned().collect();
        let with_limits = tenants
            .iter()
            .filter_map(|tenant| Some((tenant, self.limits_of(tenant)?)));
        let (limited, free): (Vec<_>, Vec<_>) =
            with_limits.partition(|(_, limits)| limits.max_concurrent_runs.is_some());
        let startable = match self.startable_runs(&limited).await {
            Ok(startable) => startable,
            Err(error) => return tracing::warn!(%error, "failed to look for runs that may start"),
        };
        let mut runs = Vec::new();
        for (tenant, _) in limited {
            runs.extend(self.unplanned_runs.take_startable(tenant, Some(&startable)));
        }
        for (tenant, _) in free {
            runs.extend(self.unplanned_runs.take_startable(tenant, None));
        }
        for run in runs {
            self.request_plan(run);
        }
    }

    /// Hands the run to the plan requester. While its queue is full the run stays in the waiting
    /// set, from which it is taken again.
    fn request_plan(&mut self, run: UnplannedRun) {
        if let Err(mpsc::error::TrySendError::Full(run)) = self.plan_requests.try_send(run) {
            self.unplanned_runs.starting.remove(&run.run_id);
            self.run_capacity.awaited();
        }
    }

    async fn startable_runs(
        &self,
        limited: &[(&TenantId, Arc<RunLimits>)],
    ) -> Result<HashSet<RunId>, StoreError> {
        if limited.is_empty() {
            return Ok(HashSet::new());
        }
        let tenants: Vec<(&TenantId, u32)> = limited
            .iter()
            .map(|(tenant, limits)| (*tenant, limits.max_concurrent_runs.unwrap_or(u32::MAX)))
            .collect();
        limits::list_startable(&self.loops, &tenants).await
    }
}

/// The tenant of a run that may start with this command.
fn starting_tenant(command: &Command) -> Option<&TenantId> {
    match command {
        Command::Run(new) => Some(&new.tenant),
        Command::Plan(plan) if plan.result.is_ok() => Some(&plan.tenant),
        _ => None,
    }
}
