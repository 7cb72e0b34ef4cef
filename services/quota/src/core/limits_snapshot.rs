//! The effective limits of all tenants, and which of them changed since a watcher last read them.
//!
//! Changes are identified by the positions of the ledger's quota stream, one per shard. They are
//! the same for every instance, so a watcher can resume at any of them. Spent amounts are in no
//! event, so tenants with budgets are sent again at every resumption.

use std::collections::{BTreeMap, HashMap};

use prost::Message;
use servo_model::{Digest, Position, ShardId, Stream, TenantScope};
use servo_proto::mesh::v1::{TenantLimits, WatchLimitsResponse};
use servo_proto::v1::Budget;

/// Well below the limit of a message, because a tenant is never split.
const MESSAGE_BYTES_AIM: usize = servo_model::limits::MESSAGE_BYTES_MAX / 4;

/// Returns the shard of the quota stream that holds all events of a tenant.
pub(crate) fn shard(tenant: &TenantScope) -> ShardId {
    Stream::Quota.shard_of(&Digest::of(tenant.as_str()))
}

/// The last position of every shard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Heads(pub(crate) Vec<Position>);

impl Heads {
    fn of(&self, tenant: &TenantScope) -> Position {
        let head = self.0.get(shard(tenant).index());
        head.copied().unwrap_or(Position::START)
    }

    pub(crate) fn token(&self) -> String {
        let positions: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        positions.join(".")
    }

    /// Returns `None` for a malformed token and for positions that this ledger has not reached.
    fn parse_token(&self, token: &str) -> Option<Heads> {
        let position = |text: &str| Position::new(text.parse().ok()?);
        let positions: Vec<Position> = token.split('.').map(position).collect::<Option<_>>()?;
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
    by_change: BTreeMap<u64, Entry>,
    last_changes: HashMap<TenantScope, LastChange>,
}

/// The limits of a tenant, as they are sent.
#[derive(Debug)]
struct Entry {
    tenant: TenantScope,
    limits: TenantLimits,
}

#[derive(Debug, Clone, Copy)]
struct LastChange {
    change: u64,
    /// No event after this position changed the tenant.
    position: Position,
}

impl LimitsSnapshot {
    pub(crate) fn heads(&self) -> &Heads {
        &self.heads
    }

    /// Updates the limits of some tenants, read after `heads`. Returns whether anything changed.
    pub(crate) fn update(
        &mut self,
        heads: Heads,
        tenants: Vec<(TenantScope, TenantLimits)>,
    ) -> bool {
        self.heads = heads;
        let before = self.last_change;
        for (tenant, limits) in tenants {
            self.set(tenant, limits);
        }
        self.last_change > before
    }

    fn set(&mut self, tenant: TenantScope, limits: TenantLimits) {
        let position = self.heads.of(&tenant);
        let previous = self.last_changes.get(&tenant).copied();
        if let Some(last) = previous {
            if self
                .by_change
                .get(&last.change)
                .is_some_and(|sent| sent.limits == limits)
            {
                return;
            }
            self.by_change.remove(&last.change);
        }
        self.last_change += 1;
        self.last_changes.insert(
            tenant.clone(),
            LastChange {
                change: self.last_change,
                position,
            },
        );
        self.by_change
            .insert(self.last_change, Entry { tenant, limits });
    }

    /// Returns the tenants that have budgets.
    pub(crate) fn with_budgets(&self) -> Vec<TenantScope> {
        let budgeted = self
            .by_change
            .values()
            .filter(|entry| !entry.limits.budgets.is_empty());
        budgeted.map(|entry| entry.tenant.clone()).collect()
    }

    /// Returns a budget as it was last sent.
    pub(crate) fn budget(&self, tenant: &TenantScope, budget_id: &str) -> Option<&Budget> {
        let sent = self.by_change.get(&self.last_changes.get(tenant)?.change)?;
        sent.limits
            .budgets
            .iter()
            .find(|budget| budget.budget_id == budget_id)
    }

    /// Returns the first messages for a watcher, and the last change that they contain.
    pub(crate) fn initial_messages(&self, token: &str) -> (Vec<WatchLimitsResponse>, u64) {
        // Every tenant's limits depend on the platform's.
        let platform = TenantScope::All;
        let entries: Vec<&Entry> = match self.heads.parse_token(token) {
            Some(resumed_from) if self.position(&platform) <= resumed_from.of(&platform) => self
                .by_change
                .values()
                .filter(|entry| self.changed_since(entry, &resumed_from))
                .collect(),
            _ => self.by_change.values().collect(),
        };
        let previous_token = if entries.len() == self.by_change.len() {
            ""
        } else {
            token
        };
        (self.messages(entries, previous_token), self.last_change)
    }

    /// Returns the messages for changes after `change`, and the last change that they contain.
    pub(crate) fn messages_since(
        &self,
        change: u64,
        token: &str,
    ) -> (Vec<WatchLimitsResponse>, u64) {
        let entries: Vec<_> = self
            .by_change
            .range(change + 1..)
            .map(|(_, entry)| entry)
            .collect();
        if entries.is_empty() {
            (Vec::new(), change)
        } else {
            (self.messages(entries, token), self.last_change)
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

    fn changed_since(&self, entry: &Entry, resumed_from: &Heads) -> bool {
        !entry.limits.budgets.is_empty()
            || self.position(&entry.tenant) > resumed_from.of(&entry.tenant)
    }

    fn position(&self, tenant: &TenantScope) -> Position {
        self.last_changes
            .get(tenant)
            .map_or(Position::START, |last| last.position)
    }

    /// Splits tenants into messages. All but the last carry `previous_token`, so that a
    /// watcher that loses the stream in between resumes where it was before.
    fn messages(&self, entries: Vec<&Entry>, previous_token: &str) -> Vec<WatchLimitsResponse> {
        let new_message = || WatchLimitsResponse {
            resume_token: previous_token.to_owned(),
            ..Default::default()
        };
        let mut messages = vec![new_message()];
        let mut bytes = 0;
        for Entry { limits, .. } in entries {
            bytes += limits.encoded_len();
            if bytes > MESSAGE_BYTES_AIM
                && messages.last().is_some_and(|last| !last.tenants.is_empty())
            {
                messages.push(new_message());
                bytes = limits.encoded_len();
            }
            if let Some(last) = messages.last_mut() {
                last.tenants.push(limits.clone());
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
