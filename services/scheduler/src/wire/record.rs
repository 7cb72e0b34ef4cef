//! Asks on their way between instances, as the events that record them.

use servo_model::idempotency::IdempotencyKey;
use servo_model::request::RequestFingerprint;
use servo_model::{Digest, RunId, Stream};
use servo_proto::v1::event::Body;
use servo_proto::{kind_of, v1 as pb};
use uuid::Uuid;

use super::show::ulid;
use crate::shards::{Command, NewPlan, NewRun, RunEvent};

/// The events of a call that another instance judges. Claims and plans never leave the shard's holder.
pub(crate) fn records(ask: &Command, shard: i16) -> Vec<pb::EventRecord> {
    match ask {
        Command::Run(new) => of_run(new, shard),
        Command::Event(event) => vec![of_event(event, shard)],
        Command::Plan(_) | Command::Claim(_) | Command::Enqueued(_) => Vec::new(),
    }
}

fn of_run(new: &NewRun, shard: i16) -> Vec<pb::EventRecord> {
    let record = |event_id: Uuid, key: IdempotencyKey, body: Body| pb::EventRecord {
        event_id: ulid(event_id),
        stream: Stream::Execution.name().to_owned(),
        shard: u32::from(shard.unsigned_abs()),
        r#type: kind_of(&body).name().to_owned(),
        tenant: new.tenant.clone(),
        workspace: new.workspace.clone(),
        idempotency_key: key.to_string(),
        correlation_id: new.run_id.to_string(),
        event: Some(pb::Event {
            version: 1,
            trace: new.trace.clone(),
            body: Some(body),
        }),
        ..Default::default()
    };
    let key = IdempotencyKey::run_requested(&new.key, &new.fingerprint);
    let request = record(new.event_id, key, Body::RunRequested(new.requested.clone()));
    let plan = new.plan.as_ref().map(|plan| {
        let key = IdempotencyKey::plan_created(&new.run_id, &new.fingerprint);
        let body = Body::PlanCreated(plan_created(&new.run_id, &new.fingerprint, plan));
        record(plan.event_id, key, body)
    });
    std::iter::once(request).chain(plan).collect()
}

/// The event that gives a run its plan.
pub(crate) fn plan_created(
    run_id: &RunId,
    fingerprint: &RequestFingerprint,
    plan: &NewPlan,
) -> pb::PlanCreated {
    pb::PlanCreated {
        run_id: run_id.to_string(),
        request_fingerprint: fingerprint.to_string(),
        plan_id: Digest::from_bytes(plan.plan.plan_id).to_string(),
        plan_fingerprint: plan.plan_fingerprint.clone(),
        deployment_id: plan.plan.deployment_id.to_string(),
        task_count: u32::try_from(plan.plan.tasks.len()).unwrap_or(u32::MAX),
    }
}

fn of_event(event: &RunEvent, shard: i16) -> pb::EventRecord {
    pb::EventRecord {
        event_id: ulid(event.event_id),
        stream: Stream::Execution.name().to_owned(),
        shard: u32::from(shard.unsigned_abs()),
        r#type: kind_of(&event.body).name().to_owned(),
        tenant: event.tenant.clone(),
        idempotency_key: event.idempotency_key.clone(),
        correlation_id: event.run_id.to_string(),
        event: Some(pb::Event {
            version: 1,
            trace: event.trace.clone(),
            body: Some(event.body.clone()),
        }),
        ..Default::default()
    }
}
