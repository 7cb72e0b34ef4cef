//! Versions of data and what was checked about them, as lines to compare.

use std::collections::HashMap;

use prost::Message as _;
use serde_json::{Value, json};
use servo_mesh::Error;
use servo_model::idempotency::IdempotencyKey;
use servo_model::states::MaterializationState;
use servo_model::{AttemptId, Digest, TaskRef};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::sqlx::FromRow;
use servo_store::{Event, Timestamp, query};
use uuid::Uuid;

use super::Comparison;
use super::past::{self, FoldedRun};
use crate::core::{Materialized, Promotion, RecordedCheck};
use crate::rpc::{Scheduler, answer};
use crate::wire;

/// A version is decided about once, and has this version then.
const DECIDED_VERSION: u64 = 2;

pub(super) async fn check_results(
    scheduler: &Scheduler,
    past: &FoldedRun,
) -> Result<Comparison, Error> {
    let select = query(include_str!("../../store/checks_of_run.sql")).bind(past.run.header.number);
    let rows: Vec<CheckRow> = scheduler
        .store
        .loops()
        .all(select)
        .await
        .map_err(answer::store)?;
    let folded = past
        .checks
        .iter()
        .filter_map(|checked| CheckRow::folded(past, checked));
    Ok(Comparison {
        live: rows.iter().map(CheckRow::line).collect(),
        folded: folded.map(|row| row.line()).collect(),
    })
}

/// As the table has it.
#[derive(Debug, FromRow)]
struct CheckRow {
    attempt_id: Uuid,
    place: i16,
    tenant: String,
    workspace: String,
    asset_key: String,
    partition_key: String,
    name: String,
    passed: bool,
    severity: i16,
    ordinal: i32,
    item: i32,
    recorded_at: Timestamp,
    result: Vec<u8>,
}

impl CheckRow {
    fn folded(past: &FoldedRun, checked: &RecordedCheck) -> Option<CheckRow> {
        let plan = past.run.plan.as_ref()?;
        let (ordinal, item) = place_of(checked.task_ref);
        Some(CheckRow {
            attempt_id: Uuid::from_bytes(*checked.attempt_id.as_bytes()),
            place: checked.place,
            tenant: past.run.header.tenant.to_string(),
            workspace: past.run.header.workspace.to_string(),
            asset_key: plan
                .settings(checked.task_ref.ordinal)
                .asset_key
                .to_string(),
            partition_key: plan
                .task(checked.task_ref.ordinal)
                .partition_key
                .to_string(),
            name: checked.found.name.clone(),
            passed: checked.found.passed,
            severity: checked.found.severity,
            ordinal,
            item,
            recorded_at: Timestamp::from_unix_us(checked.at),
            result: checked.found.result.clone(),
        })
    }

    fn line(&self) -> (String, Value) {
        let key = json!({ "attempt_id": attempt(self.attempt_id), "place": self.place });
        let line = json!({
            "tenant": self.tenant,
            "workspace": self.workspace,
            "asset_key": self.asset_key,
            "partition_key": self.partition_key,
            "name": self.name,
            "passed": self.passed,
            "severity": self.severity,
            "ordinal": self.ordinal,
            "item": self.item,
            "recorded_at": self.recorded_at.unix_us(),
            "result_sha256": Digest::of(&self.result).to_string(),
        });
        (key.to_string(), line)
    }
}

pub(super) async fn materializations(
    scheduler: &Scheduler,
    past: &FoldedRun,
) -> Result<Comparison, Error> {
    let decisions = decisions(scheduler, past).await?;
    let live = versions(scheduler, past).await?;
    let folded = past
        .made
        .iter()
        .map(|made| VersionRow::folded(past, made, &decisions).line())
        .collect();
    Ok(Comparison {
        live: live.iter().map(VersionRow::line).collect(),
        folded,
    })
}

/// What the run's attempts made, as it stands. No index leads from a run to it, but its attempts do: of a task only the
/// last one made something.
async fn versions(scheduler: &Scheduler, past: &FoldedRun) -> Result<Vec<VersionRow>, Error> {
    let task_rows = past
        .run
        .task_rows()
        .filter_map(|(_, task_row)| task_row.attempt_id);
    let attempts = task_rows.chain(past.made.iter().map(|made| made.attempt_id));
    let attempts: Vec<Uuid> = attempts
        .map(|id| Uuid::from_bytes(*id.as_bytes()))
        .collect();
    let select = query(include_str!("../../store/made_by_attempts.sql")).bind(attempts);
    scheduler
        .store
        .loops()
        .all(select)
        .await
        .map_err(answer::store)
}

/// As the table has it.
#[derive(Debug, FromRow)]
struct VersionRow {
    attempt_id: Uuid,
    asset_key: String,
    partition_key: String,
    tenant: String,
    workspace: String,
    run_number: i64,
    ordinal: i32,
    item: i32,
    recorded_at: Timestamp,
    output: Vec<u8>,
    #[sqlx(flatten)]
    status: VersionStatus,
}

/// What a decision changes.
#[derive(Debug, Clone, FromRow)]
struct VersionStatus {
    state: i16,
    version: i64,
    promoted_at: Option<Timestamp>,
    resolved_by: Option<Vec<u8>>,
    resolved_event: Option<Uuid>,
}

