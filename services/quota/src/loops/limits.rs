//! Keeps the picture of all limits that watchers are told from.
//!
//! One look a second at the heads of the quota stream finds what other instances changed; a change made here rings.
//! However many watch, the database is asked once.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use servo_model::Stream;
use servo_proto::v1::{Budget, QuotaLimits, TenantLimits};
use servo_store::{LoopStore, Store, StoreError};
use tokio::sync::watch;
use tracing::warn;

use crate::core::limits::{effective, over};
use crate::core::picture::{Heads, PLATFORM, Picture};
use crate::metrics::Metrics;
use crate::store::budgets::BudgetRow;
use crate::store::{all, budgets};
use crate::wire;

pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How old what is told about money may be.
const SPENT_EVERY: Duration = Duration::from_secs(5);
/// How long the first picture waits for sums; what is missing then is told a moment later.
const FIRST_SUMS_WITHIN: Duration = Duration::from_secs(2);

/// What watchers look at; `None` until the first look at the database.
pub(crate) type Board = watch::Sender<Option<Picture>>;

#[derive(Debug)]
pub(crate) struct LimitsLoop {
    store: LoopStore,
    defaults: QuotaLimits,
    board: Board,
    metrics: Metrics,
    /// `None` until all was summed once.
    spent_at: Mutex<Option<Instant>>,
}

/// Whom to read again.
enum Whom {
    Nobody,
    Some(Vec<String>),
    All,
}

impl LimitsLoop {
    pub(crate) fn new(
        store: &Store,
        defaults: QuotaLimits,
        board: Board,
        metrics: Metrics,
    ) -> LimitsLoop {
        LimitsLoop {
            store: store.loops().clone(),
            defaults,
            board,
            metrics,
            spent_at: Mutex::default(),
        }
    }

    pub(crate) async fn run_once(&self) -> Result<(), StoreError> {
        // Before the rows, so that what is told is at least as new as the place it is told for.
        let heads = Heads(all::heads(&self.store, Stream::Quota).await?);
        let tenants = match self.whom(&heads).await? {
            Whom::Nobody => return Ok(()),
            Whom::Some(tenants) => self.read(Some(&tenants)).await?,
            Whom::All => self.read(None).await?,
        };
        self.board.send_if_modified(|picture| {
            let first = picture.is_none();
            picture.get_or_insert_default().take(heads, tenants) || first
        });
        Ok(())
    }

    async fn whom(&self, heads: &Heads) -> Result<Whom, StoreError> {
        let known = self
            .board
            .borrow()
            .as_ref()
            .map(|picture| picture.heads().clone());
        let Some(known) = known.filter(|known| known.0.len() == heads.0.len()) else {
            return Ok(Whom::All);
        };
        let mut tenants = self.whose_money_is_due();
        if known != *heads {
            tenants.extend(all::touched(&self.store, &known.0, &heads.0).await?);
        }
        Ok(match tenants {
            // Its settings are everybody's defaults.
            tenants if tenants.iter().any(|tenant| tenant == PLATFORM) => Whom::All,
            tenants if tenants.is_empty() => Whom::Nobody,
            tenants => Whom::Some(tenants),
        })
    }

    fn whose_money_is_due(&self) -> Vec<String> {
        let mut spent_at = self
            .spent_at
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if spent_at.is_some_and(|at| at.elapsed() < SPENT_EVERY) {
            return Vec::new();
        }
        *spent_at = Some(Instant::now());
        self.board
            .borrow()
            .as_ref()
            .map(Picture::with_budgets)
            .unwrap_or_default()
    }

    async fn read(&self, tenants: Option<&[String]>) -> Result<Vec<TenantLimits>, StoreError> {
        let platform = [PLATFORM.to_owned()];
        let platform = all::limits(&self.store, Some(&platform)).await?;
        let platform = over(
            &platform.get(PLATFORM).copied().unwrap_or_default(),
            &self.defaults,
        );
        let mut set = all::limits(&self.store, tenants).await?;
        if tenants.is_none() {
            // Told even when nobody ever changed a default.
            set.entry(PLATFORM.to_owned()).or_default();
        }
        let mut pools = all::pools(&self.store, tenants).await?;
        let mut budgets = self.budgets(tenants).await?;
        let tell = |(tenant, set): (String, QuotaLimits)| TenantLimits {
            limits: Some(effective(&set, &platform)),
            pools: pools.remove(&tenant).unwrap_or_default(),
            budgets: budgets.remove(&tenant).unwrap_or_default(),
            suspended: false,
            tenant,
        };
        Ok(set.into_iter().map(tell).collect())
    }

    async fn budgets(
        &self,
        tenants: Option<&[String]>,
    ) -> Result<BTreeMap<String, Vec<Budget>>, StoreError> {
        let mut told: BTreeMap<String, Vec<Budget>> = BTreeMap::new();
        let until = self.sums_end();
        for (tenant, rows) in budgets::all(&self.store, tenants).await? {
            for row in rows {
                let budget = self.summed(&tenant, row, until).await;
                told.entry(tenant.clone()).or_default().push(budget);
            }
        }
        Ok(told)
    }

    /// Nothing is admitted before the first picture, so it does not wait for sums that last.
    fn sums_end(&self) -> Option<tokio::time::Instant> {
        self.board
            .borrow()
            .is_none()
            .then(|| tokio::time::Instant::now() + FIRST_SUMS_WITHIN)
    }

    /// The budget with what is spent of it, or with what was last known to be: one that cannot be summed holds up no limit.
    async fn summed(
        &self,
        tenant: &str,
        row: BudgetRow,
        until: Option<tokio::time::Instant>,
    ) -> Budget {
        let (begin, end) = wire::period(&row, Timestamp::now());
        let budget = Budget {
            period_end_time: end,
            ..row.budget
        };
        let sum = budgets::spent_of(&self.store, tenant, &budget, begin);
        let summed = match until {
            Some(until) => tokio::time::timeout_at(until, sum)
                .await
                .map_err(|late| late.to_string()),
            None => Ok(sum.await),
        };
        let spent = match summed.and_then(|sum| sum.map_err(|error| error.to_string())) {
            Ok(spent) => spent,
            Err(error) => {
                let budget_id = &budget.budget_id;
                warn!(
                    tenant,
                    budget_id, error, "a budget cannot be summed; it keeps what was last known"
                );
                self.metrics.unsummed.inc();
                self.last_known(tenant, &budget)
            }
        };
        Budget {
            spent_micros: spent,
            ..budget
        }
    }

    /// Of the same period; in a new one nothing is spent as far as is known.
    fn last_known(&self, tenant: &str, budget: &Budget) -> u64 {
        let board = self.board.borrow();
        let told = board
            .as_ref()
            .and_then(|picture| picture.budget(tenant, &budget.budget_id));
        let same = told.filter(|told| told.period_end_time == budget.period_end_time);
        same.map_or(0, |told| told.spent_micros)
    }
}
