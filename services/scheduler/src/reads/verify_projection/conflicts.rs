//! Run key conflicts.

use serde_json::{Value, json};
use servo_mesh::Error;
use servo_model::idempotency::IdempotencyKey;
use servo_model::request::RequestFingerprint;
use servo_model::{Digest, RunKey};
use servo_proto::v1::event::Body;
use servo_store::Event;
use uuid::Uuid;

use super::Comparison;
use super::folded_run::{self, FoldedRun};
use crate::reads::{Reads, errors};
use crate::store::conflicts::{self, ConflictRow};
use crate::wire;

pub(super) async fn compare_rows(
    reads: &Reads,
    folded_run: &FoldedRun,
) -> Result<Comparison, Error> {
    let run_id = Uuid::from_bytes(*folded_run.run.header.run_id.as_bytes());
    let mut comparison = Comparison::default();
    comparison.folded.extend(
        folded_run
            .conflicts
            .iter()
            .filter_map(|event| folded_row(run_id, event))
            .map(|row| keyed(&row)),
    );
    let rows = conflicts::list_of_run(reads.store.loops(), run_id)
        .await
        .map_err(errors::store)?;
    for row in rows {
        let (key, line) = keyed(&row);
        if !comparison.folded.contains_key(&key) {
            match later_event(reads, folded_run, &row).await? {
                Some(event) => comparison
                    .folded
                    .extend(folded_row(run_id, &event).map(|row| keyed(&row))),
                None if row.has_a_known_key => {}
                None => continue,
            }
        }
        comparison.live.insert(key, line);
    }
    Ok(comparison)
}

/// Finds an event that was recorded after the run had ended, as long as the ledger keeps its key.
async fn later_event(
    reads: &Reads,
    folded_run: &FoldedRun,
    row: &ConflictRow,
) -> Result<Option<Event>, Error> {
    let fingerprint = <[u8; 32]>::try_from(row.fingerprint.as_slice()).ok();
    let Some((run_key, fingerprint)) = folded_run.run_key.parse::<RunKey>().ok().zip(fingerprint)
    else {
        return Ok(None);
    };
    let fingerprint = RequestFingerprint::from_digest(Digest::from_bytes(fingerprint));
    let key = IdempotencyKey::run_requested(&run_key, &fingerprint);
    folded_run::find_event(reads, folded_run, &key).await
}

fn folded_row(run_id: Uuid, event: &Event) -> Option<ConflictRow> {
    let (Body::RunRequested(request), _) = wire::body_of(&event.payload).ok()? else {
        return None;
    };
    Some(ConflictRow {
        tenant: event.tenant.tenant()?.clone(),
        workspace: event.workspace.clone(),
        event_id: event.event_id,
        run_id,
        request: event.payload.clone(),
        fingerprint: wire::fingerprint(&request)
            .ok()?
            .digest()
            .as_bytes()
            .to_vec(),
        recorded_at: event.recorded_at,
        has_a_known_key: true,
    })
}

fn keyed(row: &ConflictRow) -> (String, Value) {
    let key = json!({ "event_id": wire::ulid(row.event_id) });
    let line = json!({
        "tenant": row.tenant,
        "workspace": row.workspace,
        "run_id": row.run_id.to_string(),
        "request_sha256": Digest::of(&row.request).to_string(),
        "fingerprint": row.fingerprint,
        "recorded_at": row.recorded_at.unix_us(),
    });
    (key.to_string(), line)
}
