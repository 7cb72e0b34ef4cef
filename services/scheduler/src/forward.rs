//! What belongs to a shard that another instance holds goes there, with whatever else goes there at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use servo_mesh::{Instance, Peer};
use servo_model::limits::MESSAGE_BYTES_MAX;
use servo_proto::v1 as pb;
use servo_proto::v1::scheduler_service_client::SchedulerServiceClient;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

/// Events of one call.
pub(crate) const EVENTS_PER_CALL_MAX: usize = 256;
/// Half of what is allowed leaves room for everything around the events.
const BYTES_PER_CALL_MAX: usize = MESSAGE_BYTES_MAX / 2;

type Client = SchedulerServiceClient<Peer>;
type Answer = Result<Vec<pb::AppliedEvent>, Status>;

/// Asks of one caller as events, and how many answers they get.
struct ForwardedCommands {
    events: Vec<pb::EventRecord>,
    answers: usize,
    reply: oneshot::Sender<Answer>,
}

/// The ways to other instances. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Forwarder {
    ways: Arc<Mutex<HashMap<Arc<str>, mpsc::UnboundedSender<ForwardedCommands>>>>,
}

impl Forwarder {
    /// Answers for each of `answers` asks, in their order.
    pub(crate) async fn pass(
        &self,
        to: Instance,
        events: Vec<pb::EventRecord>,
        answers: usize,
    ) -> Answer {
        let (reply, answer) = oneshot::channel();
        let gone = || Status::unavailable("the way to the holder of the shard is closed");
        self.way(to)
            .send(ForwardedCommands {
                events,
                answers,
                reply,
            })
            .map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    fn way(&self, to: Instance) -> mpsc::UnboundedSender<ForwardedCommands> {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let (way, inbox) = mpsc::unbounded_channel();
            tokio::spawn(gather(SchedulerServiceClient::new(to.peer), inbox));
            way
        };
        ways.entry(to.address).or_insert_with(new).clone()
    }
}

/// A turn, not a delay: what is asked at the same time goes by one call, and nobody waits for an earlier one.
async fn gather(client: Client, mut inbox: mpsc::UnboundedReceiver<ForwardedCommands>) {
    while let Some(first) = inbox.recv().await {
        tokio::task::yield_now().await;
        let mut call = Call::default();
        call.add(first);
        while let Ok(more) = inbox.try_recv() {
            if !call.has_room_for(&more) {
                std::mem::take(&mut call).send(&client);
            }
            call.add(more);
        }
        call.send(&client);
    }
}

#[derive(Default)]
struct Call {
    events: Vec<pb::EventRecord>,
    bytes: usize,
    waiting: Vec<(usize, oneshot::Sender<Answer>)>,
}

impl Call {
    fn has_room_for(&self, more: &ForwardedCommands) -> bool {
        self.events.len() + more.events.len() <= EVENTS_PER_CALL_MAX
            && self.bytes + weight(&more.events) <= BYTES_PER_CALL_MAX
    }

    fn add(&mut self, passed: ForwardedCommands) {
        self.bytes += weight(&passed.events);
        self.events.extend(passed.events);
        self.waiting.push((passed.answers, passed.reply));
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
                // Who went away does not want to know.
                let _ = reply.send(own);
            }
        });
    }
}

fn weight(events: &[pb::EventRecord]) -> usize {
    events.iter().map(prost::Message::encoded_len).sum()
}
