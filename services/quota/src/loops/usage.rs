//! Counts the usage of finished attempts from the ledger.
//!
//! Every instance may count: the cursors move in the transaction that adds the sums, so each
//! outcome is added once, and the slower of two instances adds nothing.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use prost::Message;
use servo_model::{RunId, Stream};
use servo_proto::v1::{Event, Plan, PriceList, TaskFinished, event};
use servo_store::{LoopStore, Store, StoreError};
use tracing::warn;
use uuid::Uuid;

use crate::core::limits::PLATFORM;
use crate::core::prices::free;
use crate::core::usage::{FinishedAttempt, sum_usage};
use crate::store::ledger;
use crate::store::usage::{self, FinishedRow, PlanRef, Span};

/// Limit for all shards together in one pass.
const POSITIONS_PER_PASS_MAX: i64 = 10_000;
const PLANS_MAX: usize = 64;

/// Asset and pool of every task of a plan.
type Tasks = Arc<Vec<(Arc<str>, Arc<str>)>>;

#[derive(Debug)]
pub(crate) struct UsageLoop {
    store: LoopStore,
    plans: Mutex<HashMap<Vec<u8>, Tasks>>,
}

/// A decoded outcome.
struct Outcome {
    tenant: String,
    workspace: String,
    recorded_us: i64,
    run: Option<Uuid>,
    finished: TaskFinished,
}

impl UsageLoop {
    pub(crate) fn new(store: &Store) -> UsageLoop {
        UsageLoop {
            store: store.loops().clone(),
            plans: Mutex::default(),
        }
    }

    /// Returns the number of positions that were counted.
    pub(crate) async fn run_once(&self) -> Result<u64, StoreError> {
        let heads = ledger::heads(&self.store, Stream::Execution).await?;
        let spans = spans(&heads, &usage::read_cursors(&self.store).await?);
        if spans.is_empty() {
            return Ok(0);
        }
        let finished = usage::finished_attempts(&self.store, &spans).await?;
        let outcomes: Vec<Outcome> = finished.into_iter().filter_map(outcome).collect();
        let prices = self.prices(&outcomes).await?;
        let attempts = self.with_plans(outcomes).await?;
        let free_prices = free();
        let platform = prices.get(PLATFORM).unwrap_or(&free_prices);
        let sums = sum_usage(attempts, |tenant| prices.get(tenant).unwrap_or(platform));
        let mut tx = self.store.begin().await?;
        if !usage::move_cursors(&mut tx, &spans).await? {
            // Another instance has already counted these positions.
            return Ok(0);
        }
        if !sums.is_empty() {
            usage::add(&mut tx, &sums).await?;
        }
        tx.commit().await?;
        Ok(spans
            .iter()
            .map(|span| (span.until - span.after).unsigned_abs())
            .sum())
    }

    async fn prices(&self, outcomes: &[Outcome]) -> Result<HashMap<String, PriceList>, StoreError> {
        let mut tenants: HashSet<String> = outcomes
            .iter()
            .map(|outcome| outcome.tenant.clone())
            .collect();
        tenants.insert(PLATFORM.to_owned());
        usage::load_prices(&self.store, &tenants.into_iter().collect::<Vec<_>>()).await
    }

    /// Adds asset and pool to the outcomes, which name tasks only by ordinal.
    async fn with_plans(&self, outcomes: Vec<Outcome>) -> Result<Vec<FinishedAttempt>, StoreError> {
        let runs: HashSet<Uuid> = outcomes.iter().filter_map(|outcome| outcome.run).collect();
        let runs: Vec<Uuid> = runs.into_iter().collect();
        let plan_refs = usage::plans_of_runs(&self.store, &runs).await?;
        let plans = self.plans(plan_refs.values()).await?;
        let with_plan = |outcome: Outcome| {
            let plan_ref = outcome.run.and_then(|run| plan_refs.get(&run));
            let tasks = plan_ref.and_then(|plan| plans.get(&plan.plan_id));
            let ordinal = outcome
                .finished
                .task
                .as_ref()
                .map_or(usize::MAX, |task| task.ordinal as usize);
            let (asset, pool) = tasks
                .and_then(|tasks| tasks.get(ordinal))
                .map(|(asset, pool)| (asset.to_string(), pool.to_string()))
                .unwrap_or_default();
            let Outcome {
                tenant,
                workspace,
                recorded_us,
                finished,
                ..
            } = outcome;
            FinishedAttempt {
                tenant,
                workspace,
                recorded_us,
                asset,
                pool,
                outcome: finished,
            }
        };
        Ok(outcomes.into_iter().map(with_plan).collect())
    }