impl VersionRow {
    fn folded(past: &FoldedRun, made: &Materialized, decisions: &Decisions) -> VersionRow {
        let (ordinal, item) = place_of(made.task_ref);
        let decided = decisions
            .0
            .get(&made.attempt_id)
            .filter(|_| made.promotion == Promotion::Quarantined);
        VersionRow {
            attempt_id: Uuid::from_bytes(*made.attempt_id.as_bytes()),
            asset_key: made.asset_key.clone(),
            partition_key: made.partition_key.clone(),
            tenant: past.run.header.tenant.to_string(),
            workspace: past.run.header.workspace.to_string(),
            run_number: past.run.header.number,
            ordinal,
            item,
            recorded_at: Timestamp::from_unix_us(made.at),
            output: made.output.clone(),
            status: decided
                .cloned()
                .unwrap_or_else(|| VersionStatus::made(made)),
        }
    }

    fn line(&self) -> (String, Value) {
        let key = json!({ "attempt_id": attempt(self.attempt_id), "asset_key": self.asset_key });
        let status = &self.status;
        let state = MaterializationState::from_code(status.state).map(|state| state.to_string());
        let line = json!({
            "partition_key": self.partition_key,
            "tenant": self.tenant,
            "workspace": self.workspace,
            "run_number": self.run_number,
            "ordinal": self.ordinal,
            "item": self.item,
            "recorded_at": self.recorded_at.unix_us(),
            "output_sha256": Digest::of(&self.output).to_string(),
            "state": state,
            "version": status.version,
            "promoted_at": status.promoted_at.map(Timestamp::unix_us),
            "resolved_by_sha256": status.resolved_by.as_ref().map(|by| Digest::of(by).to_string()),
            "resolved_event": status.resolved_event.map(wire::ulid),
        });
        (key.to_string(), line)
    }
}

impl VersionStatus {
    fn made(made: &Materialized) -> VersionStatus {
        let state = made.promotion.state();
        let is_promoted = state == MaterializationState::Promoted;
        VersionStatus {
            state: state.code(),
            version: 0,
            promoted_at: is_promoted.then(|| Timestamp::from_unix_us(made.at)),
            resolved_by: None,
            resolved_event: None,
        }
    }

    /// `None` for an event that decides nothing.
    fn decided(event: &Event) -> Option<VersionStatus> {
        let (Body::QuarantineResolved(resolved), _) = wire::body_of(&event.payload).ok()? else {
            return None;
        };
        let (state, promoted_at) = match resolved.decision() {
            pb::QuarantineDecision::Approve => {
                (MaterializationState::Promoted, Some(event.recorded_at))
            }
            pb::QuarantineDecision::Reject => (MaterializationState::Rejected, None),
            pb::QuarantineDecision::Unspecified => return None,
        };
        Some(VersionStatus {
            state: state.code(),
            version: i64::try_from(resolved.version).ok()? - 1,
            promoted_at,
            resolved_by: Some(resolved.resolved_by.unwrap_or_default().encode_to_vec()),
            resolved_event: Some(event.event_id),
        })
    }
}

/// What was decided about the quarantined versions of a run.
#[derive(Debug, Default)]
pub(super) struct Decisions(HashMap<AttemptId, VersionStatus>);

impl Decisions {
    pub(super) fn approve(&self, attempt: &AttemptId) -> bool {
        self.0
            .get(attempt)
            .is_some_and(|status| status.state == MaterializationState::Promoted.code())
    }
}

/// A decision falls long after its run has ended, and is found by the key of its event. Once that key is forgotten the row
/// is taken at its word: a look for the event would be one through all that happened since.
pub(super) async fn decisions(scheduler: &Scheduler, past: &FoldedRun) -> Result<Decisions, Error> {
    let withheld = past
        .made
        .iter()
        .filter(|made| made.promotion == Promotion::Quarantined);
    let mut withheld: Vec<AttemptId> = withheld.map(|made| made.attempt_id).collect();
    withheld.dedup();
    let mut decisions = Decisions::default();
    if withheld.is_empty() {
        return Ok(decisions);
    }
    let live = versions(scheduler, past).await?;
    for made_by in withheld {
        let key = IdempotencyKey::quarantine_resolved(&made_by, DECIDED_VERSION);
        let said = || {
            let own = live
                .iter()
                .find(|row| row.attempt_id.as_bytes() == made_by.as_bytes());
            own.map(|row| &row.status)
                .filter(|status| status.resolved_event.is_some())
                .cloned()
        };
        let status = match past::event_under(scheduler, past, &key).await? {
            Some(event) => VersionStatus::decided(&event),
            None => said(),
        };
        decisions.0.extend(status.map(|status| (made_by, status)));
    }
    Ok(decisions)
}

/// As columns have them.
fn place_of(task_ref: TaskRef) -> (i32, i32) {
    let int = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    (int(task_ref.ordinal), task_ref.map_index.map_or(-1, int))
}

pub(super) fn attempt(id: Uuid) -> String {
    AttemptId::from_bytes(id.into_bytes()).to_string()
}
