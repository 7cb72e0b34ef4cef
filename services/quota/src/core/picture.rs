//! What holds for every tenant, and what changed since a watcher last looked.
//!
//! Places in time are positions of the ledger's quota stream, one per shard. They are the same for every instance, so
//! a watcher may resume anywhere. What is spent of a budget is in no event: tenants with budgets are told again at
//! every resumption.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use prost::Message;
use servo_model::{Digest, Stream};
use servo_proto::v1::{Budget, TenantLimits, WatchLimitsResponse};

/// The tenant that stands for the platform: its settings are everybody's defaults.
pub(crate) const PLATFORM: &str = "-";
/// Well below what one message may have; a tenant is never cut.
const MESSAGE_BYTES_AIM: usize = servo_model::limits::MESSAGE_BYTES_MAX / 4;

/// The shard of the quota stream in which all events of a tenant stand in one order.
pub(crate) fn shard(tenant: &str) -> i16 {
    i16::from(Digest::of(tenant).as_bytes()[0]) % Stream::Quota.shards()
}

/// The last position of every shard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Heads(pub(crate) Vec<i64>);

impl Heads {
    fn of(&self, tenant: &str) -> i64 {
        let shard = usize::try_from(shard(tenant)).unwrap_or(usize::MAX);
        self.0.get(shard).copied().unwrap_or(0)
    }

    pub(crate) fn token(&self) -> String {
        let positions: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        positions.join(".")
    }

    /// `None` for what is no place in this ledger, or one that it has not reached.
    fn reached(&self, token: &str) -> Option<Heads> {
        let positions: Vec<i64> = token
            .split('.')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        let behind =
            positions.len() == self.0.len() && positions.iter().zip(&self.0).all(|(p, h)| p <= h);
        behind.then_some(Heads(positions))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Picture {
    heads: Heads,
    last_change: u64,
    /// Every tenant once, in the order of the last change.
    by_change: BTreeMap<u64, Arc<TenantLimits>>,
    places: HashMap<String, Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    change: u64,
    /// No event after this one changed the tenant.
    position: i64,
}

impl Picture {
    pub(crate) fn heads(&self) -> &Heads {
        &self.heads
    }

    /// Takes in what holds for some tenants, read after `heads` were. Answers whether anything differs.
    pub(crate) fn take(&mut self, heads: Heads, tenants: Vec<TenantLimits>) -> bool {
        self.heads = heads;
        let before = self.last_change;
        for tenant in tenants {
            self.put(tenant);
        }
        self.last_change > before
    }

    fn put(&mut self, tenant: TenantLimits) {
        let position = self.heads.of(&tenant.tenant);
        let known = self.places.get(&tenant.tenant).copied();
        if let Some(place) = known {
            if self
                .by_change
                .get(&place.change)
                .is_some_and(|told| **told == tenant)
            {
                return;
            }
            self.by_change.remove(&place.change);
        }
        self.last_change += 1;
        self.places.insert(
            tenant.tenant.clone(),
            Place {
                change: self.last_change,
                position,
            },
        );
        self.by_change.insert(self.last_change, Arc::new(tenant));
    }

    /// Tenants of which money is counted.
    pub(crate) fn with_budgets(&self) -> Vec<String> {
        let budgeted = self
            .by_change
            .values()
            .filter(|tenant| !tenant.budgets.is_empty());
        budgeted.map(|tenant| tenant.tenant.clone()).collect()
    }

    /// A budget as it is told.
    pub(crate) fn budget(&self, tenant: &str, budget_id: &str) -> Option<&Budget> {
        let told = self.by_change.get(&self.places.get(tenant)?.change)?;
        told.budgets
            .iter()
            .find(|budget| budget.budget_id == budget_id)
    }

    /// What a watcher hears first, and the change it has then heard.
    pub(crate) fn first(&self, token: &str) -> (Vec<WatchLimitsResponse>, u64) {
        let tenants: Vec<&Arc<TenantLimits>> = match self.heads.reached(token) {
            Some(then) if self.position(PLATFORM) <= then.of(PLATFORM) => self
                .by_change
                .values()
                .filter(|tenant| self.is_news(tenant, &then))
                .collect(),
            _ => self.by_change.values().collect(),
        };
        let begun = if tenants.len() == self.by_change.len() {
            ""
        } else {
            token
        };
        (self.messages(tenants, begun), self.last_change)
    }

    /// What changed after the change that a watcher heard last.
    pub(crate) fn since(&self, change: u64, token: &str) -> (Vec<WatchLimitsResponse>, u64) {
        let tenants: Vec<_> = self
            .by_change
            .range(change + 1..)
            .map(|(_, tenant)| tenant)
            .collect();
        match tenants.is_empty() {
            true => (Vec::new(), change),
            false => (self.messages(tenants, token), self.last_change),
        }
    }

    /// Nothing but where the watcher is.
    pub(crate) fn reminder(&self) -> WatchLimitsResponse {
        WatchLimitsResponse {
            resume_token: self.heads.token(),
            tenants: Vec::new(),
            caught_up: true,
        }
    }

    fn is_news(&self, tenant: &TenantLimits, then: &Heads) -> bool {
        !tenant.budgets.is_empty() || self.position(&tenant.tenant) > then.of(&tenant.tenant)
    }

    fn position(&self, tenant: &str) -> i64 {
        self.places.get(tenant).map_or(0, |place| place.position)
    }

    /// In as many messages as it takes; whoever loses the stream between two of them begins again where `begun` was.
    fn messages(&self, tenants: Vec<&Arc<TenantLimits>>, begun: &str) -> Vec<WatchLimitsResponse> {
        let open = || WatchLimitsResponse {
            resume_token: begun.to_owned(),
            ..Default::default()
        };
        let mut messages = vec![open()];
        let mut bytes = 0;
        for tenant in tenants {
            bytes += tenant.encoded_len();
            if bytes > MESSAGE_BYTES_AIM
                && messages.last().is_some_and(|last| !last.tenants.is_empty())
            {
                messages.push(open());
                bytes = tenant.encoded_len();
            }
            if let Some(last) = messages.last_mut() {
                last.tenants.push(TenantLimits::clone(tenant));
            }
        }
        if let Some(last) = messages.last_mut() {
            last.resume_token = self.heads.token();
            last.caught_up = true;
        }
        messages
    }
}

#[cfg(test)]
mod tests;
