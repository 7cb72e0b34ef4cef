//! ListMaterializations: materializations, newest first.

use servo_mesh::Error;
use servo_proto::v1 as pb;
use uuid::Uuid;

use super::Scheduler;
use super::support::{errors, pages, wait};
use crate::reads::filter_terms::NEWEST;
use crate::reads::materialization_filter::MaterializationFilter;
use crate::reads::{TaskNames, materializations};
use crate::store::materializations as store;
use crate::store::materializations::{ListedMaterialization, MaterializationCursor};

/// How many rows a page examines when its filter excludes most of them.
const EXAMINED_MAX: usize = 2_000;

pub(super) async fn list_materializations(
    scheduler: &Scheduler,
    request: pb::ListMaterializationsRequest,
) -> Result<pb::ListMaterializationsResponse, Error> {
    let filter = MaterializationFilter::parse(&request.filter)?;
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let size = pages::size(request.page_size)?;
    let list = [
        "materializations",
        &request.tenant,
        &request.workspace,
        &request.filter,
    ];
    let before = match scheduler.tokens.read(&list, &request.page_token)? {
        None => (NEWEST, Uuid::max(), String::new()),
        Some(cursor) => parse_cursor(&cursor)?,
    };
    let examined = if filter.is_all() { size } else { EXAMINED_MAX };
    let reads = &scheduler.reads;
    let scope = (request.tenant.as_str(), request.workspace.as_str());
    let mut tx = reads
        .store
        .requests()
        .begin(&request.tenant)
        .await
        .map_err(errors::store)?;
    let rows = store::list(&mut tx, scope, filter.index(), &before, examined + 1)
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
    let next = next.map(|(at, attempt, asset)| format!("{at}.{attempt}.{asset}"));
    Ok(pb::ListMaterializationsResponse {
        materializations: shown,
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

fn cursor_of(row: &ListedMaterialization) -> MaterializationCursor {
    (
        row.recorded_at.unix_us(),
        row.attempt_id,
        row.asset_key.clone(),
    )
}

fn parse_cursor(text: &str) -> Result<MaterializationCursor, Error> {
    let mut parts = text.splitn(3, '.');
    let mut read = || {
        Some((
            parts.next()?.parse().ok()?,
            parts.next()?.parse().ok()?,
            parts.next()?.to_owned(),
        ))
    };
    read().ok_or_else(|| errors::bad_page_token("ListMaterializations"))
}
