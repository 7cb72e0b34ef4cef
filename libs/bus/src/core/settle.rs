//! The effect of a batch's results on a subscription's cursors and on failed messages.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::port::{Acknowledgement, Message, Version};

/// A message is set aside after this many tries.
pub const TRIES_MAX: u32 = 5;
const DELAY_FIRST: Duration = Duration::from_millis(200);
const DELAY_FACTOR: u32 = 4;

/// A message whose handler failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedMessage {
    pub version: Version,
    /// Includes this try.
    pub tries: u32,
    pub error: String,
    /// The delay until the next try; `None` after the last one.
    pub delay: Option<Duration>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// The new cursor of each shard.
    pub cursors: Vec<Version>,
    /// Messages that succeeded on a retry.
    pub retried: Vec<Version>,
    pub failed: Vec<FailedMessage>,
}

/// Cursors also pass failed messages, which are stored separately, so that one message does not
/// block the others.
pub fn settle(messages: &[Message], results: &[Acknowledgement]) -> Settled {
    let (mut settled, mut cursors) = (Settled::default(), BTreeMap::new());
    for (message, result) in messages.iter().zip(results) {
        let version = message.version;
        match result {
            Acknowledgement::Ack if message.tries > 0 => settled.retried.push(version),
            Acknowledgement::Ack => {}
            Acknowledgement::Nack(error) => settled.failed.push(failed_message(message, error)),
        }
        if message.tries == 0 {
            let furthest: &mut Version = cursors.entry(version.shard).or_insert(version);
            *furthest = version.max(*furthest);
        }
    }
    settled.cursors = cursors.into_values().collect();
    settled
}

fn failed_message(message: &Message, error: &str) -> FailedMessage {
    let tries = message.tries + 1;
    let delay = (tries < TRIES_MAX).then(|| DELAY_FIRST * DELAY_FACTOR.pow(tries - 1));
    FailedMessage {
        version: message.version,
        tries,
        error: error.to_owned(),
        delay,
    }
}

#[cfg(test)]
mod tests {
    use servo_model::{Position, Stream, Timestamp};
    use uuid::Uuid;

    use super::*;
    use crate::port::Topic;

    fn message(shard: u32, position: u32, tries: u32) -> Message {
        Message {
            topic: Topic::Runs,
            version: Version {
                shard: Stream::Execution.shard(shard).unwrap(),
                position: Position::START.plus(position),
                place: 0,
            },
            key: Uuid::nil(),
            tenant: "acme".parse().unwrap(),
            workspace: "main".into(),
            published_at: Timestamp::UNIX_EPOCH,
            tries,
            payload: Vec::new(),
        }
    }

    #[test]
    fn failed_message_does_not_block_others() {
        let messages = [
            message(1, 4, 0),
            message(1, 5, 0),
            message(1, 6, 0),
            message(2, 9, 0),
        ];
        let bad = Acknowledgement::Nack("no".into());
        let settled = settle(
            &messages,
            &[
                Acknowledgement::Ack,
                bad,
                Acknowledgement::Ack,
                Acknowledgement::Ack,
            ],
        );
        assert_eq!(settled.cursors, [messages[2].version, messages[3].version]);
        assert_eq!(settled.failed.len(), 1);
        let failed = &settled.failed[0];
        assert_eq!((failed.version, failed.tries), (messages[1].version, 1));
        assert!(failed.delay.is_some());
    }

    #[test]
    fn delays_grow_until_the_message_is_set_aside() {
        let delays: Vec<Option<Duration>> = (0..TRIES_MAX)
            .map(|tries| {
                settle(
                    &[message(0, 1, tries)],
                    &[Acknowledgement::Nack("no".into())],
                )
                .failed[0]
                    .delay
            })
            .collect();
        assert!(
            delays
                .windows(2)
                .all(|pair| pair[1].is_none() || pair[1] > pair[0]),
            "{delays:?}"
        );
        assert_eq!(delays.iter().filter(|delay| delay.is_none()).count(), 1);
        assert_eq!(delays.last(), Some(&None), "the fifth try is the last");
        let later = settle(&[message(0, 1, 3)], &[Acknowledgement::Ack]);
        assert_eq!(
            (later.retried.len(), later.cursors.len()),
            (1, 0),
            "its cursor has passed it already"
        );
    }
}
