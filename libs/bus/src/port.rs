//! What a bus must do, whichever it is.

use std::future::Future;

use servo_store::{StoreError, Timestamp};
use uuid::Uuid;

/// What is spoken about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// `servo.v1.RunChanged`, keyed by run.
    Runs,
}

impl Topic {
    pub const ALL: [Topic; 1] = [Topic::Runs];

    pub const fn code(self) -> i16 {
        match self {
            Topic::Runs => 1,
        }
    }

    pub fn from_code(code: i16) -> Option<Topic> {
        Topic::ALL.into_iter().find(|topic| topic.code() == code)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Topic::Runs => "runs",
        }
    }

    /// The type of its messages, in the words of CloudEvents.
    pub const fn message_type(self) -> &'static str {
        match self {
            Topic::Runs => "servo.v1.RunChanged",
        }
    }
}

/// Who reads a topic: all consumers of one subscription share its messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subscription {
    /// `quota.usage`: the service that reads, and what for.
    pub name: String,
    pub topic: Topic,
}

/// Where a message stands among those of its shard. For one key a greater version is a later message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    pub shard: i16,
    pub position: i64,
    pub place: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub topic: Topic,
    pub version: Version,
    /// The ordering key: the run.
    pub key: Uuid,
    pub tenant: String,
    pub workspace: String,
    pub published_at: Timestamp,
    /// Counts tries that failed.
    pub tries: u32,
    pub payload: Vec<u8>,
}

/// The attributes of a message, by their names in CloudEvents.
pub type Attributes = [(&'static str, String); 7];

impl Message {
    /// The same for every time the message comes.
    pub fn id(&self) -> String {
        let Version {
            shard,
            position,
            place,
        } = self.version;
        format!("{}:{shard}:{position}:{place}", self.topic.name())
    }

    pub fn attributes(&self) -> Attributes {
        [
            ("specversion", "1.0".to_owned()),
            ("id", self.id()),
            (
                "source",
                format!("/tenants/{}/workspaces/{}", self.tenant, self.workspace),
            ),
            ("type", self.topic.message_type().to_owned()),
            ("subject", self.key.to_string()),
            ("time", self.published_at.to_string()),
            ("datacontenttype", "application/protobuf".to_owned()),
        ]
    }
}

/// What a consumer made of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Ack,
    /// Not digested, and why; it comes again.
    Nack(String),
}

/// Messages that this consumer alone works on, for a while.
#[derive(Debug, Default)]
pub struct Batch {
    pub messages: Vec<Message>,
}

#[derive(Debug, thiserror::Error)]
pub enum BusError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the subscription `{0}` is refused: begin it with the name of the service that reads")]
    BadSubscription(String),
}

/// A bus that gives every message of a topic to every subscription at least once.
pub trait EventBus: Send + Sync {
    /// Makes the subscription, which gets what is published from now on. A repeat changes nothing.
    fn subscribe(&self, to: &Subscription) -> impl Future<Output = Result<(), BusError>> + Send;

    /// Waits until there is something, or until it is time to look again; then a batch may be empty.
    fn receive(&self, of: &Subscription) -> impl Future<Output = Result<Batch, BusError>> + Send;

    /// Says what became of a batch, one verdict for each message. What is not settled comes again.
    fn settle(
        &self,
        of: &Subscription,
        batch: Batch,
        verdicts: Vec<Verdict>,
    ) -> impl Future<Output = Result<(), BusError>> + Send;
}
