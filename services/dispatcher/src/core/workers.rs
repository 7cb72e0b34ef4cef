//! Workers with room: who can take a task with a given demand.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_model::{TenantId, WorkerId, WorkspaceId};

use super::demand::{Demand, Room};

/// A connected worker.
#[derive(Debug, Clone)]
pub struct Worker {
    pub id: WorkerId,
    /// The process.
    pub session: Arc<str>,
    /// `None` serves every tenant.
    pub tenant: Option<TenantId>,
    /// Empty serves all.
    pub workspaces: BTreeSet<WorkspaceId>,
    /// Empty serves all, and tasks without a pool.
    pub pools: BTreeSet<Arc<str>>,
    pub capabilities: BTreeSet<Arc<str>>,
    pub handlers: BTreeSet<Arc<str>>,
    pub room: Room,
    pub slots: u32,
    /// How many more envelopes it will take.
    pub credits: u32,
    /// Takes nothing new.
    pub draining: bool,
    /// Gets its envelopes through the queue. It grants no credits: it has one for every free slot.
    pub pushed: bool,
}

impl Worker {
    /// Whether it may get what is this tenant's.
    pub fn serves(&self, tenant: &TenantId) -> bool {
        self.tenant.as_ref().is_none_or(|own| own == tenant)
    }

    /// Whether it could run such a task, had it credits.
    pub fn can_run(&self, demand: &Demand) -> bool {
        !self.draining
            && (self.workspaces.is_empty() || self.workspaces.contains(&demand.workspace))
            && (self.pools.is_empty() || demand.pool.as_ref().is_some_and(|pool| self.pools.contains(pool)))
            && demand.handler.as_ref().is_none_or(|handler| self.handlers.contains(handler))
            && demand.capabilities.is_subset(&self.capabilities)
            && self.room.holds(&demand.room)
    }
}

/// Those with most credits first; the id breaks ties.
type ByCredits = BTreeSet<(Reverse<u32>, WorkerId)>;

/// All connected workers.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    all: BTreeMap<WorkerId, Worker>,
    /// Of a tenant, or shared.
    free: BTreeMap<Option<TenantId>, ByCredits>,
    slots: BTreeMap<Option<TenantId>, u32>,
}

impl Workers {
    /// Adds a worker, or takes over what it says now.
    pub(crate) fn join(&mut self, worker: Worker) {
        self.leave(worker.id);
        *self.slots.entry(worker.tenant.clone()).or_default() += worker.slots;
        self.note_free(&worker);
        self.all.insert(worker.id, worker);
    }

    pub(crate) fn leave(&mut self, id: WorkerId) -> Option<Worker> {
        let worker = self.all.remove(&id)?;
        self.forget_free(&worker);
        if let Some(slots) = self.slots.get_mut(&worker.tenant) {
            *slots = slots.saturating_sub(worker.slots);
        }
        Some(worker)
    }

    pub(crate) fn get(&self, id: WorkerId) -> Option<&Worker> {
        self.all.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Worker> {
        self.all.values()
    }

    pub(crate) fn add_credits(&mut self, id: WorkerId, more: u32) {
        self.change(id, |worker| worker.credits = worker.credits.saturating_add(more));
    }

    pub(crate) fn spend_credit(&mut self, id: WorkerId) {
        self.change(id, |worker| worker.credits = worker.credits.saturating_sub(1));
    }

    pub(crate) fn drain(&mut self, id: WorkerId) {
        self.change(id, |worker| worker.draining = true);
    }

    /// Takes a credit of the worker that has most of those that can run it, own ones before shared ones.
    pub(crate) fn take(&mut self, tenant: &TenantId, demand: &Demand, may_push: bool) -> Option<WorkerId> {
        let id = self.find(tenant, demand, may_push)?;
        self.spend_credit(id);
        Some(id)
    }

    /// Who is pushed to is left out unless one more attempt may go through the queue.
    pub(crate) fn find(&self, tenant: &TenantId, demand: &Demand, may_push: bool) -> Option<WorkerId> {
        let fits = |worker: &Worker| worker.can_run(demand) && (may_push || !worker.pushed);
        self.open_to(tenant)
            .flat_map(|scope| self.free.get(&scope).into_iter().flatten())
            .map(|(_, id)| *id)
            .find(|id| self.all.get(id).is_some_and(fits))
    }

    /// Connected workers that would serve this tenant.
    pub(crate) fn serving(&self, tenant: &TenantId) -> impl Iterator<Item = &Worker> {
        self.all.values().filter(move |worker| worker.serves(tenant))
    }

    /// Slots of all connected workers that serve this tenant.
    pub(crate) fn slots(&self, tenant: &TenantId) -> u32 {
        self.open_to(tenant).filter_map(|scope| self.slots.get(&scope)).sum()
    }

    fn open_to(&self, tenant: &TenantId) -> impl Iterator<Item = Option<TenantId>> + use<> {
        [Some(tenant.clone()), None].into_iter()
    }

    fn change(&mut self, id: WorkerId, change: impl FnOnce(&mut Worker)) {
        let Some(mut worker) = self.all.remove(&id) else { return };
        self.forget_free(&worker);
        change(&mut worker);
        self.note_free(&worker);
        self.all.insert(id, worker);
    }

    fn note_free(&mut self, worker: &Worker) {
        if worker.credits > 0 {
            self.free.entry(worker.tenant.clone()).or_default().insert((Reverse(worker.credits), worker.id));
        }
    }

    fn forget_free(&mut self, worker: &Worker) {
        if let Some(free) = self.free.get_mut(&worker.tenant) {
            free.remove(&(Reverse(worker.credits), worker.id));
        }
    }
}
