//! ApplyEvents: what other instances were asked for, judged by the holder of the shard.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use servo_mesh::{Error, Reason};
use servo_model::{Digest, RunId, RunKey};
use servo_proto::v1;
use servo_proto::v1::event::Body;
use ulid::Ulid;
use uuid::Uuid;

use super::{Scheduler, answer};
use crate::passing::EVENTS_PER_CALL_MAX;
use crate::route;
use crate::shards::{Ask, Done, NewPlan, NewRun, RunEvent};
use crate::wire;

pub(super) async fn apply_events(
    scheduler: &Scheduler,
    asked: v1::ApplyEventsRequest,
) -> Result<v1::ApplyEventsResponse, Error> {
    let count = asked.events.len();
    if count > EVENTS_PER_CALL_MAX {
        return Err(Error::bad_field(
            "events",
            format!("has {count} entries; {EVENTS_PER_CALL_MAX} are allowed"),
        ));
    }
    let mut asks: BTreeMap<i16, Vec<(usize, Ask)>> = BTreeMap::new();
    // They are of many callers: what is wrong with one is its own affair.
    let mut events: Vec<(usize, v1::AppliedEvent)> = Vec::new();
    let mut records = asked.events.into_iter().enumerate().peekable();
    while let Some((index, record)) = records.next() {
        // A request's plan stands behind it and is appended with it.
        let plan = records
            .next_if(|(_, next)| is_plan(next))
            .map(|(_, plan)| plan);
        match ask(scheduler, record, plan).await {
            Ok(ask) => asks
                .entry(ask.run_id().shard())
                .or_default()
                .push((index, ask)),
            Err(fault) => events.push((index, refused(&fault.at(index)))),
        }
    }
    let judged = join_all(
        asks.into_iter()
            .map(|(shard, asks)| judge(scheduler, shard, asks)),
    )
    .await;
    events.extend(judged.into_iter().flatten());
    events.sort_unstable_by_key(|(place, _)| *place);
    Ok(v1::ApplyEventsResponse {
        events: events.into_iter().map(|(_, applied)| applied).collect(),
    })
}

/// Asks of one shard, each with its place among all.
async fn judge(
    scheduler: &Scheduler,
    shard: i16,
    asks: Vec<(usize, Ask)>,
) -> Vec<(usize, v1::AppliedEvent)> {
    let (places, asks): (Vec<usize>, Vec<Ask>) = asks.into_iter().unzip();
    let applied: Vec<v1::AppliedEvent> = match scheduler.shards.submit(shard, asks).await {
        Ok(done) => done
            .iter()
            .map(|done| with_run(done, route::applied(done)))
            .collect(),
        Err(why) => vec![refused(&route::not_done(&why)); places.len()],
    };
    places.into_iter().zip(applied).collect()
}

/// Whoever asked need not read the run.
fn with_run(done: &Done, applied: v1::AppliedEvent) -> v1::AppliedEvent {
    v1::AppliedEvent {
        run: done.run.as_ref().map(wire::standing),
        ..applied
    }
}

fn refused(error: &Error) -> v1::AppliedEvent {
    route::refused(error.reason(), &error.to_string())
}

fn is_plan(record: &v1::EventRecord) -> bool {
    let body = record.event.as_ref().and_then(|event| event.body.as_ref());
    matches!(body, Some(Body::PlanCreated(_)))
}

/// What is wrong with one event.
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

async fn ask(
    scheduler: &Scheduler,
    record: v1::EventRecord,
    plan: Option<v1::EventRecord>,
) -> Result<Ask, Fault> {
    let event_id = event_id(&record)?;
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
        Body::RunRequested(asked) => {
            let key: RunKey = asked
                .run_key
                .parse()
                .map_err(|error| Fault::new("event.run_key", error))?;
            let fingerprint =
                wire::fingerprint(&asked).map_err(|error| Fault::new("event", error))?;
            let plan = match plan {
                Some(plan) => Some(new_plan(scheduler, plan).await?),
                None => None,
            };
            let (tenant, workspace, trace) = (record.tenant, record.workspace, event.trace);
            let new = NewRun {
                tenant,
                workspace,
                run_id,
                event_id,
                key,
                fingerprint,
                asked,
                plan,
                trace,
            };
            Ok(Ask::Run(Arc::new(new)))
        }
        body @ (Body::RunCancelRequested(_)
        | Body::RunPaused(_)
        | Body::RunResumed(_)
        | Body::TaskForceCancelled(_)
        | Body::QuarantineResolved(_)) => Ok(Ask::Event(Arc::new(RunEvent {
            tenant: record.tenant,
            run_id,
            event_id,
            idempotency_key: record.idempotency_key,
            body,
            trace: event.trace,
        }))),
        _ => Err(Fault::new(
            "event.body",
            "is of a type that is not passed on between schedulers",
        )),
    }
}

async fn new_plan(scheduler: &Scheduler, record: v1::EventRecord) -> Result<NewPlan, Fault> {
    let event_id = event_id(&record)?;
    let Some(Body::PlanCreated(created)) = record.event.and_then(|event| event.body) else {
        return Err(Fault::new("event.body", "is no plan"));
    };
    let plan_id: Digest = created
        .plan_id
        .parse()
        .map_err(|error| Fault::new("event.plan_id", error))?;
    let loops = scheduler.store.loops();
    let graph = scheduler
        .plans
        .find(
            loops,
            &record.tenant,
            &record.workspace,
            *plan_id.as_bytes(),
        )
        .await;
    let graph = graph
        .map_err(|error| Fault::Other(answer::store(error)))?
        .ok_or_else(|| {
            let message = format!("plan {plan_id} is not stored");
            Fault::Other(Error::new(Reason::PlanNotFound, message))
        })?;
    Ok(NewPlan {
        event_id,
        plan_fingerprint: created.plan_fingerprint,
        graph,
    })
}

fn event_id(record: &v1::EventRecord) -> Result<Uuid, Fault> {
    let id: Ulid = record
        .event_id
        .parse()
        .map_err(|_| Fault::new("event_id", "is no ULID"))?;
    Ok(Uuid::from_u128(id.into()))
}