    async fn plans(
        &self,
        refs: impl Iterator<Item = &PlanRef>,
    ) -> Result<HashMap<Vec<u8>, Tasks>, StoreError> {
        let mut cached = std::mem::take(&mut *self.plan_cache());
        let refs: HashSet<&PlanRef> = refs.collect();
        cached
            .retain(|id, _| refs.iter().any(|plan| plan.plan_id == *id) || refs.len() < PLANS_MAX);
        let absent = refs
            .into_iter()
            .filter(|plan| !cached.contains_key(&plan.plan_id));
        let absent: Vec<PlanRef> = absent.cloned().collect();
        for batch in absent.chunks(PLANS_MAX) {
            for (id, plan) in usage::find_plans(&self.store, batch).await? {
                cached.insert(id, Arc::new(tasks(&plan)));
            }
        }
        if cached.len() <= PLANS_MAX {
            self.plan_cache().clone_from(&cached);
        }
        Ok(cached)
    }

    fn plan_cache(&self) -> std::sync::MutexGuard<'_, HashMap<Vec<u8>, Tasks>> {
        self.plans
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Returns the positions to count in one pass: an equal part of each shard that is behind.
fn spans(heads: &[i64], cursors: &HashMap<i16, i64>) -> Vec<Span> {
    let behind = |(shard, head): (i16, &i64)| {
        let after = cursors.get(&shard).copied().unwrap_or(0);
        (*head > after).then_some(Span {
            shard,
            after,
            until: *head,
        })
    };
    let mut spans: Vec<Span> = (0_i16..).zip(heads).filter_map(behind).collect();
    let part = POSITIONS_PER_PASS_MAX / i64::try_from(spans.len().max(1)).unwrap_or(i64::MAX);
    for span in &mut spans {
        span.until = span.until.min(span.after.saturating_add(part.max(1)));
    }
    spans
}

fn tasks(plan: &Plan) -> Vec<(Arc<str>, Arc<str>)> {
    let assets: Vec<(Arc<str>, Arc<str>)> = plan
        .assets
        .iter()
        .map(|asset| (asset.asset_key.as_str().into(), asset.pool.as_str().into()))
        .collect();
    let of = |asset: u32| {
        assets
            .get(asset as usize)
            .cloned()
            .unwrap_or_else(|| ("".into(), "".into()))
    };
    plan.tasks.iter().map(|task| of(task.asset)).collect()
}

/// Skips an outcome that cannot be decoded, because it must not stop the counting of all others.
fn outcome((tenant, workspace, recorded_at, payload): FinishedRow) -> Option<Outcome> {
    let body = Event::decode(payload.as_slice())
        .ok()
        .and_then(|event| event.body);
    let Some(event::Body::TaskFinished(finished)) = body else {
        warn!(
            tenant,
            workspace, "an outcome cannot be decoded and is not counted"
        );
        return None;
    };
    let run: Option<RunId> = finished.run_id.parse().ok();
    let run = run.map(|run| Uuid::from_bytes(*run.as_bytes()));
    Some(Outcome {
        tenant,
        workspace,
        recorded_us: recorded_at.unix_us(),
        run,
        finished,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_counts_a_limited_number_of_positions() {
        let span = |shard, after, until| Span {
            shard,
            after,
            until,
        };
        assert_eq!(spans(&[5, 0, 7], &[(0, 5), (2, 3)].into()), [span(2, 3, 7)]);
        let max = POSITIONS_PER_PASS_MAX;
        assert_eq!(
            spans(&[6, max], &[(0, 2)].into()),
            [span(0, 2, 6), span(1, 0, max / 2)]
        );
        assert_eq!(spans(&[5], &[(0, 9)].into()), []);
    }
}
