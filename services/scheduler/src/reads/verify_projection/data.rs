//! Materializations and check results.

use std::collections::HashMap;

use prost::Message as _;
use serde_json::{Value, json};
use servo_mesh::Error;
use servo_model::idempotency::IdempotencyKey;
use servo_model::states::MaterializationState;
use servo_model::{AttemptId, Digest, TaskRef, Timestamp};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::Event;
use uuid::Uuid;

use super::Comparison;
use super::folded_run::{self, FoldedRun};
use crate::core::{Materialized, Promotion, RecordedCheck};
use crate::reads::{Reads, errors};
use crate::store::checks::{self, CheckRow};
use crate::store::materializations::{self, MaterializationRow, VersionStatus};
use crate::wire;

/// A quarantine is resolved once, and the materialization then has this version.
const DECIDED_VERSION: u64 = 2;

pub(super) async fn check_results(
    reads: &Reads,
    folded_run: &FoldedRun,
) -> Result<Comparison, Error> {
    let rows = checks::list_of_run(reads.store.loops(), folded_run.run.header.number)
        .await
        .map_err(errors::store)?;
    let folded = folded_run
        .checks
        .iter()
        .filter_map(|checked| folded_check(folded_run, checked));
    Ok(Comparison {
        live: rows.iter().map(keyed_check).collect(),
        folded: folded.map(|row| keyed_check(&row)).collect(),
    })
}

fn folded_check(folded_run: &FoldedRun, checked: &RecordedCheck) -> Option<CheckRow> {
    let plan = folded_run.run.plan.as_ref()?;
    let (ordinal, item) = columns_of(checked.task_ref);
    Some(CheckRow {
        attempt_id: Uuid::from_bytes(*checked.attempt_id.as_bytes()),
        index: checked.index,
        tenant: folded_run.run.header.tenant.clone(),
        workspace: folded_run.run.header.workspace.to_string(),
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
        recorded_at: checked.at,
        result: checked.found.result.clone(),
    })
}

fn keyed_check(row: &CheckRow) -> (String, Value) {
    let key = json!({ "attempt_id": attempt(row.attempt_id), "place": row.index });
    let line = json!({
        "tenant": row.tenant,
        "workspace": row.workspace,
        "asset_key": row.asset_key,
        "partition_key": row.partition_key,
        "name": row.name,
        "passed": row.passed,
        "severity": row.severity,
        "ordinal": row.ordinal,
        "item": row.item,
        "recorded_at": row.recorded_at.unix_us(),
        "result_sha256": Digest::of(&row.result).to_string(),
    });
    (key.to_string(), line)
}

pub(super) async fn materializations(
    reads: &Reads,
    folded_run: &FoldedRun,
) -> Result<Comparison, Error> {
    let decisions = decisions(reads, folded_run).await?;
    let live = versions(reads, folded_run).await?;
    let folded = folded_run
        .made
        .iter()
        .map(|made| keyed_version(&folded_version(folded_run, made, &decisions)))
        .collect();
    Ok(Comparison {
        live: live.iter().map(keyed_version).collect(),
        folded,
    })
}

/// Reads the materializations of the run's attempts. No index leads from a run to its
/// materializations, but only the last attempt of a task can have written one.
async fn versions(reads: &Reads, folded_run: &FoldedRun) -> Result<Vec<MaterializationRow>, Error> {
    let task_rows = folded_run
        .run
        .task_rows()
        .filter_map(|(_, task_row)| task_row.attempt_id);
    let attempts = task_rows.chain(folded_run.made.iter().map(|made| made.attempt_id));
    let attempts: Vec<Uuid> = attempts
        .map(|id| Uuid::from_bytes(*id.as_bytes()))
        .collect();
    materializations::list_of_attempts(reads.store.loops(), attempts)
        .await
        .map_err(errors::store)
}

