//! New runs, and plans for runs that were requested without one.

use std::borrow::Cow;

use servo_model::idempotency::IdempotencyKey;
use servo_model::request::RequestFingerprint;
use servo_model::states::RunState;
use servo_model::{Digest, ShardId, Timestamp};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::NewEvent;
use uuid::Uuid;

use super::command::{
    Applied, CommandResult, NewPlan, NewRun, PlanFailure, PlanResult, RequestedPlan, UnplannedRun,
};
use super::flush::PendingFlush;
use super::lane::Lane;
use super::shard::run_number;
use super::stored_event::{event_of, payload, too_large};
use crate::core::{Changes, Event, Run, RunHeader, RunView, StartDecision, Verdict, fold};
use crate::store::flush::{Conflict, NewRunRow};
use crate::wire;

const PLAN_FAULT_BYTES_MAX: usize = 16 * 1024;

impl Lane {
    pub(super) fn fold_new_run(
        &mut self,
        shard: ShardId,
        new: &NewRun,
        at: Timestamp,
        pending: &mut PendingFlush,
    ) -> Applied {
        let held = self
            .shards
            .get(&shard)
            .expect("commands are folded only for held shards");
        let mark = *pending.watermarks.entry(shard).or_insert(held.watermark);
        if let Some(run) = held.runs.get(&new.run_id) {
            let (same, run) = (
                *new.fingerprint.digest().as_bytes() == run.header.fingerprint,
                RunView::of(run),
            );
            let result = if same {
                CommandResult::Exists
            } else {
                self.record_conflict(shard, new, at, pending)
            };
            return Applied {
                result,
                event_id: new.event_id,
                run: Some(run),
            };
        }
        let applied = |result, run| Applied {
            result,
            event_id: new.event_id,
            run,
        };
        let number = run_number(shard, mark.next());
        let header = wire::header(
            &new.tenant,
            &new.workspace,
            number,
            &new.requested,
            new.trace.as_ref(),
            at,
        );
        let mut run = match header {
            Ok(header) => Run::requested(header),
            Err(bad) => return applied(CommandResult::Invalid(bad.to_string()), None),
        };
        let in_use = pending.in_use.get(&new.tenant).copied();
        let plan = match new
            .plan
            .as_ref()
            .map(|plan| (plan, self.decide_start(&run.header.tenant, pending)))
        {
            Some((_, StartDecision::Refuse(excess))) => {
                return applied(CommandResult::OverLimit(excess), None);
            }
            Some((plan, StartDecision::Start)) => Some(plan),
            Some((_, StartDecision::Wait)) | None => None,
        };
        let mut changes = Changes {
            run: true,
            ..Changes::default()
        };
        let requested = with_plan(new, plan.is_none());
        let request = request_event(new, &requested, shard);
        if let Some(too_large) = too_large(&request) {
            // The decision counted the run, which does not exist.
            pending
                .in_use
                .extend(in_use.map(|in_use| (new.tenant.clone(), in_use)));
            return applied(too_large, None);
        }
        pending.new_runs.insert(
            new.run_id,
            new_run_row(new.event_id, &requested, request.payload.clone()),
        );
        pending.events.push(request);
        match plan {
            Some(plan) => {
                fold(
                    &mut run,
                    &Event::PlanCreated {
                        plan: plan.plan.clone(),
                    },
                    at,
                    &mut changes,
                );
                pending
                    .plan_fingerprints
                    .insert(new.run_id, plan.plan_fingerprint.clone());
                pending.events.push(plan_event(
                    &run.header,
                    plan,
                    Some(new.event_id),
                    new.trace.clone(),
                ));
                pending.watermarks.insert(shard, mark.plus(2));
            }
            None => {
                pending.unplanned.extend(unplanned_run(&run, &requested));
                pending.watermarks.insert(shard, mark.next());
            }
        }
        pending.claims_only = false;
        let applied = applied(
            CommandResult::Fold(Verdict::Folded),
            Some(RunView::of(&run)),
        );
        pending.changes.insert(new.run_id, changes);
        if let Some(held) = self.shards.get_mut(&shard) {
            held.runs.insert(new.run_id, run);
        }
        applied
    }

    /// Records the request; the run does not change.
    fn record_conflict(
        &mut self,
        shard: ShardId,
        new: &NewRun,
        at: Timestamp,
        pending: &mut PendingFlush,
    ) -> CommandResult {
        let event = request_event(new, &new.requested, shard);
        if let Some(too_large) = too_large(&event) {
            return too_large;
        }
        pending.conflicts.push(Conflict {
            tenant: new.tenant.clone(),
            workspace: new.workspace.clone(),
            event_id: new.event_id,
            run_id: new.run_id,
            fingerprint: new.fingerprint,
            request: event.payload.clone(),
            at,
        });
        pending.events.push(event);
        let mark = pending.watermarks.entry(shard).or_default();
        *mark = mark.next();
        pending.claims_only = false;
        CommandResult::Conflict
    }

    /// Takes capacity for a run that waits for it; returns false when there is none.
    fn take_capacity_for(
        &self,
        shard: ShardId,
        planned: &PlanResult,
        pending: &mut PendingFlush,
    ) -> bool {
        let run = self
            .shards
            .get(&shard)
            .and_then(|held| held.runs.get(&planned.run_id));
        let waits = run.filter(|run| run.state == RunState::Pending && planned.result.is_ok());
        waits.is_none_or(|run| self.take_run_capacity(&run.header.tenant, pending))
    }

