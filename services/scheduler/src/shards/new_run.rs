//! Runs that begin, and plans for those that waited for one.

use std::borrow::Cow;

use prost::Message as _;
use servo_model::Digest;
use servo_model::idempotency::IdempotencyKey;
use servo_model::request::RequestFingerprint;
use servo_model::states::RunState;
use servo_proto::v1::event::Body;
use servo_proto::{kind_of, v1};
use servo_store::NewEvent;
use uuid::Uuid;

use super::flush::{Draft, too_large};
use super::lane::Lane;
use super::rows::{Born, Conflict};
use super::shard::run_number;
use super::work::{Done, DoneAs, MadePlan, NewPlan, NewRun, NoPlan, RunPlan, RunView, Unplanned};
use crate::core::{Changes, Entry, Event, Run, RunHeader, Verdict, fold};
use crate::wire;

const PLAN_FAULT_BYTES_MAX: usize = 16 * 1024;

impl Lane {
    pub(super) fn fold_new_run(
        &mut self,
        shard: i16,
        new: &NewRun,
        at: i64,
        draft: &mut Draft,
    ) -> Done {
        let held = self
            .shards
            .get(&shard)
            .expect("only asks for held shards come here");
        let mark = *draft.marks.entry(shard).or_insert(held.watermark);
        if let Some(run) = held.runs.get(&new.run_id) {
            let (same, run) = (
                *new.fingerprint.digest().as_bytes() == run.header.fingerprint,
                RunView::of(run),
            );
            // Nothing of it changes, but one that has ended is forgotten again.
            draft.changes.entry(new.run_id).or_default();
            let verdict = if same {
                DoneAs::Exists
            } else {
                self.record_conflict(shard, new, at, draft)
            };
            return Done {
                verdict,
                event_id: new.event_id,
                run: Some(run),
            };
        }
        let done = |verdict, run| Done {
            verdict,
            event_id: new.event_id,
            run,
        };
        let number = run_number(shard, mark + 1);
        let header = wire::header(
            &new.tenant,
            &new.workspace,
            number,
            &new.asked,
            new.trace.as_ref(),
            at,
        );
        let mut run = match header {
            Ok(header) => Run::requested(header),
            Err(bad) => return done(DoneAs::Bad(bad.to_string()), None),
        };
        let plan = match new
            .plan
            .as_ref()
            .map(|plan| (plan, self.enter(&run.header.tenant, draft)))
        {
            Some((_, Entry::Refused(excess))) => return done(DoneAs::Refused(excess), None),
            Some((plan, Entry::Starts)) => Some(plan),
            Some((_, Entry::Waits)) | None => None,
        };
        let mut changes = Changes {
            run: true,
            ..Changes::default()
        };
        let asked = with_plan(new, plan.is_none());
        let request = request_event(new, &asked, shard);
        if let Some(too_large) = too_large(&request) {
            return done(too_large, None);
        }
        draft.born.insert(
            new.run_id,
            Born::new(new.event_id, &asked, request.payload.clone()),
        );
        draft.events.push(request);
        match plan {
            Some(plan) => {
                fold(
                    &mut run,
                    &Event::PlanCreated {
                        graph: plan.graph.clone(),
                    },
                    at,
                    &mut changes,
                );
                draft
                    .planned
                    .insert(new.run_id, plan.plan_fingerprint.clone());
                draft.events.push(plan_event(
                    &run.header,
                    plan,
                    Some(new.event_id),
                    new.trace.clone(),
                ));
                draft.marks.insert(shard, mark + 2);
            }
            None => {
                draft.unplanned.extend(unplanned(&run, &asked));
                draft.marks.insert(shard, mark + 1);
            }
        }
        draft.claims_only = false;
        let done = done(DoneAs::Core(Verdict::Folded), Some(RunView::of(&run)));
        draft.changes.insert(new.run_id, changes);
        if let Some(held) = self.shards.get_mut(&shard) {
            held.runs.insert(new.run_id, run);
        }
        done
    }

    /// The request is kept, the run stays what it is.
    fn record_conflict(&mut self, shard: i16, new: &NewRun, at: i64, draft: &mut Draft) -> DoneAs {
        let event = request_event(new, &new.asked, shard);
        if let Some(too_large) = too_large(&event) {
            return too_large;
        }
        draft.conflicts.push(Conflict {
            tenant: new.tenant.clone(),
            workspace: new.workspace.clone(),
            event_id: new.event_id,
            run_id: new.run_id,
            fingerprint: new.fingerprint,
            request: event.payload.clone(),
            at,
        });
        draft.events.push(event);
        *draft.marks.entry(shard).or_default() += 1;
        draft.claims_only = false;
        DoneAs::Conflict
    }

    /// Takes a place for the run if it waits for one.
    fn has_place(&self, shard: i16, plan: &RunPlan, draft: &mut Draft) -> bool {
        let run = self
            .shards
            .get(&shard)
            .and_then(|held| held.runs.get(&plan.run_id));
        let waits = run.filter(|run| run.state == RunState::Pending && plan.made.is_ok());
        waits.is_none_or(|run| self.may_start(&run.header.tenant, draft))
    }

