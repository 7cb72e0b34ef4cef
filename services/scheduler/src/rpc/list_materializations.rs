//! ListMaterializations: materializations, newest first.

use servo_mesh::Error;
use servo_mesh::filter::{Filter, TimeRange};
use servo_proto::v1 as pb;
use uuid::Uuid;

use super::Scheduler;
use super::support::{errors, pages, parse, wait};
use crate::reads::filters::{self, materialization_index};
use crate::reads::{TaskNames, materializations};
use crate::store::materializations as store;
use crate::store::materializations::{ListedMaterialization, MaterializationCursor};

/// How many rows a page examines when its filter excludes most of them.
const EXAMINED_MAX: usize = 2_000;

pub(super) async fn list_materializations(
    scheduler: &Scheduler,
    request: pb::ListMaterializationsRequest,
) -> Result<pb::ListMaterializationsResponse, Error> {
    let tenant = parse::tenant(&request.tenant)?;
    let filter = Filter::parse(&request.filter, &filters::MATERIALIZATIONS)?;
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let size = pages::size(request.page_size)?;
    let list = [
        "materializations",
        &request.tenant,
        &request.workspace,
        &request.filter,
    ];
    let before = match scheduler.tokens.read(&list, &request.page_token)? {
        None => (TimeRange::ALL.until, Uuid::max(), String::new()),
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
    let rows = store::list(
        &mut tx,
        scope,
        materialization_index(&filter),
        &before,
        examined + 1,
    )
    .await
    .map_err(errors::store)?;
    tx.commit().await.map_err(errors::store)?;
    let (mut shown, mut last, mut names) = (Vec::new(), None, TaskNames::default());
    for row in rows.iter().take(examined) {
        if shown.len() == size {
            break;
        }
        last = Some(cursor_of(row));
        let version = materializations::to_proto(reads, scope, row, &mut names).await?;
        shown.extend(Some(version).filter(|version| filter.matches(version)));
    }
    let next = last.filter(|last| Some(last) != rows.last().map(cursor_of).as_ref());
    let next = next.map(|(at, attempt, asset)| format!("{}.{attempt}.{asset}", at.unix_us()));
    Ok(pb::ListMaterializationsResponse {
        materializations: shown,
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

fn cursor_of(row: &ListedMaterialization) -> MaterializationCursor {
    (row.recorded_at, row.attempt_id, row.asset_key.clone())
}

fn parse_cursor(text: &str) -> Result<MaterializationCursor, Error> {
    let mut parts = text.splitn(3, '.');
    let mut read = || {
        Some((
            pages::cursor_time(parts.next()?)?,
            parts.next()?.parse().ok()?,
            parts.next()?.to_owned(),
        ))
    };
    read().ok_or_else(|| errors::bad_page_token("ListMaterializations"))
}