    pub(super) fn fold_plan(
        &mut self,
        shard: ShardId,
        planned: &PlanResult,
        at: Timestamp,
        pending: &mut PendingFlush,
    ) -> Applied {
        let event_id = planned.event_id();
        let applied = |result, run| Applied {
            result,
            event_id,
            run,
        };
        let has_capacity = self.take_capacity_for(shard, planned, pending);
        let held = self
            .shards
            .get_mut(&shard)
            .expect("commands are folded only for held shards");
        let mark = *pending.watermarks.entry(shard).or_insert(held.watermark);
        let run = held
            .runs
            .get_mut(&planned.run_id)
            .filter(|run| run.header.tenant == planned.tenant);
        let Some(run) = run else {
            return applied(CommandResult::RunUnknown, None);
        };
        if !has_capacity {
            self.unplanned_runs.return_to_waiting(planned.run_id);
            self.run_capacity.awaited();
            return applied(CommandResult::NoCapacity, Some(RunView::of(run)));
        }
        let (happened, event) = match &planned.result {
            Ok(new) => (
                Event::PlanCreated {
                    plan: new.plan.clone(),
                },
                plan_event(&run.header, new, None, None),
            ),
            Err(failed) => (
                Event::PlanFailed {
                    message: truncate(&failed.message),
                },
                failed_event(&run.header, failed),
            ),
        };
        let verdict = fold(
            run,
            &happened,
            at,
            pending.changes.entry(planned.run_id).or_default(),
        );
        if verdict == Verdict::Folded {
            pending.events.push(event);
            pending.watermarks.insert(shard, mark.next());
            pending.claims_only = false;
            if let Ok(new) = &planned.result {
                pending
                    .plan_fingerprints
                    .insert(planned.run_id, new.plan_fingerprint.clone());
            }
        }
        applied(CommandResult::Fold(verdict), Some(RunView::of(run)))
    }
}

pub(super) fn new_run_row(
    event_id: Uuid,
    requested: &pb::RunRequested,
    request: Vec<u8>,
) -> NewRunRow {
    NewRunRow {
        event_id,
        run_key: requested.run_key.clone(),
        generation: requested.generation,
        request,
        request_id: wire::stored_request_id(requested),
    }
}

/// A run that waits for capacity records its plan in RunRequested, so that it later runs the plan
/// that the caller was shown.
fn with_plan(new: &NewRun, waits: bool) -> Cow<'_, pb::RunRequested> {
    match new.plan.as_ref().filter(|_| waits) {
        None => Cow::Borrowed(&new.requested),
        Some(plan) => Cow::Owned(pb::RunRequested {
            plan_id: Digest::from_bytes(plan.plan.plan_id).to_string(),
            plan_fingerprint: plan.plan_fingerprint.clone(),
            ..new.requested.clone()
        }),
    }
}

/// The fields that the planner needs; `None` for a run that has a plan or has ended.
pub(super) fn unplanned_run(run: &Run, requested: &pb::RunRequested) -> Option<UnplannedRun> {
    if run.plan.is_some() || run.ended_at.is_some() {
        return None;
    }
    Some(UnplannedRun {
        run_id: run.header.run_id,
        tenant: run.header.tenant.clone(),
        workspace: run.header.workspace.to_string(),
        spec: requested.spec.clone().unwrap_or_default(),
        requested_plan: requested_plan(requested),
    })
}

fn requested_plan(requested: &pb::RunRequested) -> Option<RequestedPlan> {
    let plan_id = requested.plan_id.parse().ok()?;
    Some(RequestedPlan {
        plan_id,
        fingerprint: requested.plan_fingerprint.clone(),
    })
}

fn request_event(new: &NewRun, requested: &pb::RunRequested, shard: ShardId) -> NewEvent {
    NewEvent {
        event_id: new.event_id,
        kind: servo_model::EventType::RunRequested,
        version: 1,
        shard,
        tenant: new.tenant.clone().into(),
        workspace: new.workspace.clone(),
        idempotency_key: IdempotencyKey::run_requested(&new.key, &new.fingerprint).to_string(),
        correlation_id: Some(Uuid::from_bytes(*new.run_id.as_bytes())),
        causation_id: None,
        payload: payload(new.trace.clone(), Body::RunRequested(requested.clone())),
    }
}

fn plan_event(
    header: &RunHeader,
    plan: &NewPlan,
    causation_id: Option<Uuid>,
    trace: Option<pb::TraceContext>,
) -> NewEvent {
    let fingerprint = fingerprint(header);
    let created = wire::plan_created(
        &header.run_id,
        &fingerprint,
        &plan.plan,
        &plan.plan_fingerprint,
    );
    let key = IdempotencyKey::plan_created(&header.run_id, &fingerprint);
    event_of(
        header,
        plan.event_id,
        &key,
        causation_id,
        trace,
        Body::PlanCreated(created),
    )
}

fn failed_event(header: &RunHeader, failed: &PlanFailure) -> NewEvent {
    let fingerprint = fingerprint(header);
    let body = Body::PlanFailed(pb::PlanFailed {
        run_id: header.run_id.to_string(),
        request_fingerprint: fingerprint.to_string(),
        reason: failed.reason.into(),
        message: truncate(&failed.message),
    });
    let key = IdempotencyKey::plan_failed(&header.run_id, &fingerprint);
    event_of(header, failed.event_id, &key, None, None, body)
}

/// Shortens a message, because the list of all faults of a plan may exceed the size of an event.
fn truncate(message: &str) -> String {
    message[..message.floor_char_boundary(PLAN_FAULT_BYTES_MAX)].to_owned()
}

fn fingerprint(header: &RunHeader) -> RequestFingerprint {
    RequestFingerprint::from_digest(Digest::from_bytes(header.fingerprint))
}
