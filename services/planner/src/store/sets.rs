//! Sets of dynamic partitions.

use std::collections::BTreeMap;

use servo_model::partitioning::ValueList;
use servo_model::{PartitionValue, Timestamp};
use servo_store::{LoopStore, StoreError, Tx, query};

use super::deployments::columns;
use super::{Scope, scoped};

/// The row of a locked set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Set {
    pub(crate) version: i64,
    pub(crate) last_ordinal: i64,
    pub(crate) value_count: i64,
}

#[derive(Debug)]
pub(crate) struct ValueRow {
    pub(crate) value: String,
    pub(crate) ordinal: i64,
    pub(crate) created_at: Timestamp,
}

pub(crate) async fn lock(tx: &mut Tx, scope: &Scope, set: &str) -> Result<Set, StoreError> {
    let (version, last_ordinal, value_count) = tx.one(scoped!("lock_set", scope).bind(set)).await?;
    Ok(Set {
        version,
        last_ordinal,
        value_count,
    })
}

pub(crate) async fn update(
    tx: &mut Tx,
    scope: &Scope,
    name: &str,
    set: Set,
) -> Result<(), StoreError> {
    let statement = scoped!("update_set", scope).bind(name).bind(set.version);
    tx.execute(statement.bind(set.last_ordinal).bind(set.value_count))
        .await
        .map(drop)
}

/// Adds values and returns those that were new.
pub(crate) async fn add(
    tx: &mut Tx,
    scope: &Scope,
    set: &str,
    values: &[String],
    last_ordinal: i64,
) -> Result<Vec<String>, StoreError> {
    let statement = scoped!("add_values", scope)
        .bind(set)
        .bind(values)
        .bind(last_ordinal);
    let rows: Vec<(String,)> = tx.all(statement).await?;
    Ok(rows.into_iter().map(|(value,)| value).collect())
}

/// Removes values and returns those that existed.
pub(crate) async fn remove(
    tx: &mut Tx,
    scope: &Scope,
    set: &str,
    values: &[String],
) -> Result<Vec<String>, StoreError> {
    let rows: Vec<(String,)> = tx
        .all(scoped!("remove_values", scope).bind(set).bind(values))
        .await?;
    Ok(rows.into_iter().map(|(value,)| value).collect())
}

pub(crate) async fn list(
    tx: &mut Tx,
    scope: &Scope,
    set: &str,
    after: i64,
    count: i64,
) -> Result<Vec<ValueRow>, StoreError> {
    let rows = tx
        .all(
            scoped!("list_values", scope)
                .bind(set)
                .bind(after)
                .bind(count),
        )
        .await?;
    let read = |(value, ordinal, created_at)| ValueRow {
        value,
        ordinal,
        created_at,
    };
    Ok(rows.into_iter().map(read).collect())
}

pub(crate) async fn count(tx: &mut Tx, scope: &Scope, set: &str) -> Result<i64, StoreError> {
    let row: Option<(i64,)> = tx
        .optional(scoped!("count_values", scope).bind(set))
        .await?;
    Ok(row.map_or(0, |(count,)| count))
}

/// Returns all values of several sets of one workspace, by set name.
pub(crate) async fn values(
    tx: &mut Tx,
    scope: &Scope,
    sets: Vec<String>,
) -> Result<BTreeMap<String, ValueList>, StoreError> {
    if sets.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (tenants, workspaces) = columns(std::iter::repeat_n(scope, sets.len()));
    let statement = query(include_str!("sql/find_sets.sql"))
        .bind(tenants)
        .bind(workspaces)
        .bind(sets);
    Ok(by_name(
        tx.all(statement)
            .await?
            .into_iter()
            .map(|(_, set, value): Row| (set, value)),
    ))
}

type Row = (i64, String, String);

/// Returns the values of each (scope, set) pair, in the same order.
pub(crate) async fn values_of_many(
    store: &LoopStore,
    scoped_sets: &[(Scope, String)],
) -> Result<Vec<ValueList>, StoreError> {
    if scoped_sets.is_empty() {
        return Ok(Vec::new());
    }
    let (tenants, workspaces) = columns(scoped_sets.iter().map(|(scope, _)| scope));
    let sets: Vec<String> = scoped_sets.iter().map(|(_, set)| set.clone()).collect();
    let statement = query(include_str!("sql/find_sets.sql"))
        .bind(tenants)
        .bind(workspaces)
        .bind(sets);
    let rows: Vec<Row> = store.all(statement).await?;
    let mut lists: Vec<Vec<PartitionValue>> = vec![Vec::new(); scoped_sets.len()];
    for (position, _, value) in rows {
        let at = usize::try_from(position - 1).unwrap_or(usize::MAX);
        if let Some(list) = lists.get_mut(at) {
            list.push(PartitionValue::Text(value));
        }
    }
    Ok(lists.into_iter().map(ValueList::new).collect())
}

fn by_name(rows: impl Iterator<Item = (String, String)>) -> BTreeMap<String, ValueList> {
    let mut lists: BTreeMap<String, Vec<PartitionValue>> = BTreeMap::new();
    for (set, value) in rows {
        lists
            .entry(set)
            .or_default()
            .push(PartitionValue::Text(value));
    }
    lists
        .into_iter()
        .map(|(set, values)| (set, ValueList::new(values)))
        .collect()
}
