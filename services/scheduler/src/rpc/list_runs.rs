//! ListRuns: the runs of a workspace by age.

use std::collections::HashMap;

use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_proto::v1;
use servo_store::{TenantTx, Timestamp, query};

use super::run_filter::Wanted;
use super::{Scheduler, answer, wait};
use crate::wire::{self, RunRow};

pub(super) async fn list_runs(
    scheduler: &Scheduler,
    asked: v1::ListRunsRequest,
) -> Result<v1::ListRunsResponse, Error> {
    let wanted = Wanted::parse(&asked.filter)?;
    wait::for_event(scheduler, &asked.wait_for_event_id).await?;
    let (statement, begin) = match asked.order_by.as_str() {
        "" | "create_time desc" => (include_str!("../store/list_runs.sql"), (NEWEST, i64::MAX)),
        "create_time" => (include_str!("../store/list_runs_oldest_first.sql"), (0, 0)),
        other => {
            let told = format!("`{other}` is not known; write `create_time desc` or `create_time`");
            return Err(Error::bad_field("order_by", told));
        }
    };
    let size = page_size(asked.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let list = ["runs", &asked.tenant, &asked.workspace, &asked.order_by, &asked.filter];
    let (created_at, number) = match scheduler.tokens.read(&list, &asked.page_token)? {
        None => begin,
        Some(cursor) => place(&cursor)?,
    };
    let mut tx = scheduler.store.requests().begin(&asked.tenant).await.map_err(answer::store)?;
    let looked_at = if wanted.is_all() { size } else { LOOKED_AT_MAX };
    let select = query(statement)
        .bind(&asked.tenant)
        .bind(&asked.workspace)
        .bind(Timestamp::from_unix_us(created_at))
        .bind(number)
        .bind(wanted.states())
        .bind(looked_at as i64 + 1);
    let rows: Vec<RunRow> = tx.all(select).await.map_err(answer::store)?;
    let end = rows.last().map(|row| row.run_number);
    let mut page = Vec::new();
    let mut last = None;
    for row in rows.into_iter().take(looked_at) {
        if page.len() == size {
            break;
        }
        last = Some((row.created_at.unix_us(), row.run_number));
        if wanted.fits(&wire::run_to_proto(&row, &[])) {
            page.push(row);
        }
    }
    let counts = counts(&mut tx, &page).await?;
    tx.commit().await.map_err(answer::store)?;
    let next = last.filter(|(_, number)| Some(*number) != end).map(|(at, number)| format!("{at}.{number}"));
    let none = Vec::new();
    let show = |row: &RunRow| wire::run_to_proto(row, counts.get(&row.run_number).unwrap_or(&none));
    Ok(v1::ListRunsResponse {
        runs: page.iter().map(show).collect(),
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

/// How many rows are looked at for a page whose filter most of them do not fit.
const LOOKED_AT_MAX: usize = 2_000;

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
