//! ListRunKeyConflicts: requests that came under the key of another, newest first.

use servo_mesh::filter;
use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_model::RunId;
use servo_proto::v1::event::Body;
use servo_proto::{spec_difference, v1 as pb};
use servo_store::{Timestamp, query};
use uuid::Uuid;

use super::{Scheduler, answer};
use crate::wire;

/// The event, the run, its request, when, and the run's own request.
type Row = (Uuid, Uuid, Vec<u8>, Timestamp, Vec<u8>);

const FIELDS: [&str; 3] = ["run_key", "run_id", "detect_time"];
const NOBODYS: RunId = RunId::from_bytes([0; 16]);

pub(super) async fn list_run_key_conflicts(
    scheduler: &Scheduler,
    request: pb::ListRunKeyConflictsRequest,
) -> Result<pb::ListRunKeyConflictsResponse, Error> {
    let wanted = filter::parse(&request.filter, &FIELDS)?;
    let (from, until) = answer::within(&wanted, "detect_time")?;
    // A malformed run id names a run that cannot exist.
    let run_id = answer::is(&wanted, "run_id")?.map(|id| id.parse::<RunId>().unwrap_or(NOBODYS));
    let size = page_size(request.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let list = [
        "run key conflicts",
        &request.tenant,
        &request.workspace,
        &request.filter,
    ];
    let (at, event_id) = match scheduler.tokens.read(&list, &request.page_token)? {
        None => (answer::NEWEST, Uuid::max()),
        Some(cursor) => place(&cursor)?,
    };
    let mut tx = scheduler
        .store
        .requests()
        .begin(&request.tenant)
        .await
        .map_err(answer::store)?;
    let select = query(include_str!("../store/list_conflicts.sql"))
        .bind(&request.tenant)
        .bind(&request.workspace)
        .bind(Timestamp::from_unix_us(at))
        .bind(event_id)
        .bind(size as i64 + 1)
        .bind(run_id.map(|id| Uuid::from_bytes(*id.as_bytes())))
        .bind(answer::is(&wanted, "run_key")?)
        .bind(from)
        .bind(until);
    let mut rows: Vec<Row> = tx.all(select).await.map_err(answer::store)?;
    tx.commit().await.map_err(answer::store)?;
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows
        .last()
        .filter(|_| more)
        .map(|(event_id, _, _, at, _)| format!("{}.{event_id}", at.unix_us()));
    Ok(pb::ListRunKeyConflictsResponse {
        conflicts: rows.iter().filter_map(show).collect(),
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

fn show((event_id, _, request, at, holder): &Row) -> Option<pb::RunKeyConflict> {
    let (request, holder) = (requested(request)?, requested(holder)?);
    let spec = |request: &pb::RunRequested| request.spec.clone().unwrap_or_default();
    Some(pb::RunKeyConflict {
        run_key: holder.run_key.clone(),
        run_id: holder.run_id.clone(),
        request_fingerprint: holder.request_fingerprint.clone(),
        conflicting_fingerprint: request.request_fingerprint.clone(),
        conflicting_event_id: wire::ulid(*event_id),
        fields: spec_difference(&spec(&holder), &spec(&request)).unwrap_or_default(),
        detect_time: Some(wire::timestamp(at.unix_us())),
    })
}

fn requested(payload: &[u8]) -> Option<pb::RunRequested> {
    match wire::body_of(payload) {
        Ok((Body::RunRequested(request), _)) => Some(request),
        _ => None,
    }
}

fn place(text: &str) -> Result<(i64, Uuid), Error> {
    let parsed = text
        .split_once('.')
        .and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
    parsed.ok_or_else(|| {
        Error::new(
            Reason::InvalidPageToken,
            "page_token is not one that ListRunKeyConflicts gave; begin anew",
        )
    })
}
