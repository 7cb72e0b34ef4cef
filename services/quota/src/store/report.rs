//! Usage and cost, summed for a report.

use servo_model::{TenantId, Timestamp};
use servo_store::{StoreError, Tx};

use super::scoped;
use crate::core::report::{Filter, Groups};

/// The parameters of a report.
#[derive(Debug)]
pub(crate) struct ReportQuery<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    pub(crate) grain: i16,
    pub(crate) groups: Groups,
    pub(crate) filter: Filter,
    /// Empty includes all currencies.
    pub(crate) currency: &'a str,
    pub(crate) after: Option<LineKey>,
    pub(crate) limit: usize,
}

/// The identity of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineKey {
    pub(crate) begins: Timestamp,
    pub(crate) workspace: String,
    pub(crate) asset: String,
    pub(crate) pool: String,
}

#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) key: LineKey,
    pub(crate) ends: Timestamp,
    /// In the order of the columns of quota.usage.
    pub(crate) sums: [u64; 13],
}

pub(crate) async fn lines(tx: &mut Tx, query: ReportQuery<'_>) -> Result<Vec<Line>, StoreError> {
    let after = query.after.as_ref();
    let statement = scoped!("report", query.tenant)
        .bind(query.start)
        .bind(query.end)
        .bind(query.grain)
        .bind(query.groups.workspace)
        .bind(query.groups.asset)
        .bind(query.groups.pool)
        .bind(query.filter.workspace)
        .bind(query.filter.asset)
        .bind(query.filter.pool)
        .bind(query.currency)
        .bind(after.map(|key| key.begins))
        .bind(after.map(|key| key.workspace.as_str()))
        .bind(after.map(|key| key.asset.as_str()))
        .bind(after.map(|key| key.pool.as_str()))
        .bind(i64::try_from(query.limit).unwrap_or(i64::MAX));
    type Columns = (Timestamp, Timestamp, String, String, String, Vec<i64>);
    let rows: Vec<Columns> = tx.all(statement).await?;
    Ok(rows.into_iter().map(line).collect())
}

fn line(
    (begins, ends, workspace, asset, pool, columns): (
        Timestamp,
        Timestamp,
        String,
        String,
        String,
        Vec<i64>,
    ),
) -> Line {
    let mut sums = [0; 13];
    for (sum, column) in sums.iter_mut().zip(columns) {
        *sum = super::from_column(column);
    }
    Line {
        key: LineKey {
            begins,
            workspace,
            asset,
            pool,
        },
        ends,
        sums,
    }
}
