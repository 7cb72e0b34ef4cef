//! Budgets and their spent amounts.

use std::collections::BTreeMap;

use prost::Message;
use servo_model::{EventId, TenantId, TenantScope, Timestamp};
use servo_proto::v1::Budget;
use servo_store::sqlx::Postgres;
use servo_store::sqlx::postgres::PgArguments;
use servo_store::sqlx::query::Query;
use servo_store::{LoopStore, StoreError, Tx, query};
use uuid::Uuid;

use super::{decode, from_column, scoped, to_column};

/// A budget without its spent amount.
#[derive(Debug, Clone)]
pub(crate) struct BudgetRow {
    pub(crate) budget: Budget,
    pub(crate) counts_from: Timestamp,
}

type Columns = (Uuid, i64, String, Vec<u8>, Timestamp);

fn from_row((id, version, name, budget, counts_from): Columns) -> Result<BudgetRow, StoreError> {
    let budget_id = EventId::from_bytes(*id.as_bytes()).to_string();
    let budget = Budget {
        budget_id,
        version: from_column(version),
        name,
        ..decode(&budget)?
    };
    Ok(BudgetRow {
        budget,
        counts_from,
    })
}

pub(crate) async fn find(
    tx: &mut Tx,
    tenant: &TenantId,
    id: Uuid,
) -> Result<Option<BudgetRow>, StoreError> {
    let row: Option<Columns> = tx.optional(scoped!("find_budget", tenant).bind(id)).await?;
    row.map(from_row).transpose()
}

/// Lists budgets behind this name and id.
pub(crate) async fn list(
    tx: &mut Tx,
    tenant: &TenantId,
    after: Option<(String, Uuid)>,
    limit: u64,
) -> Result<Vec<BudgetRow>, StoreError> {
    let (name, id) = after.unzip();
    let statement = scoped!("list_budgets", tenant).bind(name).bind(id);
    let rows: Vec<Columns> = tx.all(statement.bind(to_column(limit))).await?;
    rows.into_iter().map(from_row).collect()
}

pub(crate) async fn upsert(
    tx: &mut Tx,
    tenant: &TenantId,
    id: Uuid,
    budget: &Budget,
    deleted: bool,
) -> Result<(), StoreError> {
    let statement = scoped!("upsert_budget", tenant)
        .bind(id)
        .bind(to_column(budget.version))
        .bind(&budget.name)
        .bind(budget.encode_to_vec())
        .bind(deleted);
    tx.execute(statement).await.map(drop)
}

pub(crate) async fn count_existing(tx: &mut Tx, tenant: &TenantId) -> Result<u64, StoreError> {
    let (budgets,): (i64,) = tx.one(scoped!("count_budgets", tenant)).await?;
    Ok(from_column(budgets))
}

/// Returns the budgets of these tenants, or of all, by tenant.
pub(crate) async fn load_all(
    store: &LoopStore,
    tenants: Option<&[TenantScope]>,
) -> Result<BTreeMap<TenantId, Vec<BudgetRow>>, StoreError> {
    type Row = (TenantId, Uuid, i64, String, Vec<u8>, Timestamp);
    let rows: Vec<Row> = store
        .all(query(include_str!("sql/load_budgets.sql")).bind(tenants))
        .await?;
    let mut budgets: BTreeMap<TenantId, Vec<BudgetRow>> = BTreeMap::new();
    for (tenant, id, version, name, budget, counts_from) in rows {
        budgets.entry(tenant).or_default().push(from_row((
            id,
            version,
            name,
            budget,
            counts_from,
        ))?);
    }
    Ok(budgets)
}

/// Returns the amount spent since a time, for a handler.
pub(crate) async fn spent(
    tx: &mut Tx,
    tenant: &TenantId,
    budget: &Budget,
    since: Timestamp,
) -> Result<u64, StoreError> {
    let (spent,): (i64,) = tx.one(spent_statement(tenant, budget, since)).await?;
    Ok(from_column(spent))
}

/// Returns the amount spent since a time, for a loop.
pub(crate) async fn spent_for_loop(
    store: &LoopStore,
    tenant: &TenantId,
    budget: &Budget,
    since: Timestamp,
) -> Result<u64, StoreError> {
    let rows: Vec<(i64,)> = store.all(spent_statement(tenant, budget, since)).await?;
    Ok(rows.first().map_or(0, |(spent,)| from_column(*spent)))
}

fn spent_statement<'q>(
    tenant: &'q TenantId,
    budget: &'q Budget,
    since: Timestamp,
) -> Query<'q, Postgres, PgArguments> {
    scoped!("spent", tenant)
        .bind(since)
        .bind(&budget.currency)
        .bind(&budget.workspace)
        .bind(&budget.selection)
}
