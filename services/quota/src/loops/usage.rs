//! Counts the usage of finished attempts from the ledger.
//!
//! Every instance may count: the cursors move in the transaction that adds the sums, so each
//! outcome is added once, and the slower of two instances adds nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use prost::Message;
use servo_model::{Position, RunId, ShardId, Stream, TenantId, TenantScope, Timestamp};
use servo_proto::v1::{Event, Plan, PriceList, TaskFinished, event};
use servo_service::Cache;
use servo_store::{LoopStore, Store, StoreError};
use tracing::warn;
use uuid::Uuid;

use crate::core::prices::free;
use crate::core::usage::{FinishedAttempt, sum_usage};
use crate::store::ledger;
use crate::store::usage::{self, FinishedRow, PlanRef, Span};

/// Limit for all shards together in one pass.
const POSITIONS_PER_PASS_MAX: u32 = 10_000;
/// How many plans are cached, and how many one statement reads.
const PLANS_MAX: usize = 64;

/// Asset and pool of every task of a plan.
type Tasks = Arc<Vec<(Arc<str>, Arc<str>)>>;

#[derive(Debug)]
pub(crate) struct UsageLoop {
    store: LoopStore,
    plans: Cache<Vec<u8>, Tasks>,
}

/// A decoded outcome.
struct Outcome {
    tenant: TenantId,
    workspace: String,
    recorded_at: Timestamp,
    run: Option<Uuid>,
    finished: TaskFinished,
}

impl UsageLoop {
    pub(crate) fn new(store: &Store) -> UsageLoop {
        UsageLoop {
            store: store.loops().clone(),
            plans: Cache::new(PLANS_MAX),
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
        let platform = prices.get(&TenantScope::All).unwrap_or(&free_prices);
        let sums = sum_usage(attempts, |tenant| {
            prices.get(&tenant.into()).unwrap_or(platform)
        });
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
            .map(|span| span.until.events_since(span.after))
            .sum())
    }

    async fn prices(
        &self,
        outcomes: &[Outcome],
    ) -> Result<HashMap<TenantScope, PriceList>, StoreError> {
        let mut tenants: HashSet<TenantScope> = outcomes
            .iter()
            .map(|outcome| TenantScope::from(&outcome.tenant))
            .collect();
        tenants.insert(TenantScope::All);
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
                recorded_at,
                finished,
                ..
            } = outcome;
            FinishedAttempt {
                tenant,
                workspace,
                recorded_at,
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
        let refs: HashSet<&PlanRef> = refs.collect();
        let mut plans = HashMap::new();
        let mut absent: Vec<PlanRef> = Vec::new();
        for plan in refs {
            match self.plans.get(&plan.plan_id) {
                Some(tasks) => drop(plans.insert(plan.plan_id.clone(), tasks)),
                None => absent.push(plan.clone()),
            }
        }
        for batch in absent.chunks(PLANS_MAX) {
            for (id, plan) in usage::find_plans(&self.store, batch).await? {
                let tasks: Tasks = Arc::new(tasks(&plan));
                self.plans.insert(id.clone(), tasks.clone(), 1);
                plans.insert(id, tasks);
            }
        }
        Ok(plans)
    }
}

/// Returns the positions to count in one pass: an equal part of each shard that is behind.
fn spans(heads: &[Position], cursors: &HashMap<ShardId, Position>) -> Vec<Span> {
    let behind = |(shard, head): (ShardId, &Position)| {
        let after = cursors.get(&shard).copied().unwrap_or(Position::START);
        (*head > after).then_some(Span {
            shard,
            after,
            until: *head,
        })
    };
    let shards = Stream::Execution.shards();
    let mut spans: Vec<Span> = shards.zip(heads).filter_map(behind).collect();
    let part = POSITIONS_PER_PASS_MAX / u32::try_from(spans.len().max(1)).unwrap_or(u32::MAX);
    for span in &mut spans {
        span.until = span.until.min(span.after.plus(part.max(1)));
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
            %tenant,
            workspace, "an outcome cannot be decoded and is not counted"
        );
        return None;
    };
    let run: Option<RunId> = finished.run_id.parse().ok();
    let run = run.map(|run| Uuid::from_bytes(*run.as_bytes()));
    Some(Outcome {
        tenant,
        workspace,
        recorded_at,
        run,
        finished,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_counts_a_limited_number_of_positions() {
        let shard = |number: u32| Stream::Execution.shard(number).unwrap();
        let position = |number: u32| Position::START.plus(number);
        let check = |heads: &[u32], cursors: &[(u32, u32)], expected: &[(u32, u32, u32)]| {
            let heads: Vec<Position> = heads.iter().copied().map(position).collect();
            let cursors = cursors
                .iter()
                .map(|(at, read)| (shard(*at), position(*read)));
            let span = |(at, after, until): &(u32, u32, u32)| Span {
                shard: shard(*at),
                after: position(*after),
                until: position(*until),
            };
            let expected: Vec<Span> = expected.iter().map(span).collect();
            assert_eq!(spans(&heads, &cursors.collect()), expected);
        };
        check(&[5, 0, 7], &[(0, 5), (2, 3)], &[(2, 3, 7)]);
        let max = POSITIONS_PER_PASS_MAX;
        check(&[6, max], &[(0, 2)], &[(0, 2, 6), (1, 0, max / 2)]);
        check(&[5], &[(0, 9)], &[]);
    }
}
