//! Use and cost, summed up for a report.

use servo_store::{StoreError, Timestamp, Tx};

use super::scoped;
use crate::core::report::{Filter, Groups};

/// What a report sums up.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    pub(crate) grain: i16,
    pub(crate) groups: Groups,
    pub(crate) filter: Filter,
    /// Empty counts all currencies.
    pub(crate) currency: &'a str,
    pub(crate) after: Option<Place>,
    pub(crate) limit: usize,
}

/// Which line it is: its beginning, workspace, asset and pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) begins: Timestamp,
    pub(crate) workspace: String,
    pub(crate) asset: String,
    pub(crate) pool: String,
}

#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) place: Place,
    pub(crate) ends: Timestamp,
    /// In the order of the columns of quota.usage.
    pub(crate) sums: [u64; 13],
}

pub(crate) async fn lines(tx: &mut Tx, ask: Ask<'_>) -> Result<Vec<Line>, StoreError> {
    let after = ask.after.as_ref();
    let statement = scoped!("report", ask.tenant)
        .bind(ask.start)
        .bind(ask.end)
        .bind(ask.grain)
        .bind(ask.groups.workspace)
        .bind(ask.groups.asset)
        .bind(ask.groups.pool)
        .bind(ask.filter.workspace)
        .bind(ask.filter.asset)
        .bind(ask.filter.pool)
        .bind(ask.currency)
        .bind(after.map(|place| place.begins))
        .bind(after.map(|place| place.workspace.as_str()))
        .bind(after.map(|place| place.asset.as_str()))
        .bind(after.map(|place| place.pool.as_str()))
        .bind(i64::try_from(ask.limit).unwrap_or(i64::MAX));
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
        *sum = super::count(column);
    }
    Line {
        place: Place {
            begins,
            workspace,
            asset,
            pool,
        },
        ends,
        sums,
    }
}
