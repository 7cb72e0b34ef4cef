//! Events of the ledger as the API shows them.

use servo_model::{RunId, ShardId, Stream};
use servo_proto::v1::event::Body;
use servo_proto::{proto_time, v1 as pb};
use servo_store::Event;

use super::event::body_of;
use super::show::ulid;
use super::task_ref::task_ref_from_proto;
use crate::core::Plan;

/// `plan` is the plan of the event's run, which provides the task keys.
pub(crate) fn event_record(
    stream: Stream,
    shard: ShardId,
    event: &Event,
    plan: Option<&Plan>,
) -> pb::EventRecord {
    let decoded = body_of(&event.payload).ok();
    let task = decoded.as_ref().and_then(|(body, _)| task_of(body));
    let key = plan.zip(task).and_then(|(plan, task)| {
        let task = task_ref_from_proto(task);
        ((task.ordinal as usize) < plan.tasks.len()).then(|| plan.task_key(task).to_string())
    });
    let run_id = |id: uuid::Uuid| RunId::from_bytes(id.into_bytes()).to_string();
    let correlation = match stream {
        Stream::Execution => event.correlation_id.map(run_id),
        _ => event.correlation_id.map(ulid),
    };
    pb::EventRecord {
        event_id: ulid(event.event_id),
        stream: stream.name().to_owned(),
        shard: u32::from(shard),
        position: event.position.into(),
        r#type: event.kind().map_or_else(
            || event.type_code.to_string(),
            |kind| kind.name().to_owned(),
        ),
        tenant: event.tenant.to_string(),
        workspace: event.workspace.clone(),
        record_time: Some(proto_time(event.recorded_at)),
        source: event.source.clone(),
        idempotency_key: event.idempotency_key.clone(),
        correlation_id: correlation.unwrap_or_default(),
        causation_id: event.causation_id.map(ulid).unwrap_or_default(),
        event: decoded.map(|(body, trace)| pb::Event {
            version: 1,
            trace,
            body: Some(body),
        }),
        task_key: key.unwrap_or_default(),
    }
}

fn task_of(body: &Body) -> Option<pb::TaskRef> {
    match body {
        Body::DispatchRequested(claim) => claim.task,
        Body::DispatchEnqueued(entry) => entry.task,
        Body::TaskStarted(started) => started.task,
        Body::TaskFinished(finished) => finished.task,
        Body::TimerFired(fired) => fired.task,
        Body::TaskForceCancelled(force) => force.task,
        _ => None,
    }
}
