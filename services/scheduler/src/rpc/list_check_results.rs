//! ListCheckResults: what checks found, newest first.

use prost::Message as _;
use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_model::{AttemptId, Operation, RunId};
use servo_proto::v1 as pb;
use servo_store::{TenantTx, Timestamp, query};
use uuid::Uuid;

use super::check_filter::{Narrowed, Wanted};
use super::task_names::TaskNames;
use super::{Scheduler, answer};
use crate::wire;

/// How many rows are looked at for a page whose filter most of them do not fit.
const LOOKED_AT_MAX: usize = 2_000;
/// Later than every result: the year 9999.
const NEWEST: i64 = 253_370_764_800_000_000;

/// Attempt, place among its checks, asset, partition, ordinal, item, recorded, result; run and plan.
type Row = (
    Uuid,
    i16,
    String,
    String,
    i32,
    i32,
    Timestamp,
    Vec<u8>,
    Uuid,
    Option<Vec<u8>>,
);

/// Where a page ends.
type Place = (i64, Uuid, i16);

pub(super) async fn list_check_results(
    scheduler: &Scheduler,
    request: pb::ListCheckResultsRequest,
) -> Result<pb::ListCheckResultsResponse, Error> {
    let wanted = Wanted::parse(&request.filter)?;
    let size = page_size(request.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let list = [
        "check results",
        &request.tenant,
        &request.workspace,
        &request.filter,
    ];
    let before = match scheduler.tokens.read(&list, &request.page_token)? {
        None => (NEWEST, Uuid::max(), i16::MAX),
        Some(cursor) => place(&cursor)?,
    };
    let looked_at = if wanted.is_all() { size } else { LOOKED_AT_MAX };
    let mut tx = scheduler
        .store
        .requests()
        .begin(&request.tenant)
        .await
        .map_err(answer::store)?;
    let rows = rows(&mut tx, &request, &wanted, before, looked_at + 1).await?;
    tx.commit().await.map_err(answer::store)?;
    let (mut results, mut last, mut names) = (Vec::new(), None, TaskNames::default());
    for row in rows.iter().take(looked_at) {
        if results.len() == size {
            break;
        }
        last = Some(place_of(row));
        let record = show(
            scheduler,
            (&request.tenant, &request.workspace),
            row,
            &mut names,
        )
        .await?;
        results.extend(Some(record).filter(|record| wanted.fits(record)));
    }
    let next = last.filter(|last| Some(last) != rows.last().map(place_of).as_ref());
    let next = next.map(|(at, attempt, place)| format!("{at}.{attempt}.{place}"));
    Ok(pb::ListCheckResultsResponse {
        results,
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

/// By the narrowest index that the filter allows.
async fn rows(
    tx: &mut TenantTx,
    request: &pb::ListCheckResultsRequest,
    wanted: &Wanted,
    (at, attempt, place): Place,
    count: usize,
) -> Result<Vec<Row>, Error> {
    let narrowed = wanted.narrowed();
    let statement = match &narrowed {
        Narrowed::Run(_) => include_str!("../store/list_checks_of_run.sql"),
        Narrowed::Asset(_) => include_str!("../store/list_checks_of_asset.sql"),
        Narrowed::Failed => include_str!("../store/list_failed_checks.sql"),
        Narrowed::Not => include_str!("../store/list_checks.sql"),
    };
    let select = query(statement)
        .bind(&request.tenant)
        .bind(&request.workspace)
        .bind(Timestamp::from_unix_us(at))
        .bind(attempt)
        .bind(place)
        .bind(count as i64);
    let select = match narrowed {
        Narrowed::Run(run) => select.bind(Uuid::from_bytes(*run.as_bytes())),
        Narrowed::Asset(asset) => select.bind(asset.to_owned()),
        Narrowed::Failed | Narrowed::Not => select,
    };
    tx.all(select).await.map_err(answer::store)
}

async fn show(
    scheduler: &Scheduler,
    scope: (&str, &str),
    row: &Row,
    names: &mut TaskNames,
) -> Result<pb::CheckRecord, Error> {
    let (attempt, _, asset_key, partition_key, ordinal, item, recorded_at, result, run, plan) = row;
    let result = pb::CheckResult::decode(result.as_slice())
        .map_err(|_| Error::new(Reason::Internal, "a stored result cannot be read"))?;
    let task = names
        .find(scheduler, scope, plan.as_deref(), (*ordinal, *item))
        .await?;
    // A task that only checks looks at what others made; which version that was, it does not say.
    let made = task
        .as_ref()
        .is_none_or(|task| task.operation() != Operation::Check);
    let attempt_id = AttemptId::from_bytes(*attempt.as_bytes()).to_string();
    Ok(pb::CheckRecord {
        result: Some(result),
        asset_key: asset_key.clone(),
        partition_key: partition_key.clone(),
        materialization_id: if made { attempt_id } else { String::new() },
        run_id: RunId::from_bytes(*run.as_bytes()).to_string(),
        task_id: task.map_or_else(String::new, |task| task.id().to_string()),
        record_time: Some(wire::timestamp(recorded_at.unix_us())),
    })
}

fn place_of(row: &Row) -> Place {
    (row.6.unix_us(), row.0, row.1)
}

fn place(text: &str) -> Result<Place, Error> {
    let mut parts = text.splitn(3, '.');
    let mut read = || {
        Some((
            parts.next()?.parse().ok()?,
            parts.next()?.parse().ok()?,
            parts.next()?.parse().ok()?,
        ))
    };
    read().ok_or_else(|| {
        let message = "page_token is not one that ListCheckResults gave; begin anew";
        Error::new(Reason::InvalidPageToken, message)
    })
}
