//! ListRunKeyConflicts: requests under the run key of another request, newest first.

use servo_mesh::Error;
use servo_mesh::filter::{Field, Filter, TimeRange};
use servo_model::Timestamp;
use servo_proto::v1::event::Body;
use servo_proto::{proto_time, spec_difference, v1 as pb};
use uuid::Uuid;

use super::Scheduler;
use super::support::{errors, pages, parse};
use crate::store::conflicts::{self, ConflictFilter, ListedConflict};
use crate::wire;

static FIELDS: [Field<pb::RunKeyConflict>; 3] = [
    Field::exact("run_key"),
    Field::run_id("run_id", |conflict| &conflict.run_id),
    Field::range("detect_time"),
];

pub(super) async fn list_run_key_conflicts(
    scheduler: &Scheduler,
    request: pb::ListRunKeyConflictsRequest,
) -> Result<pb::ListRunKeyConflictsResponse, Error> {
    let tenant = parse::tenant(&request.tenant)?;
    let terms = Filter::parse(&request.filter, &FIELDS)?;
    let size = pages::size(request.page_size)?;
    let list = [
        "run key conflicts",
        &request.tenant,
        &request.workspace,
        &request.filter,
    ];
    let before = match scheduler.tokens.read(&list, &request.page_token)? {
        None => (TimeRange::ALL.until, Uuid::max()),
        Some(cursor) => parse_cursor(&cursor)?,
    };
    let mut tx = scheduler
        .reads
        .store
        .requests()
        .begin(&tenant)
        .await
        .map_err(errors::store)?;
    let filter = ConflictFilter {
        run_id: terms.run_id("run_id"),
        run_key: terms.exact("run_key"),
        recorded: terms.range("detect_time"),
    };
    let scope = (&tenant, request.workspace.as_str());
    let mut rows = conflicts::list(&mut tx, scope, filter, before, size + 1)
        .await
        .map_err(errors::store)?;
    tx.commit().await.map_err(errors::store)?;
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows
        .last()
        .filter(|_| more)
        .map(|row| format!("{}.{}", row.recorded_at.unix_us(), row.event_id));
    Ok(pb::ListRunKeyConflictsResponse {
        conflicts: rows.iter().filter_map(to_proto).collect(),
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

fn to_proto(row: &ListedConflict) -> Option<pb::RunKeyConflict> {
    let (conflicting, holder) = (requested(&row.request)?, requested(&row.first_request)?);
    let spec = |requested: &pb::RunRequested| requested.spec.clone().unwrap_or_default();
    Some(pb::RunKeyConflict {
        run_key: holder.run_key.clone(),
        run_id: holder.run_id.clone(),
        request_fingerprint: holder.request_fingerprint.clone(),
        conflicting_fingerprint: conflicting.request_fingerprint.clone(),
        conflicting_event_id: wire::ulid(row.event_id),
        fields: spec_difference(&spec(&holder), &spec(&conflicting)).unwrap_or_default(),
        detect_time: Some(proto_time(row.recorded_at)),
    })
}

fn requested(payload: &[u8]) -> Option<pb::RunRequested> {
    match wire::body_of(payload) {
        Ok((Body::RunRequested(requested), _)) => Some(requested),
        _ => None,
    }
}

fn parse_cursor(text: &str) -> Result<(Timestamp, Uuid), Error> {
    let parsed = text
        .split_once('.')
        .and_then(|(at, id)| Some((pages::cursor_time(at)?, id.parse().ok()?)));
    parsed.ok_or_else(|| errors::bad_page_token("ListRunKeyConflicts"))
}
