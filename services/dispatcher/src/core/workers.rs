//! Connected workers: which of them can take a task with a given demand.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use servo_model::{TenantId, TenantScope, WorkerId, WorkspaceId};

use super::demand::{Demand, Resources};

/// How long a registration is valid without renewal.
pub const REGISTRATION_TTL: Duration = Duration::from_secs(15 * 60);

/// The identity of a worker. Workers choose their ids, so an id is unique only within a tenant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerKey {
    /// The tenants that the worker serves.
    pub tenant: TenantScope,
    pub id: WorkerId,
}

/// A connected worker.
#[derive(Debug, Clone)]
pub struct Worker {
    pub id: WorkerId,
    /// The session, which is one life of the worker process.
    pub session: Arc<str>,
    /// The tenants that the worker serves.
    pub tenant: TenantScope,
    /// Empty serves all workspaces.
    pub workspaces: BTreeSet<WorkspaceId>,
    /// Empty serves all pools, and tasks without a pool.
    pub pools: BTreeSet<Arc<str>>,
    pub capabilities: BTreeSet<Arc<str>>,
    pub handlers: BTreeSet<Arc<str>>,
    pub resources: Resources,
    pub slots: u32,
    /// How many more envelopes the worker accepts.
    pub credits: u32,
    /// Accepts no new attempts.
    pub draining: bool,
    /// Receives envelopes through the push queue. Such a worker grants no credits; it has one for
    /// every free slot.
    pub pushed: bool,
}

impl Worker {
    pub fn key(&self) -> WorkerKey {
        WorkerKey {
            tenant: self.tenant.clone(),
            id: self.id,
        }
    }

    /// Returns whether the worker may run tasks of this tenant.
    pub fn serves(&self, tenant: &TenantId) -> bool {
        self.tenant.contains(tenant)
    }

    /// Returns whether the worker could run such a task if it had a credit.
    pub fn can_run(&self, demand: &Demand) -> bool {
        !self.draining
            && (self.workspaces.is_empty() || self.workspaces.contains(&demand.workspace))
            && (self.pools.is_empty()
                || demand
                    .pool
                    .as_ref()
                    .is_some_and(|pool| self.pools.contains(pool)))
            && demand
                .handler
                .as_ref()
                .is_none_or(|handler| self.handlers.contains(handler))
            && demand.capabilities.is_subset(&self.capabilities)
            && self.resources.holds(&demand.resources)
    }
}

/// Workers with the most credits first; ties are broken by id.
type ByCredits = BTreeSet<(Reverse<u32>, WorkerId)>;

/// All connected workers.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    all: BTreeMap<WorkerKey, Worker>,
    /// Workers with credits.
    free: BTreeMap<TenantScope, ByCredits>,
    slots: BTreeMap<TenantScope, u32>,
}

impl Workers {
    /// Adds a worker, or replaces its earlier description.
    pub(crate) fn join(&mut self, worker: Worker) {
        let key = worker.key();
        self.leave(&key);
        *self.slots.entry(worker.tenant.clone()).or_default() += worker.slots;
        self.note_free(&worker);
        self.all.insert(key, worker);
    }

    pub(crate) fn leave(&mut self, key: &WorkerKey) -> Option<Worker> {
        let worker = self.all.remove(key)?;
        self.forget_free(&worker);
        if let Some(slots) = self.slots.get_mut(&worker.tenant) {
            *slots = slots.saturating_sub(worker.slots);
        }
        Some(worker)
    }

    pub(crate) fn get(&self, key: &WorkerKey) -> Option<&Worker> {
        self.all.get(key)
    }

    /// Returns the worker that an id in this tenant's data refers to: its own worker before a
    /// shared one.
    pub(crate) fn named(&self, tenant: &TenantId, id: WorkerId) -> Option<&Worker> {
        scopes_of(tenant).find_map(|tenant| self.all.get(&WorkerKey { tenant, id }))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Worker> {
        self.all.values()
    }

    pub(crate) fn add_credits(&mut self, key: &WorkerKey, more: u32) {
        self.change(key, |worker| {
            worker.credits = worker.credits.saturating_add(more)
        });
    }

    pub(crate) fn spend_credit(&mut self, key: &WorkerKey) {
        self.change(key, |worker| {
            worker.credits = worker.credits.saturating_sub(1)
        });
    }

    pub(crate) fn drain(&mut self, key: &WorkerKey) {
        self.change(key, |worker| worker.draining = true);
    }

    /// Uses a credit of the worker with the most credits among those that can run the task, own
    /// workers before shared ones.
    pub(crate) fn take(
        &mut self,
        tenant: &TenantId,
        demand: &Demand,
        may_push: bool,
    ) -> Option<WorkerKey> {
        let key = self.find(tenant, demand, may_push)?;
        self.spend_credit(&key);
        Some(key)
    }

    /// Returns the worker that [`Workers::take`] would choose. Workers that are pushed to are
    /// considered only if `may_push`.
    pub(crate) fn find(
        &self,
        tenant: &TenantId,
        demand: &Demand,
        may_push: bool,
    ) -> Option<WorkerKey> {
        let fits = |worker: &Worker| worker.can_run(demand) && (may_push || !worker.pushed);
        scopes_of(tenant)
            .flat_map(|scope| {
                self.free
                    .get(&scope)
                    .into_iter()
                    .flatten()
                    .map(move |(_, id)| (scope.clone(), *id))
            })
            .map(|(tenant, id)| WorkerKey { tenant, id })
            .find(|key| self.all.get(key).is_some_and(fits))
    }

    /// Iterates over the connected workers that serve this tenant.
    pub(crate) fn serving(&self, tenant: &TenantId) -> impl Iterator<Item = &Worker> {
        self.all
            .values()
            .filter(move |worker| worker.serves(tenant))
    }

    /// Returns the slots of all connected workers that serve this tenant.
    pub(crate) fn slots(&self, tenant: &TenantId) -> u32 {
        scopes_of(tenant)
            .filter_map(|scope| self.slots.get(&scope))
            .sum()
    }

    fn change(&mut self, key: &WorkerKey, change: impl FnOnce(&mut Worker)) {
        let Some(mut worker) = self.all.remove(key) else {
            return;
        };
        self.forget_free(&worker);
        change(&mut worker);
        self.note_free(&worker);
        self.all.insert(key.clone(), worker);
    }

    fn note_free(&mut self, worker: &Worker) {
        if worker.credits > 0 {
            self.free
                .entry(worker.tenant.clone())
                .or_default()
                .insert((Reverse(worker.credits), worker.id));
        }
    }

    fn forget_free(&mut self, worker: &Worker) {
        if let Some(free) = self.free.get_mut(&worker.tenant) {
            free.remove(&(Reverse(worker.credits), worker.id));
        }
    }
}

/// Returns the scopes whose workers serve this tenant: its own before the shared one.
fn scopes_of(tenant: &TenantId) -> impl Iterator<Item = TenantScope> + use<> {
    [tenant.into(), TenantScope::All].into_iter()
}
