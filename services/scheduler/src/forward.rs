//! Forwarding commands to the instance that holds their shard.
//!
//! A command travels as the events that record it, with `ApplyEvents`. Commands for the same
//! instance that arrive at the same time share one call; a later command does not wait for an
//! earlier call to return. The holder judges them or answers that it no longer holds the shard; it
//! never forwards them again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use servo_actor::{BatchHandler, Batcher, Limits, Weight};
use servo_mesh::{Instance, Peer};
use servo_model::idempotency::IdempotencyKey;
use servo_model::limits::MESSAGE_BYTES_MAX;
use servo_model::{ShardId, Stream};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::scheduler_mesh_service_client::SchedulerMeshServiceClient;
use servo_proto::v1::event::Body;
use servo_proto::{kind_of, v1 as pb};
use tonic::Status;
use uuid::Uuid;

use crate::shards::{Command, NewRun, RunEvent};
use crate::wire;

pub(crate) const EVENTS_PER_CALL_MAX: usize = 256;
/// Half of the limit, which leaves enough for the rest of the message.
const BYTES_PER_CALL_MAX: usize = MESSAGE_BYTES_MAX / 2;
/// Calls to one instance at a time; a later command does not wait for an earlier call to return.
const CALLS_IN_FLIGHT_MAX: usize = 64;

const LIMITS: Limits = Limits {
    // A caller beyond it waits for capacity.
    queued_max: 16_384,
    batch_max: Weight {
        items: EVENTS_PER_CALL_MAX,
        bytes: BYTES_PER_CALL_MAX,
    },
};

type Answer = Result<Vec<mesh_pb::AppliedEvent>, Status>;
type HolderBatcher = Batcher<ForwardedCommands, Answer>;

/// The events of one caller's commands, and the number of commands. A command with two events gets
/// one answer.
struct ForwardedCommands {
    events: Vec<pb::EventRecord>,
    count: usize,
}

/// The connections to other instances, by address. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Forwarder {
    instances: Arc<Mutex<HashMap<Arc<str>, HolderBatcher>>>,
}

impl Forwarder {
    /// Forwards the events of `count` commands and returns the results of the commands in order.
    pub(crate) async fn forward(
        &self,
        to: Instance,
        events: Vec<pb::EventRecord>,
        count: usize,
    ) -> Answer {
        let commands = ForwardedCommands { events, count };
        let answer = self.batcher(to).call(commands).await;
        answer.map_err(|stopped| Status::unavailable(stopped.to_string()))?
    }

    fn batcher(&self, to: Instance) -> HolderBatcher {
        let mut instances = self
            .instances
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let client = SchedulerMeshServiceClient::new(to.peer);
            Batcher::start_concurrent(
                "forward",
                LIMITS,
                CALLS_IN_FLIGHT_MAX,
                HolderCaller { client },
            )
        };
        instances.entry(to.address).or_insert_with(start).clone()
    }
}

/// Calls one instance.
#[derive(Clone)]
struct HolderCaller {
    client: SchedulerMeshServiceClient<Peer>,
}

impl BatchHandler for HolderCaller {
    type Item = ForwardedCommands;
    type Answer = Answer;

    fn weigh(commands: &ForwardedCommands) -> Weight {
        Weight {
            items: commands.events.len(),
            bytes: encoded_len(&commands.events),
        }
    }

    async fn run(&mut self, batch: Vec<ForwardedCommands>) -> Vec<Answer> {
        let mut events = Vec::new();
        let mut counts = Vec::with_capacity(batch.len());
        for commands in batch {
            events.extend(commands.events);
            counts.push(commands.count);
        }
        let request = mesh_pb::ApplyEventsRequest { events };
        match self.client.apply_events(request).await {
            Ok(answer) => {
                let mut applied = answer.into_inner().events.into_iter();
                let own = |count| Ok(applied.by_ref().take(count).collect());
                counts.into_iter().map(own).collect()
            }
            Err(status) => counts.iter().map(|_| Err(status.clone())).collect(),
        }
    }
}

fn encoded_len(events: &[pb::EventRecord]) -> usize {
    events.iter().map(prost::Message::encoded_len).sum()
}

/// A command that any instance may accept and forward. The other commands arise at the holder of
/// their shard.
#[derive(Debug, Clone)]
pub(crate) enum ForwardableCommand {
    Run(Arc<NewRun>),
    Event(Arc<RunEvent>),
}

impl ForwardableCommand {
    pub(crate) fn shard(&self) -> ShardId {
        match self {
            ForwardableCommand::Run(new) => new.run_id.shard(),
            ForwardableCommand::Event(event) => event.run_id.shard(),
        }
    }

    /// The events that carry the command to the holder of its shard.
    pub(crate) fn records(&self, shard: ShardId) -> Vec<pb::EventRecord> {
        match self {
            ForwardableCommand::Run(new) => of_run(new, shard),
            ForwardableCommand::Event(event) => vec![of_event(event, shard)],
        }
    }
}

impl From<ForwardableCommand> for Command {
    fn from(command: ForwardableCommand) -> Command {
        match command {
            ForwardableCommand::Run(new) => Command::Run(new),
            ForwardableCommand::Event(event) => Command::Event(event),
        }
    }
}

fn of_run(new: &NewRun, shard: ShardId) -> Vec<pb::EventRecord> {
    let record = |event_id: Uuid, key: IdempotencyKey, body: Body| pb::EventRecord {
        event_id: wire::ulid(event_id),
        stream: Stream::Execution.name().to_owned(),
        shard: shard.into(),
        r#type: kind_of(&body).name().to_owned(),
        tenant: new.tenant.to_string(),
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
        let body = Body::PlanCreated(wire::plan_created(
            &new.run_id,
            &new.fingerprint,
            &plan.plan,
            &plan.plan_fingerprint,
        ));
        record(plan.event_id, key, body)
    });
    std::iter::once(request).chain(plan).collect()
}

fn of_event(event: &RunEvent, shard: ShardId) -> pb::EventRecord {
    pb::EventRecord {
        event_id: wire::ulid(event.event_id),
        stream: Stream::Execution.name().to_owned(),
        shard: shard.into(),
        r#type: kind_of(&event.body).name().to_owned(),
        tenant: event.tenant.to_string(),
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
