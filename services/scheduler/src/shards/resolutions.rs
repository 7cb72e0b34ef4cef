//! Decisions about quarantined materializations. The run that wrote a materialization has usually
//! ended long ago, so the decision is checked against the materialization's row, not against the
//! run.

use std::collections::HashMap;

use prost::Message as _;
use servo_model::states::MaterializationState;
use servo_model::{AttemptId, ShardId, Timestamp};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::StoreError;
use uuid::Uuid;

use super::command::{Applied, Command, CommandResult, RunEvent, Submission};
use super::flush::PendingFlush;
use super::lane::Lane;
use crate::core::{Refusal, Resolvable, Run, Verdict, resolve};
use crate::store::flush::Resolution;
use crate::store::materializations;

/// `None` for an event without a materialization id or a decision.
pub(super) fn resolution(
    resolved: &pb::QuarantineResolved,
    run: &Run,
    event_id: Uuid,
    at: Timestamp,
) -> Option<Resolution> {
    let state = match resolved.decision() {
        pb::QuarantineDecision::Approve => MaterializationState::Promoted,
        pb::QuarantineDecision::Reject => MaterializationState::Rejected,
        pb::QuarantineDecision::Unspecified => return None,
    };
    Some(Resolution {
        attempt_id: resolved.materialization_id.parse().ok()?,
        state,
        version: i64::try_from(resolved.version).ok()? - 1,
        at,
        resolved_by: resolved
            .resolved_by
            .clone()
            .unwrap_or_default()
            .encode_to_vec(),
        event_id,
        code_version: code_version(run, resolved),
    })
}

/// The code version that the plan gives the asset.
fn code_version(run: &Run, resolved: &pb::QuarantineResolved) -> String {
    let assets = run.plan.iter().flat_map(|plan| &plan.assets);
    let mut makers =
        assets.filter(|settings| settings.makes().any(|asset| **asset == *resolved.asset_key));
    makers
        .next()
        .map_or_else(String::new, |settings| settings.code_version.to_string())
}

impl Lane {
    /// Reads the materializations that the submissions resolve. Runs one statement, or none when
    /// nothing is resolved.
    pub(super) async fn resolvable(
        &self,
        submissions: &[Submission],
    ) -> Result<HashMap<AttemptId, Resolvable>, StoreError> {
        let commands = submissions
            .iter()
            .flat_map(|submission| &submission.commands);
        let attempts: Vec<Uuid> = commands.filter_map(resolved_attempt).collect();
        if attempts.is_empty() {
            return Ok(HashMap::new());
        }
        materializations::find_resolvable(&self.loops, attempts).await
    }

    pub(super) fn fold_resolution(
        &mut self,
        shard: ShardId,
        event: &RunEvent,
        resolved: &pb::QuarantineResolved,
        at: Timestamp,
        pending: &mut PendingFlush,
    ) -> Applied {
        let applied = |result: CommandResult| Applied {
            result,
            event_id: event.event_id,
            run: None,
        };
        let held = self
            .shards
            .get_mut(&shard)
            .expect("commands are folded only for held shards");
        let mark = *pending.watermarks.entry(shard).or_insert(held.watermark);
        let run = held
            .runs
            .get(&event.run_id)
            .filter(|run| run.header.tenant == event.tenant);
        let Some(run) = run else {
            return applied(CommandResult::RunUnknown);
        };
        let Some(resolution) = resolution(resolved, run, event.event_id, at) else {
            return applied(CommandResult::Invalid(
                "QuarantineResolved: the materialization id or the decision is missing".to_owned(),
            ));
        };
        let Some(stored) = pending.resolvable.get_mut(&resolution.attempt_id) else {
            return applied(Refusal::AttemptUnknown.into());
        };
        let approve = resolution.state == MaterializationState::Promoted;
        let verdict = resolve(stored, approve, resolved.version);
        if verdict == Verdict::Folded {
            pending.claims_only = false;
            pending.events.push(super::stored_event::new_event(
                event,
                &event.body,
                run.header.workspace.as_str(),
                shard,
            ));
            pending.watermarks.insert(shard, mark.next());
            pending.resolutions.push(resolution);
        }
        applied(CommandResult::Fold(verdict))
    }
}

fn resolved_attempt(command: &Command) -> Option<Uuid> {
    let Command::Event(event) = command else {
        return None;
    };
    let Body::QuarantineResolved(resolved) = &event.body else {
        return None;
    };
    let attempt: AttemptId = resolved.materialization_id.parse().ok()?;
    Some(Uuid::from_bytes(*attempt.as_bytes()))
}
