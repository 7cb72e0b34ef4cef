//! Decisions about quarantined versions. A version belongs to the run that made it, which mostly ended long ago: what is
//! decided about is looked up in its row, not in the run.

use std::collections::HashMap;

use prost::Message as _;
use servo_model::AttemptId;
use servo_model::states::MaterializationState;
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::{StoreError, query};
use uuid::Uuid;

use super::command::{Applied, Command, CommandOutcome, RunEvent, Submission};
use super::flush::PendingFlush;
use super::lane::Lane;
use crate::core::{Refusal, Resolvable, Run, Time, Verdict, resolve};

/// A decision to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolution {
    pub(super) attempt_id: AttemptId,
    pub(super) state: MaterializationState,
    /// How often the version changed then.
    pub(super) changes: i64,
    pub(super) at: Time,
    /// `servo.v1.Actor`, encoded.
    pub(super) resolved_by: Vec<u8>,
    pub(super) event_id: Uuid,
    /// The code it was made with, for those who read it from now on.
    pub(super) code_version: String,
}

impl Resolution {
    /// `None` for an event that says nothing usable.
    pub(super) fn of(
        resolved: &pb::QuarantineResolved,
        run: &Run,
        event_id: Uuid,
        at: Time,
    ) -> Option<Resolution> {
        let state = match resolved.decision() {
            pb::QuarantineDecision::Approve => MaterializationState::Promoted,
            pb::QuarantineDecision::Reject => MaterializationState::Rejected,
            pb::QuarantineDecision::Unspecified => return None,
        };
        Some(Resolution {
            attempt_id: resolved.materialization_id.parse().ok()?,
            state,
            changes: i64::try_from(resolved.version).ok()? - 1,
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
}

/// As the plan had it.
fn code_version(run: &Run, resolved: &pb::QuarantineResolved) -> String {
    let assets = run.plan.iter().flat_map(|plan| &plan.assets);
    let mut makers = assets.filter(|settings| {
        let mut made = std::iter::once(&settings.asset_key).chain(&settings.also_makes);
        made.any(|asset| **asset == *resolved.asset_key)
    });
    makers
        .next()
        .map_or_else(String::new, |settings| settings.code_version.to_string())
}

impl Lane {
    /// What these works decide about, as it stands. One statement; none when nothing is decided.
    pub(super) async fn resolvable(
        &self,
        submissions: &[Submission],
    ) -> Result<HashMap<AttemptId, Resolvable>, StoreError> {
        let commands = submissions
            .iter()
            .flat_map(|submission| &submission.commands);
        let wanted: Vec<Uuid> = commands.filter_map(resolved_by).collect();
        if wanted.is_empty() {
            return Ok(HashMap::new());
        }
        let select = query(include_str!("../store/resolvable.sql")).bind(wanted);
        let rows: Vec<(Uuid, i16, i64)> = self.loops.all(select).await?;
        let known = |(attempt, state, changes): (Uuid, i16, i64)| {
            let state = MaterializationState::from_code(state)?;
            let version = u64::try_from(changes).ok()? + 1;
            Some((
                AttemptId::from_bytes(attempt.into_bytes()),
                Resolvable { state, version },
            ))
        };
        Ok(rows.into_iter().filter_map(known).collect())
    }

    pub(super) fn fold_resolution(
        &mut self,
        shard: i16,
        event: &RunEvent,
        resolved: &pb::QuarantineResolved,
        at: Time,
        pending: &mut PendingFlush,
    ) -> Applied {
        let applied = |outcome: CommandOutcome| Applied {
            outcome,
            event_id: event.event_id,
            run: None,
        };
        let held = self
            .shards
            .get_mut(&shard)
            .expect("only asks for held shards come here");
        let mark = *pending.marks.entry(shard).or_insert(held.watermark);
        let run = held
            .runs
            .get(&event.run_id)
            .filter(|run| run.header.tenant.as_str() == event.tenant);
        let Some(run) = run else {
            return applied(CommandOutcome::RunUnknown);
        };
        // Nothing of it changes, but one that has ended is forgotten again.
        pending.changes.entry(event.run_id).or_default();
        let Some(resolution) = Resolution::of(resolved, run, event.event_id, at) else {
            return applied(CommandOutcome::Invalid(
                "QuarantineResolved: it names no version or no decision".to_owned(),
            ));
        };
        let Some(known) = pending.resolvable.get_mut(&resolution.attempt_id) else {
            return applied(Refusal::AttemptUnknown.into());
        };
        let approve = resolution.state == MaterializationState::Promoted;
        let verdict = resolve(known, approve, resolved.version);
        if verdict == Verdict::Folded {
            pending.claims_only = false;
            pending.events.push(super::flush::new_event(
                event,
                &event.body,
                run.header.workspace.as_str(),
                shard,
            ));
            pending.marks.insert(shard, mark + 1);
            pending.resolutions.push(resolution);
        }
        applied(CommandOutcome::Fold(verdict))
    }
}

fn resolved_by(command: &Command) -> Option<Uuid> {
    let Command::Event(event) = command else {
        return None;
    };
    let Body::QuarantineResolved(resolved) = &event.body else {
        return None;
    };
    let attempt: AttemptId = resolved.materialization_id.parse().ok()?;
    Some(Uuid::from_bytes(*attempt.as_bytes()))
}
