//! ListRuns: the runs of a workspace by age.

use std::collections::HashMap;

use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_proto::v1;
use servo_store::{TenantTx, Timestamp, query};

use super::{Scheduler, answer};
use crate::wire::{self, RunRow};

pub(super) async fn list_runs(
    scheduler: &Scheduler,
    asked: v1::ListRunsRequest,
) -> Result<v1::ListRunsResponse, Error> {
    if !asked.filter.is_empty() {
        return Err(Error::new(
            Reason::InvalidFilter,
            "filters over runs are not supported yet; leave filter empty",
        ));
    }
    let (statement, begin) = match asked.order_by.as_str() {
        "" | "create_time desc" => (include_str!("../store/list_runs.sql"), (NEWEST, i64::MAX)),
        "create_time" => (include_str!("../store/list_runs_oldest_first.sql"), (0, 0)),
        other => {
            let told = format!("`{other}` is not known; write `create_time desc` or `create_time`");
            return Err(Error::bad_field("order_by", told));
        }
    };
    let size = page_size(asked.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let list = ["runs", &asked.tenant, &asked.workspace, &asked.order_by];
    let (created_at, number) = match scheduler.tokens.read(&list, &asked.page_token)? {
        None => begin,
        Some(cursor) => place(&cursor)?,
    };
    let mut tx = scheduler.store.requests().begin(&asked.tenant).await.map_err(answer::store)?;
    let select = query(statement)
        .bind(&asked.tenant)
        .bind(&asked.workspace)
        .bind(Timestamp::from_unix_us(created_at))
        .bind(number)
        .bind(size as i64 + 1);
    let mut rows: Vec<RunRow> = tx.all(select).await.map_err(answer::store)?;
    let more = rows.len() > size;
    rows.truncate(size);
    let counts = counts(&mut tx, &rows).await?;
    tx.commit().await.map_err(answer::store)?;
    let next =
        rows.last().filter(|_| more).map(|row| format!("{}.{}", row.created_at.unix_us(), row.run_number));
    let none = Vec::new();
    let show = |row: &RunRow| wire::run_to_proto(row, counts.get(&row.run_number).unwrap_or(&none));
    Ok(v1::ListRunsResponse {
        runs: rows.iter().map(show).collect(),
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

/// Later than every run: the year 9999.
const NEWEST: i64 = 253_370_764_800_000_000;

/// Tasks by state, of the runs that have not ended.
async fn counts(tx: &mut TenantTx, rows: &[RunRow]) -> Result<HashMap<i64, Vec<(i16, i64)>>, Error> {
    let open: Vec<i64> = rows.iter().filter(|row| row.counts.is_none()).map(|row| row.run_number).collect();
    let mut counts: HashMap<i64, Vec<(i16, i64)>> = HashMap::new();
    if open.is_empty() {
        return Ok(counts);
    }
    let count = query(include_str!("../store/count_tasks_of.sql")).bind(open);
    let counted: Vec<(i64, i16, i64)> = tx.all(count).await.map_err(answer::store)?;
    for (number, state, count) in counted {
        counts.entry(number).or_default().push((state, count));
    }
    Ok(counts)
}

fn place(text: &str) -> Result<(i64, i64), Error> {
    let parsed = text.split_once('.').and_then(|(at, number)| Some((at.parse().ok()?, number.parse().ok()?)));
    parsed.ok_or_else(|| {
        Error::new(Reason::InvalidPageToken, "page_token is not one that ListRuns gave; begin anew")
    })
}
