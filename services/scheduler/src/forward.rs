//! Forwarding commands to the instance that holds their shard.
//!
//! A command travels as the events that record it, with `ApplyEvents`. Commands for the same instance that
//! arrive at the same time share one call; a later command does not wait for an earlier call to return. The
//! holder judges them or answers that it no longer holds the shard; it never forwards them again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use servo_mesh::{Instance, Peer};
use servo_model::Stream;
use servo_model::idempotency::IdempotencyKey;
use servo_model::limits::MESSAGE_BYTES_MAX;
use servo_proto::v1::event::Body;
use servo_proto::v1::scheduler_service_client::SchedulerServiceClient;
use servo_proto::{kind_of, v1 as pb};
use tokio::sync::{mpsc, oneshot};
use tonic::Status;
use uuid::Uuid;

use crate::shards::{Command, NewRun, RunEvent};
use crate::wire;

pub(crate) const EVENTS_PER_CALL_MAX: usize = 256;
/// Half of the limit, which leaves enough for the rest of the message.
const BYTES_PER_CALL_MAX: usize = MESSAGE_BYTES_MAX / 2;

type Client = SchedulerServiceClient<Peer>;
type Answer = Result<Vec<pb::AppliedEvent>, Status>;

/// The events of one caller's commands, and the number of commands.
struct ForwardedCommands {
    events: Vec<pb::EventRecord>,
    answers: usize,
    reply: oneshot::Sender<Answer>,
}

/// The connections to other instances. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Forwarder {
    queues: Arc<Mutex<HashMap<Arc<str>, mpsc::UnboundedSender<ForwardedCommands>>>>,
}

impl Forwarder {
    /// Forwards the events of `answers` commands and returns their outcomes in order.
    pub(crate) async fn forward(
        &self,
        to: Instance,
        events: Vec<pb::EventRecord>,
        answers: usize,
    ) -> Answer {
        let (reply, answer) = oneshot::channel();
        let gone = || Status::unavailable("the connection to the holder of the shard is closed");
        self.queue(to)
            .send(ForwardedCommands {
                events,
                answers,
                reply,
            })
            .map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    fn queue(&self, to: Instance) -> mpsc::UnboundedSender<ForwardedCommands> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let (queue, inbox) = mpsc::unbounded_channel();
            tokio::spawn(batch(SchedulerServiceClient::new(to.peer), inbox));
            queue
        };
        queues.entry(to.address).or_insert_with(new).clone()
    }
}

/// Batches the commands that are queued at the same time, without a delay.
async fn batch(client: Client, mut inbox: mpsc::UnboundedReceiver<ForwardedCommands>) {
    while let Some(first) = inbox.recv().await {
        tokio::task::yield_now().await;
        let mut batch = Batch::default();
        batch.add(first);
        while let Ok(more) = inbox.try_recv() {
            if !batch.fits(&more) {
                std::mem::take(&mut batch).send(&client);
            }
            batch.add(more);
        }
        batch.send(&client);
    }
}

#[derive(Default)]
struct Batch {
    events: Vec<pb::EventRecord>,
    bytes: usize,
    waiting: Vec<(usize, oneshot::Sender<Answer>)>,
}

impl Batch {
    fn fits(&self, more: &ForwardedCommands) -> bool {
        self.events.len() + more.events.len() <= EVENTS_PER_CALL_MAX
            && self.bytes + encoded_len(&more.events) <= BYTES_PER_CALL_MAX
    }

    fn add(&mut self, commands: ForwardedCommands) {
        self.bytes += encoded_len(&commands.events);
        self.events.extend(commands.events);
        self.waiting.push((commands.answers, commands.reply));
    }

    fn send(self, client: &Client) {
        let mut client = client.clone();
        tokio::spawn(async move {
            let request = pb::ApplyEventsRequest {
                events: self.events,
                ..Default::default()
            };
            let answer = client.apply_events(request).await;
            let mut applied = answer.map(|answer| answer.into_inner().events.into_iter());
            for (answers, reply) in self.waiting {
                let own = match &mut applied {
                    Ok(applied) => Ok(applied.by_ref().take(answers).collect()),
                    Err(status) => Err(status.clone()),
                };
                // Fails only when the caller has gone away.
                let _ = reply.send(own);
            }
        });
    }
}

fn encoded_len(events: &[pb::EventRecord]) -> usize {
    events.iter().map(prost::Message::encoded_len).sum()
}

/// The events that carry a command to the holder of its shard. Claims and plans are never forwarded.
pub(crate) fn records(ask: &Command, shard: i16) -> Vec<pb::EventRecord> {
    match ask {
        Command::Run(new) => of_run(new, shard),
        Command::Event(event) => vec![of_event(event, shard)],
        Command::Plan(_) | Command::Claim(_) | Command::Enqueued(_) => Vec::new(),
    }
}

fn of_run(new: &NewRun, shard: i16) -> Vec<pb::EventRecord> {
    let record = |event_id: Uuid, key: IdempotencyKey, body: Body| pb::EventRecord {
        event_id: wire::ulid(event_id),
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

fn of_event(event: &RunEvent, shard: i16) -> pb::EventRecord {
    pb::EventRecord {
        event_id: wire::ulid(event.event_id),
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
