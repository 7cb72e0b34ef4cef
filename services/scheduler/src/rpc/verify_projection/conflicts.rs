//! Requests under the key of another, as lines to compare.

use serde_json::{Value, json};
use servo_mesh::Error;
use servo_model::idempotency::IdempotencyKey;
use servo_model::request::RequestFingerprint;
use servo_model::{Digest, RunKey};
use servo_proto::v1::event::Body;
use servo_store::sqlx::FromRow;
use servo_store::{Event, Timestamp, query};
use uuid::Uuid;

use super::Comparison;
use super::past::{self, FoldedRun};
use crate::rpc::{Scheduler, answer};
use crate::wire;

pub(super) async fn both_ways(
    scheduler: &Scheduler,
    past: &FoldedRun,
) -> Result<Comparison, Error> {
    let run_id = Uuid::from_bytes(*past.run.header.run_id.as_bytes());
    let mut both = Comparison::default();
    both.folded.extend(
        past.conflicts
            .iter()
            .filter_map(|event| Row::folded(run_id, event))
            .map(|row| row.line()),
    );
    let select = query(include_str!("../../store/conflicts_of_run.sql")).bind(run_id);
    let rows: Vec<Row> = scheduler
        .store
        .loops()
        .all(select)
        .await
        .map_err(answer::store)?;
    for row in rows {
        let (key, line) = row.line();
        if !both.folded.contains_key(&key) {
            match later_event(scheduler, past, &row).await? {
                Some(event) => both
                    .folded
                    .extend(Row::folded(run_id, &event).map(|row| row.line())),
                None if row.has_a_known_key => {}
                None => continue,
            }
        }
        both.live.insert(key, line);
    }
    Ok(both)
}

/// What came after the run had ended is found by its key, as long as keys are known.
async fn later_event(
    scheduler: &Scheduler,
    past: &FoldedRun,
    row: &Row,
) -> Result<Option<Event>, Error> {
    let said = <[u8; 32]>::try_from(row.fingerprint.as_slice()).ok();
    let Some((run_key, said)) = past.run_key.parse::<RunKey>().ok().zip(said) else {
        return Ok(None);
    };
    let said = RequestFingerprint::from_digest(Digest::from_bytes(said));
    let key = IdempotencyKey::run_requested(&run_key, &said);
    past::event_under(scheduler, past, &key).await
}

/// As the table has it.
#[derive(Debug, FromRow)]
struct Row {
    tenant: String,
    workspace: String,
    event_id: Uuid,
    run_id: Uuid,
    request: Vec<u8>,
    fingerprint: Vec<u8>,
    recorded_at: Timestamp,
    /// Young enough that the ledger still knows the key of its event.
    has_a_known_key: bool,
}

impl Row {
    fn folded(run_id: Uuid, event: &Event) -> Option<Row> {
        let (Body::RunRequested(request), _) = wire::body_of(&event.payload).ok()? else {
            return None;
        };
        Some(Row {
            tenant: event.tenant.clone(),
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

    fn line(&self) -> (String, Value) {
        let key = json!({ "event_id": wire::ulid(self.event_id) });
        let line = json!({
            "tenant": self.tenant,
            "workspace": self.workspace,
            "run_id": self.run_id.to_string(),
            "request_sha256": Digest::of(&self.request).to_string(),
            "fingerprint": self.fingerprint,
            "recorded_at": self.recorded_at.unix_us(),
        });
        (key.to_string(), line)
    }
}
