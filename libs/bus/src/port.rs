//! The interface of a bus.

use std::future::Future;

use servo_model::{Position, ShardId, TenantId, Timestamp};
use servo_store::StoreError;
use uuid::Uuid;

/// A subject that messages are published about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// `servo.mesh.v1.RunChanged`, keyed by run.
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

    /// The type of its messages as a CloudEvents attribute.
    pub const fn message_type(self) -> &'static str {
        match self {
            Topic::Runs => "servo.mesh.v1.RunChanged",
        }
    }
}

/// A reader of a topic: all consumers of one subscription share its messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subscription {
    /// The service that reads and its purpose, such as `quota.usage`.
    pub name: String,
    pub topic: Topic,
}

/// The position of a message in its shard. For one key, a greater version is a later message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    pub shard: ShardId,
    pub position: Position,
    pub place: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub topic: Topic,
    pub version: Version,
    /// The ordering key: the run.
    pub key: Uuid,
    pub tenant: TenantId,
    pub workspace: String,
    pub published_at: Timestamp,
    /// The number of failed tries.
    pub tries: u32,
    pub payload: Vec<u8>,
}

/// The attributes of a message, by their CloudEvents names.
pub type Attributes = [(&'static str, String); 7];

impl Message {
    /// The same for every delivery of the message.
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

/// The result of handling a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acknowledgement {
    Ack,
    /// Handling failed for this reason; the message is delivered again.
    Nack(String),
}

/// Messages that this consumer holds exclusively until its lease ends.
#[derive(Debug, Default)]
pub struct Batch {
    pub messages: Vec<Message>,
}

#[derive(Debug, thiserror::Error)]
pub enum BusError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "the subscription `{0}` is rejected: begin its name with the name of the reading service"
    )]
    BadSubscription(String),
}

/// A bus that delivers every message of a topic to every subscription at least once.
pub trait EventBus: Send + Sync {
    /// Creates the subscription, which receives messages published from now on. Repeating the call
    /// changes nothing.
    fn subscribe(
        &self,
        subscription: &Subscription,
    ) -> impl Future<Output = Result<(), BusError>> + Send;

    /// Waits for messages or for the next poll; the batch may be empty.
    fn receive(
        &self,
        subscription: &Subscription,
    ) -> impl Future<Output = Result<Batch, BusError>> + Send;

    /// Reports the results of a batch, one per message. Messages that are not settled are delivered
    /// again.
    fn settle(
        &self,
        subscription: &Subscription,
        batch: Batch,
        results: Vec<Acknowledgement>,
    ) -> impl Future<Output = Result<(), BusError>> + Send;
}
