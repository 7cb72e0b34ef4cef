//! Keeps the snapshot of all limits that watchers read.
//!
//! Polls the heads of the quota stream every second to find changes of other instances; a change of
//! this instance rings its doorbell. The database is read once, however many watchers there are.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use servo_mesh::now;
use servo_model::{Stream, TenantId, TenantScope};
use servo_proto::mesh::v1::TenantLimits;
use servo_proto::proto_time;
use servo_proto::v1::{Budget, QuotaLimits};
use servo_store::{LoopStore, Store, StoreError};
use tokio::sync::watch;
use tracing::warn;

use crate::core::budgets::period;
use crate::core::limits::{effective, overlay};
use crate::core::limits_snapshot::{Heads, LimitsSnapshot};
use crate::metrics::Metrics;
use crate::store::budgets::BudgetRow;
use crate::store::{budgets, ledger, pools, quotas};

pub(crate) const POLL_EVERY: Duration = Duration::from_secs(1);
/// How often spent amounts are read again.
const SUMS_EVERY: Duration = Duration::from_secs(5);
/// How long the first snapshot waits for spent amounts; missing ones follow shortly after.
const FIRST_SUMS_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends the current snapshot to watchers; `None` until the database was read for the first time.
pub(crate) type SnapshotSender = watch::Sender<Option<LimitsSnapshot>>;

#[derive(Debug)]
pub(crate) struct LimitsLoop {
    store: LoopStore,
    defaults: QuotaLimits,
    snapshots: SnapshotSender,
    metrics: Metrics,
    /// `None` until spent amounts were read for the first time.
    summed_at: Mutex<Option<Instant>>,
}

/// The tenants to read again.
enum Refresh {
    Nothing,
    Tenants(Vec<TenantScope>),
    All,
}

impl LimitsLoop {
    pub(crate) fn new(
        store: &Store,
        defaults: QuotaLimits,
        snapshots: SnapshotSender,
        metrics: Metrics,
    ) -> LimitsLoop {
        LimitsLoop {
            store: store.loops().clone(),
            defaults,
            snapshots,
            metrics,
            summed_at: Mutex::default(),
        }
    }

    pub(crate) async fn run_once(&self) -> Result<(), StoreError> {
        // Read before the rows, so that the snapshot is at least as new as its positions.
        let heads = Heads(ledger::heads(&self.store, Stream::Quota).await?);
        let tenants = match self.tenants_to_refresh(&heads).await? {
            Refresh::Nothing => return Ok(()),
            Refresh::Tenants(tenants) => self.load(Some(&tenants)).await?,
            Refresh::All => self.load(None).await?,
        };
        self.snapshots.send_if_modified(|snapshot| {
            let first = snapshot.is_none();
            snapshot.get_or_insert_default().update(heads, tenants) || first
        });
        Ok(())
    }

    async fn tenants_to_refresh(&self, heads: &Heads) -> Result<Refresh, StoreError> {
        let known = self
            .snapshots
            .borrow()
            .as_ref()
            .map(|snapshot| snapshot.heads().clone());
        let Some(known) = known.filter(|known| known.0.len() == heads.0.len()) else {
            return Ok(Refresh::All);
        };
        let mut tenants = self.tenants_with_due_sums();
        if known != *heads {
            tenants.extend(ledger::changed_tenants(&self.store, &known.0, &heads.0).await?);
        }
        Ok(match tenants {
            // The platform's settings are the defaults of all tenants.
            tenants if tenants.contains(&TenantScope::All) => Refresh::All,
            tenants if tenants.is_empty() => Refresh::Nothing,
            tenants => Refresh::Tenants(tenants),
        })
    }

    fn tenants_with_due_sums(&self) -> Vec<TenantScope> {
        let mut summed_at = self
            .summed_at
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if summed_at.is_some_and(|at| at.elapsed() < SUMS_EVERY) {
            return Vec::new();
        }
        *summed_at = Some(Instant::now());
        self.snapshots
            .borrow()
            .as_ref()
            .map(LimitsSnapshot::with_budgets)
            .unwrap_or_default()
    }

