//! The effective limits of all tenants, and which of them changed since a watcher last read them.
//!
//! Changes are identified by the positions of the ledger's quota stream, one per shard. They are
//! the same for every instance, so a watcher can resume at any of them. Spent amounts are in no
//! event, so tenants with budgets are sent again at every resumption.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use prost::Message;
use servo_model::{Digest, Stream};
use servo_proto::v1::{Budget, TenantLimits, WatchLimitsResponse};

use super::limits::PLATFORM;

/// Well below the limit of a message, because a tenant is never split.
const MESSAGE_BYTES_AIM: usize = servo_model::limits::MESSAGE_BYTES_MAX / 4;

/// Returns the shard of the quota stream that holds all events of a tenant.
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

    /// Returns `None` for a malformed token and for positions that this ledger has not reached.
    fn parse_token(&self, token: &str) -> Option<Heads> {
        let positions: Vec<i64> = token
            .split('.')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        let is_reached =
            positions.len() == self.0.len() && positions.iter().zip(&self.0).all(|(p, h)| p <= h);
        is_reached.then_some(Heads(positions))
    }
}

#[derive(Debug, Default)]
pub(crate) struct LimitsSnapshot {
    heads: Heads,
    last_change: u64,
    /// Every tenant once, in the order of its last change.
    by_change: BTreeMap<u64, Arc<TenantLimits>>,
    last_changes: HashMap<String, LastChange>,
}

#[derive(Debug, Clone, Copy)]
struct LastChange {
    change: u64,
    /// No event after this position changed the tenant.
    position: i64,
}

impl LimitsSnapshot {
    pub(crate) fn heads(&self) -> &Heads {
        &self.heads
    }

    /// Updates the limits of some tenants, read after `heads`. Returns whether anything changed.
    pub(crate) fn update(&mut self, heads: Heads, tenants: Vec<TenantLimits>) -> bool {
        self.heads = heads;
        let before = self.last_change;
        for tenant in tenants {
            self.set(tenant);
        }
        self.last_change > before
    }

    fn set(&mut self, tenant: TenantLimits) {
        let position = self.heads.of(&tenant.tenant);
        let previous = self.last_changes.get(&tenant.tenant).copied();
        if let Some(last) = previous {
            if self
                .by_change
                .get(&last.change)
                .is_some_and(|sent| **sent == tenant)
            {
                return;
            }
            self.by_change.remove(&last.change);
        }
        self.last_change += 1;
        self.last_changes.insert(
            tenant.tenant.clone(),
            LastChange {
                change: self.last_change,
                position,
            },
        );
        self.by_change.insert(self.last_change, Arc::new(tenant));
    }

    /// Returns the tenants that have budgets.
    pub(crate) fn with_budgets(&self) -> Vec<String> {
        let budgeted = self
            .by_change
            .values()
            .filter(|tenant| !tenant.budgets.is_empty());
        budgeted.map(|tenant| tenant.tenant.clone()).collect()
    }

    /// Returns a budget as it was last sent.
    pub(crate) fn budget(&self, tenant: &str, budget_id: &str) -> Option<&Budget> {
        let sent = self.by_change.get(&self.last_changes.get(tenant)?.change)?;
        sent.budgets
            .iter()
            .find(|budget| budget.budget_id == budget_id)
    }

    /// Returns the first messages for a watcher, and the last change that they contain.
    pub(crate) fn initial_messages(&self, token: &str) -> (Vec<WatchLimitsResponse>, u64) {
        let tenants: Vec<&Arc<TenantLimits>> = match self.heads.parse_token(token) {
            Some(resumed_from) if self.position(PLATFORM) <= resumed_from.of(PLATFORM) => self
                .by_change
                .values()
                .filter(|tenant| self.changed_since(tenant, &resumed_from))
                .collect(),
            _ => self.by_change.values().collect(),
        };
        let previous_token = if tenants.len() == self.by_change.len() {
            ""
        } else {
            token
        };
        (self.messages(tenants, previous_token), self.last_change)
    }

    /// Returns the messages for changes after `change`, and the last change that they contain.
    pub(crate) fn messages_since(
        &self,
        change: u64,
        token: &str,
    ) -> (Vec<WatchLimitsResponse>, u64) {
        let tenants: Vec<_> = self
            .by_change
            .range(change + 1..)
            .map(|(_, tenant)| tenant)
            .collect();
        if tenants.is_empty() {
            (Vec::new(), change)
        } else {
            (self.messages(tenants, token), self.last_change)
        }
    }

    /// Returns a message without changes, which confirms the watcher's position.
    pub(crate) fn keepalive(&self) -> WatchLimitsResponse {
        WatchLimitsResponse {
            resume_token: self.heads.token(),
            tenants: Vec::new(),
            caught_up: true,
        }
    }

    fn changed_since(&self, tenant: &TenantLimits, resumed_from: &Heads) -> bool {
        !tenant.budgets.is_empty()
            || self.position(&tenant.tenant) > resumed_from.of(&tenant.tenant)
    }

    fn position(&self, tenant: &str) -> i64 {
        self.last_changes
            .get(tenant)
            .map_or(0, |last| last.position)
    }

    /// Splits tenants into messages. All but the last carry `previous_token`, so that a
    /// watcher that loses the stream in between resumes where it was before.
    fn messages(
        &self,
        tenants: Vec<&Arc<TenantLimits>>,
        previous_token: &str,
    ) -> Vec<WatchLimitsResponse> {
        let new_message = || WatchLimitsResponse {
            resume_token: previous_token.to_owned(),
            ..Default::default()
        };
        let mut messages = vec![new_message()];
        let mut bytes = 0;
        for tenant in tenants {
            bytes += tenant.encoded_len();
            if bytes > MESSAGE_BYTES_AIM
                && messages.last().is_some_and(|last| !last.tenants.is_empty())
            {
                messages.push(new_message());
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
