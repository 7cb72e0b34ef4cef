//! ListCheckResults: check results, newest first.

use prost::Message as _;
use servo_mesh::filter::{Filter, TimeRange};
use servo_mesh::{Error, Reason};
use servo_model::{AttemptId, Operation, RunId, TenantId};
use servo_proto::{proto_time, v1 as pb};
use uuid::Uuid;

use super::Scheduler;
use super::support::{errors, pages, parse};
use crate::reads::filters::{self, check_index};
use crate::reads::{Reads, TaskNames};
use crate::store::checks::{self, CheckCursor, ListedCheck};

/// How many rows a page examines when its filter excludes most of them.
const EXAMINED_MAX: usize = 2_000;

pub(super) async fn list_check_results(
    scheduler: &Scheduler,
    request: pb::ListCheckResultsRequest,
) -> Result<pb::ListCheckResultsResponse, Error> {
    let tenant = parse::tenant(&request.tenant)?;
    let filter = Filter::parse(&request.filter, &filters::CHECKS)?;
    let size = pages::size(request.page_size)?;
    let list = [
        "check results",
        &request.tenant,
        &request.workspace,
        &request.filter,
    ];
    let before = match scheduler.tokens.read(&list, &request.page_token)? {
        None => (TimeRange::ALL.until, Uuid::max(), i16::MAX),
        Some(cursor) => parse_cursor(&cursor)?,
    };
    let examined = if filter.is_all() { size } else { EXAMINED_MAX };
    let reads = &scheduler.reads;
    let scope = (&tenant, request.workspace.as_str());
    let mut tx = reads
        .store
        .requests()
        .begin(&tenant)
        .await
        .map_err(errors::store)?;
    let rows = checks::list(&mut tx, scope, check_index(&filter), before, examined + 1)
        .await
        .map_err(errors::store)?;
    tx.commit().await.map_err(errors::store)?;
    let (mut results, mut last, mut names) = (Vec::new(), None, TaskNames::default());
    for row in rows.iter().take(examined) {
        if results.len() == size {
            break;
        }
        last = Some(cursor_of(row));
        let record = to_proto(reads, scope, row, &mut names).await?;
        results.extend(Some(record).filter(|record| filter.matches(record)));
    }
    let next = last.filter(|last| Some(last) != rows.last().map(cursor_of).as_ref());
    let next = next.map(|(at, attempt, index)| format!("{}.{attempt}.{index}", at.unix_us()));
    Ok(pb::ListCheckResultsResponse {
        results,
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

async fn to_proto(
    reads: &Reads,
    scope: (&TenantId, &str),
    row: &ListedCheck,
    names: &mut TaskNames,
) -> Result<pb::CheckRecord, Error> {
    let result = pb::CheckResult::decode(row.result.as_slice())
        .map_err(|_| Error::new(Reason::Internal, "a stored result cannot be read"))?;
    let task = names
        .find(
            reads,
            scope,
            row.plan_id.as_deref(),
            (row.ordinal, row.item),
        )
        .await?;
    // A task that only checks reads the version of another attempt, and the result does not name
    // it.
    let checks_own_version = task
        .as_ref()
        .is_none_or(|task| task.operation() != Operation::Check);
    let attempt_id = AttemptId::from_bytes(*row.attempt_id.as_bytes()).to_string();
    Ok(pb::CheckRecord {
        result: Some(result),
        asset_key: row.asset_key.clone(),
        partition_key: row.partition_key.clone(),
        materialization_id: if checks_own_version {
            attempt_id
        } else {
            String::new()
        },
        run_id: RunId::from_bytes(*row.run_id.as_bytes()).to_string(),
        task_id: task.map_or_else(String::new, |task| task.id().to_string()),
        record_time: Some(proto_time(row.recorded_at)),
    })
}

fn cursor_of(row: &ListedCheck) -> CheckCursor {
    (row.recorded_at, row.attempt_id, row.index)
}

fn parse_cursor(text: &str) -> Result<CheckCursor, Error> {
    let mut parts = text.splitn(3, '.');
    let mut read = || {
        Some((
            pages::cursor_time(parts.next()?)?,
            parts.next()?.parse().ok()?,
            parts.next()?.parse().ok()?,
        ))
    };
    read().ok_or_else(|| errors::bad_page_token("ListCheckResults"))
}