fn folded_version(
    folded_run: &FoldedRun,
    made: &Materialized,
    decisions: &Decisions,
) -> MaterializationRow {
    let (ordinal, item) = columns_of(made.task_ref);
    let decided = decisions
        .0
        .get(&made.attempt_id)
        .filter(|_| made.promotion == Promotion::Quarantined);
    MaterializationRow {
        attempt_id: Uuid::from_bytes(*made.attempt_id.as_bytes()),
        asset_key: made.asset_key.clone(),
        partition_key: made.partition_key.clone(),
        tenant: folded_run.run.header.tenant.clone(),
        workspace: folded_run.run.header.workspace.to_string(),
        run_number: folded_run.run.header.number,
        ordinal,
        item,
        recorded_at: made.at,
        output: made.output.clone(),
        status: decided.cloned().unwrap_or_else(|| initial_status(made)),
    }
}

fn keyed_version(row: &MaterializationRow) -> (String, Value) {
    let key = json!({ "attempt_id": attempt(row.attempt_id), "asset_key": row.asset_key });
    let status = &row.status;
    let state = MaterializationState::from_code(status.state).map(|state| state.to_string());
    let line = json!({
        "partition_key": row.partition_key,
        "tenant": row.tenant,
        "workspace": row.workspace,
        "run_number": row.run_number,
        "ordinal": row.ordinal,
        "item": row.item,
        "recorded_at": row.recorded_at.unix_us(),
        "output_sha256": Digest::of(&row.output).to_string(),
        "state": state,
        "version": status.version,
        "promoted_at": status.promoted_at.map(Timestamp::unix_us),
        "resolved_by_sha256": status.resolved_by.as_ref().map(|by| Digest::of(by).to_string()),
        "resolved_event": status.resolved_event.map(wire::ulid),
    });
    (key.to_string(), line)
}

fn initial_status(made: &Materialized) -> VersionStatus {
    let state = made.promotion.state();
    let is_promoted = state == MaterializationState::Promoted;
    VersionStatus {
        state: state.code(),
        version: 0,
        promoted_at: is_promoted.then_some(made.at),
        resolved_by: None,
        resolved_event: None,
    }
}

/// `None` for an event without a decision.
fn decided_status(event: &Event) -> Option<VersionStatus> {
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

/// The decisions about the quarantined materializations of a run.
#[derive(Debug, Default)]
pub(super) struct Decisions(HashMap<AttemptId, VersionStatus>);

impl Decisions {
    pub(super) fn approve(&self, attempt: &AttemptId) -> bool {
        self.0
            .get(attempt)
            .is_some_and(|status| status.state == MaterializationState::Promoted.code())
    }
}

/// Reads the decisions. A decision is made long after the run has ended, so its event is found by
/// its idempotency key. Once the ledger has dropped the key, the row is trusted, because searching
/// for the event would read everything that was recorded since.
pub(super) async fn decisions(reads: &Reads, folded_run: &FoldedRun) -> Result<Decisions, Error> {
    let withheld = folded_run
        .made
        .iter()
        .filter(|made| made.promotion == Promotion::Quarantined);
    let mut withheld: Vec<AttemptId> = withheld.map(|made| made.attempt_id).collect();
    withheld.dedup();
    let mut decisions = Decisions::default();
    if withheld.is_empty() {
        return Ok(decisions);
    }
    let live = versions(reads, folded_run).await?;
    for written_by in withheld {
        let key = IdempotencyKey::quarantine_resolved(&written_by, DECIDED_VERSION);
        let stored = || {
            let own = live
                .iter()
                .find(|row| row.attempt_id.as_bytes() == written_by.as_bytes());
            own.map(|row| &row.status)
                .filter(|status| status.resolved_event.is_some())
                .cloned()
        };
        let status = match folded_run::find_event(reads, folded_run, &key).await? {
            Some(event) => decided_status(&event),
            None => stored(),
        };
        decisions
            .0
            .extend(status.map(|status| (written_by, status)));
    }
    Ok(decisions)
}

/// The columns of a task ref.
fn columns_of(task_ref: TaskRef) -> (i32, i32) {
    let int = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    (int(task_ref.ordinal), task_ref.map_index.map_or(-1, int))
}

pub(super) fn attempt(id: Uuid) -> String {
    AttemptId::from_bytes(id.into_bytes()).to_string()
}