    async fn load(
        &self,
        tenants: Option<&[TenantScope]>,
    ) -> Result<Vec<(TenantScope, TenantLimits)>, StoreError> {
        let platform = quotas::load_limits(&self.store, Some(&[TenantScope::All])).await?;
        let platform = overlay(
            &platform.get(&TenantScope::All).copied().unwrap_or_default(),
            &self.defaults,
        );
        let mut set = quotas::load_limits(&self.store, tenants).await?;
        if tenants.is_none() {
            // The platform is always part of the snapshot, even if its defaults never changed.
            set.entry(TenantScope::All).or_default();
        }
        let mut tenant_pools = pools::load_all(&self.store, tenants).await?;
        let mut budgets = self.budgets(tenants).await?;
        let to_message = |(scope, set): (TenantScope, QuotaLimits)| {
            let tenant = scope.tenant();
            let pools = tenant.and_then(|tenant| tenant_pools.remove(tenant));
            let budgets = tenant.and_then(|tenant| budgets.remove(tenant));
            let limits = TenantLimits {
                limits: Some(effective(&set, &platform)),
                pools: pools.unwrap_or_default(),
                budgets: budgets.unwrap_or_default(),
                suspended: false,
                tenant: scope.to_string(),
            };
            (scope, limits)
        };
        Ok(set.into_iter().map(to_message).collect())
    }

    async fn budgets(
        &self,
        tenants: Option<&[TenantScope]>,
    ) -> Result<BTreeMap<TenantId, Vec<Budget>>, StoreError> {
        let mut by_tenant: BTreeMap<TenantId, Vec<Budget>> = BTreeMap::new();
        let deadline = self.sums_deadline();
        for (tenant, rows) in budgets::load_all(&self.store, tenants).await? {
            for row in rows {
                let budget = self.with_spent(&tenant, row, deadline).await;
                by_tenant.entry(tenant.clone()).or_default().push(budget);
            }
        }
        Ok(by_tenant)
    }

    /// Limits the wait for the first snapshot, because nothing is admitted before it.
    fn sums_deadline(&self) -> Option<tokio::time::Instant> {
        self.snapshots
            .borrow()
            .is_none()
            .then(|| tokio::time::Instant::now() + FIRST_SUMS_TIMEOUT)
    }

    /// Returns the budget with its spent amount, or with the last known one, so that a failing sum
    /// delays no limit.
    async fn with_spent(
        &self,
        tenant: &TenantId,
        row: BudgetRow,
        deadline: Option<tokio::time::Instant>,
    ) -> Budget {
        let (begin, end) = period(&row.budget, row.counts_from, now());
        let budget = Budget {
            period_end_time: end.map(proto_time),
            ..row.budget
        };
        let sum = budgets::spent_for_loop(&self.store, tenant, &budget, begin);
        let summed = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, sum)
                .await
                .map_err(|late| late.to_string()),
            None => Ok(sum.await),
        };
        let spent = match summed.and_then(|sum| sum.map_err(|error| error.to_string())) {
            Ok(spent) => spent,
            Err(error) => {
                let budget_id = &budget.budget_id;
                warn!(
                    %tenant,
                    budget_id, error, "failed to sum a budget; using the last known sum"
                );
                self.metrics.unsummed.inc();
                self.last_known_spent(tenant, &budget)
            }
        };
        Budget {
            spent_micros: spent,
            ..budget
        }
    }

    /// Returns the last known amount of the same period; 0 in a new period.
    fn last_known_spent(&self, tenant: &TenantId, budget: &Budget) -> u64 {
        let current = self.snapshots.borrow();
        let sent = current
            .as_ref()
            .and_then(|snapshot| snapshot.budget(&tenant.into(), &budget.budget_id));
        let same = sent.filter(|sent| sent.period_end_time == budget.period_end_time);
        same.map_or(0, |sent| sent.spent_micros)
    }
}