    pub(super) fn fold_plan(
        &mut self,
        shard: i16,
        plan: &RunPlan,
        at: i64,
        draft: &mut Draft,
    ) -> Done {
        let event_id = plan.event_id();
        let done = |verdict, run| Done {
            verdict,
            event_id,
            run,
        };
        let has_place = self.has_place(shard, plan, draft);
        let held = self
            .shards
            .get_mut(&shard)
            .expect("only asks for held shards come here");
        let mark = *draft.marks.entry(shard).or_insert(held.watermark);
        let run = held
            .runs
            .get_mut(&plan.run_id)
            .filter(|run| run.header.tenant.as_str() == plan.tenant);
        let Some(run) = run else {
            return done(DoneAs::RunUnknown, None);
        };
        if !has_place {
            self.waiting.send_back(plan.run_id);
            self.room.wanted();
            return done(DoneAs::NoRoom, Some(RunView::of(run)));
        }
        let (happened, event) = match &plan.made {
            Ok(made) => (
                Event::PlanCreated {
                    graph: made.graph.clone(),
                },
                plan_event(&run.header, made, None, None),
            ),
            Err(failed) => (
                Event::PlanFailed {
                    message: cut(&failed.message),
                },
                failed_event(&run.header, failed),
            ),
        };
        let verdict = fold(
            run,
            &happened,
            at,
            draft.changes.entry(plan.run_id).or_default(),
        );
        if verdict == Verdict::Folded {
            draft.events.push(event);
            draft.marks.insert(shard, mark + 1);
            draft.claims_only = false;
            if let Ok(made) = &plan.made {
                draft
                    .planned
                    .insert(plan.run_id, made.plan_fingerprint.clone());
            }
        }
        done(DoneAs::Core(verdict), Some(RunView::of(run)))
    }
}

/// The plan that a waiting run was made stands in its request, so that it is followed when its turn comes.
fn with_plan(new: &NewRun, waits: bool) -> Cow<'_, v1::RunRequested> {
    match new.plan.as_ref().filter(|_| waits) {
        None => Cow::Borrowed(&new.asked),
        Some(plan) => Cow::Owned(v1::RunRequested {
            plan_id: Digest::from_bytes(plan.graph.plan_id).to_string(),
            plan_fingerprint: plan.plan_fingerprint.clone(),
            ..new.asked.clone()
        }),
    }
}

/// What the planner needs of a run that has no plan; nothing once it has one or has ended.
pub(super) fn unplanned(run: &Run, asked: &v1::RunRequested) -> Option<Unplanned> {
    if run.graph.is_some() || run.ended_at.is_some() {
        return None;
    }
    Some(Unplanned {
        run_id: run.header.run_id,
        tenant: run.header.tenant.to_string(),
        workspace: run.header.workspace.to_string(),
        spec: asked.spec.clone().unwrap_or_default(),
        plan: made_plan(asked),
    })
}

fn made_plan(asked: &v1::RunRequested) -> Option<MadePlan> {
    let plan_id = asked.plan_id.parse().ok()?;
    Some(MadePlan {
        plan_id,
        fingerprint: asked.plan_fingerprint.clone(),
    })
}

fn request_event(new: &NewRun, asked: &v1::RunRequested, shard: i16) -> NewEvent {
    NewEvent {
        event_id: new.event_id,
        kind: servo_model::EventType::RunRequested,
        version: 1,
        shard,
        tenant: new.tenant.clone(),
        workspace: new.workspace.clone(),
        idempotency_key: IdempotencyKey::run_requested(&new.key, &new.fingerprint).to_string(),
        correlation_id: Some(Uuid::from_bytes(*new.run_id.as_bytes())),
        causation_id: None,
        payload: payload(new.trace.clone(), Body::RunRequested(asked.clone())),
    }
}

fn plan_event(
    header: &RunHeader,
    plan: &NewPlan,
    causation_id: Option<Uuid>,
    trace: Option<v1::TraceContext>,
) -> NewEvent {
    let fingerprint = fingerprint(header);
    let created = wire::plan_created(&header.run_id, &fingerprint, plan);
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

fn failed_event(header: &RunHeader, failed: &NoPlan) -> NewEvent {
    let fingerprint = fingerprint(header);
    let body = Body::PlanFailed(v1::PlanFailed {
        run_id: header.run_id.to_string(),
        request_fingerprint: fingerprint.to_string(),
        reason: failed.reason.into(),
        message: cut(&failed.message),
    });
    let key = IdempotencyKey::plan_failed(&header.run_id, &fingerprint);
    event_of(header, failed.event_id, &key, None, None, body)
}

/// Every fault of a plan at once may be more than an event can hold.
fn cut(message: &str) -> String {
    message[..message.floor_char_boundary(PLAN_FAULT_BYTES_MAX)].to_owned()
}

fn fingerprint(header: &RunHeader) -> RequestFingerprint {
    RequestFingerprint::from_digest(Digest::from_bytes(header.fingerprint))
}

fn event_of(
    header: &RunHeader,
    event_id: Uuid,
    key: &IdempotencyKey,
    causation_id: Option<Uuid>,
    trace: Option<v1::TraceContext>,
    body: Body,
) -> NewEvent {
    NewEvent {
        event_id,
        kind: kind_of(&body),
        version: 1,
        shard: header.run_id.shard(),
        tenant: header.tenant.to_string(),
        workspace: header.workspace.to_string(),
        idempotency_key: key.to_string(),
        correlation_id: Some(Uuid::from_bytes(*header.run_id.as_bytes())),
        causation_id,
        payload: payload(trace, body),
    }
}

fn payload(trace: Option<v1::TraceContext>, body: Body) -> Vec<u8> {
    v1::Event {
        version: 1,
        trace,
        body: Some(body),
    }
    .encode_to_vec()
}
