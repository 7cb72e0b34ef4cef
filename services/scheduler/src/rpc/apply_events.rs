//! ApplyEvents: commands that other instances forwarded to the holder of their shard.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use servo_mesh::{Error, Reason};
use servo_model::{Digest, RunId, RunKey, ShardId, TenantId};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use ulid::Ulid;
use uuid::Uuid;

use super::Scheduler;
use super::support::{errors, verdicts};
use crate::forward::EVENTS_PER_CALL_MAX;
use crate::shards::{Applied, Command, NewPlan, NewRun, RunEvent};
use crate::wire;

pub(super) async fn apply_events(
    scheduler: &Scheduler,
    request: mesh_pb::ApplyEventsRequest,
) -> Result<mesh_pb::ApplyEventsResponse, Error> {
    let count = request.events.len();
    if count > EVENTS_PER_CALL_MAX {
        return Err(Error::bad_field(
            "events",
            format!("has {count} entries; {EVENTS_PER_CALL_MAX} are allowed"),
        ));
    }
    let mut commands: BTreeMap<ShardId, Vec<(usize, Command)>> = BTreeMap::new();
    // The events belong to several callers, so a faulty one is refused alone.
    let mut events: Vec<(usize, mesh_pb::AppliedEvent)> = Vec::new();
    let mut records = request.events.into_iter().enumerate().peekable();
    while let Some((index, record)) = records.next() {
        // The plan follows its request and is appended with it.
        let plan = records
            .next_if(|(_, next)| is_plan(next))
            .map(|(_, plan)| plan);
        match command(scheduler, record, plan).await {
            Ok(command) => commands
                .entry(command.run_id().shard())
                .or_default()
                .push((index, command)),
            Err(fault) => events.push((index, refused(&fault.at(index)))),
        }
    }
    let judged = join_all(
        commands
            .into_iter()
            .map(|(shard, commands)| judge(scheduler, shard, commands)),
    )
    .await;
    events.extend(judged.into_iter().flatten());
    events.sort_unstable_by_key(|(index, _)| *index);
    Ok(mesh_pb::ApplyEventsResponse {
        events: events.into_iter().map(|(_, applied)| applied).collect(),
    })
}

/// Submits the commands of one shard, each with its index in the request.
async fn judge(
    scheduler: &Scheduler,
    shard: ShardId,
    commands: Vec<(usize, Command)>,
) -> Vec<(usize, mesh_pb::AppliedEvent)> {
    let (indexes, commands): (Vec<usize>, Vec<Command>) = commands.into_iter().unzip();
    let applied: Vec<mesh_pb::AppliedEvent> = match scheduler.shards.submit(shard, commands).await {
        Ok(applied) => applied
            .iter()
            .map(|applied| with_run(applied, verdicts::applied_event(applied)))
            .collect(),
        Err(why) => vec![refused(&verdicts::submit_error(&why)); indexes.len()],
    };
    indexes.into_iter().zip(applied).collect()
}

/// Adds the run, so that the caller need not read it.
fn with_run(applied: &Applied, event: mesh_pb::AppliedEvent) -> mesh_pb::AppliedEvent {
    mesh_pb::AppliedEvent {
        run: applied.run.as_ref().map(wire::run_standing),
        ..event
    }
}

fn refused(error: &Error) -> mesh_pb::AppliedEvent {
    verdicts::refused_event(error.reason(), &error.to_string())
}

fn is_plan(record: &pb::EventRecord) -> bool {
    let body = record.event.as_ref().and_then(|event| event.body.as_ref());
    matches!(body, Some(Body::PlanCreated(_)))
}

/// Why an event is refused.
enum Fault {
    Field(&'static str, String),
    Other(Error),
}

impl Fault {
    fn new(field: &'static str, fault: impl ToString) -> Fault {
        Fault::Field(field, fault.to_string())
    }

    fn at(self, index: usize) -> Error {
        match self {
            Fault::Field(field, fault) => {
                Error::bad_field(format!("events[{index}].{field}"), fault)
            }
            Fault::Other(error) => error,
        }
    }
}

async fn command(
    scheduler: &Scheduler,
    record: pb::EventRecord,
    plan: Option<pb::EventRecord>,
) -> Result<Command, Fault> {
    let event_id = event_id(&record)?;
    let tenant = tenant(&record)?;
    let run_id: RunId = record
        .correlation_id
        .parse()
        .map_err(|error| Fault::new("correlation_id", error))?;
    let event = record
        .event
        .ok_or_else(|| Fault::new("event", "is missing"))?;
    match event
        .body
        .ok_or_else(|| Fault::new("event.body", "is missing"))?
    {
        Body::RunRequested(requested) => {
            let key: RunKey = requested
                .run_key
                .parse()
                .map_err(|error| Fault::new("event.run_key", error))?;
            let fingerprint =
                wire::fingerprint(&requested).map_err(|error| Fault::new("event", error))?;
            let plan = match plan {
                Some(plan) => Some(new_plan(scheduler, plan).await?),
                None => None,
            };
            let (workspace, trace) = (record.workspace, event.trace);
            let new = NewRun {
                tenant,
                workspace,
                run_id,
                event_id,
                key,
                fingerprint,
                requested,
                plan,
                trace,
            };
            Ok(Command::Run(Arc::new(new)))
        }
        body @ (Body::RunCancelRequested(_)
        | Body::RunPaused(_)
        | Body::RunResumed(_)
        | Body::TaskForceCancelled(_)
        | Body::QuarantineResolved(_)) => Ok(Command::Event(Arc::new(RunEvent {
            tenant,
            run_id,
            event_id,
            idempotency_key: record.idempotency_key,
            body,
            trace: event.trace,
        }))),
        _ => Err(Fault::new(
            "event.body",
            "is of a type that is not forwarded between schedulers",
        )),
    }
}

async fn new_plan(scheduler: &Scheduler, record: pb::EventRecord) -> Result<NewPlan, Fault> {
    let event_id = event_id(&record)?;
    let tenant = tenant(&record)?;
    let Some(Body::PlanCreated(created)) = record.event.and_then(|event| event.body) else {
        return Err(Fault::new("event.body", "is not a plan"));
    };
    let plan_id: Digest = created
        .plan_id
        .parse()
        .map_err(|error| Fault::new("event.plan_id", error))?;
    let loops = scheduler.reads.store.loops();
    let plan = scheduler
        .reads
        .plans
        .find(loops, &tenant, &record.workspace, *plan_id.as_bytes())
        .await;
    let plan = plan
        .map_err(|error| Fault::Other(errors::store(error)))?
        .ok_or_else(|| {
            let message = format!("plan {plan_id} is not stored");
            Fault::Other(Error::new(Reason::PlanNotFound, message))
        })?;
    Ok(NewPlan {
        event_id,
        plan_fingerprint: created.plan_fingerprint,
        plan,
    })
}

fn tenant(record: &pb::EventRecord) -> Result<TenantId, Fault> {
    record
        .tenant
        .parse()
        .map_err(|error| Fault::new("tenant", error))
}

fn event_id(record: &pb::EventRecord) -> Result<Uuid, Fault> {
    let id: Ulid = record
        .event_id
        .parse()
        .map_err(|_| Fault::new("event_id", "is not a ULID"))?;
    Ok(Uuid::from_u128(id.into()))
}
