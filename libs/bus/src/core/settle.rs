//! What verdicts mean for a subscription's cursors and for the messages that were not digested.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::port::{Message, Verdict, Version};

/// After so many tries a message is set aside.
pub const TRIES_MAX: u32 = 5;
const DELAY_FIRST: Duration = Duration::from_millis(200);
const DELAY_FACTOR: u32 = 4;

/// A message that was not digested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    pub version: Version,
    /// This try included.
    pub tries: u32,
    pub error: String,
    /// Until the next try; none when it was the last.
    pub delay: Option<Duration>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// Where each shard's cursor stands now.
    pub cursors: Vec<Version>,
    /// Digested at a later try.
    pub digested: Vec<Version>,
    pub parked: Vec<Parked>,
}

/// A cursor passes what was not digested too: that is kept aside, so that one message holds up nobody.
pub fn settle(messages: &[Message], verdicts: &[Verdict]) -> Settled {
    let (mut settled, mut cursors) = (Settled::default(), BTreeMap::new());
    for (message, verdict) in messages.iter().zip(verdicts) {
        let version = message.version;
        match verdict {
            Verdict::Ack if message.tries > 0 => settled.digested.push(version),
            Verdict::Ack => {}
            Verdict::Nack(error) => settled.parked.push(park(message, error)),
        }
        if message.tries == 0 {
            let furthest: &mut Version = cursors.entry(version.shard).or_insert(version);
            *furthest = version.max(*furthest);
        }
    }
    settled.cursors = cursors.into_values().collect();
    settled
}

fn park(message: &Message, error: &str) -> Parked {
    let tries = message.tries + 1;
    let delay = (tries < TRIES_MAX).then(|| DELAY_FIRST * DELAY_FACTOR.pow(tries - 1));
    Parked {
        version: message.version,
        tries,
        error: error.to_owned(),
        delay,
    }
}

#[cfg(test)]
mod tests {
    use servo_store::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::port::Topic;

    fn message(shard: i16, position: i64, tries: u32) -> Message {
        Message {
            topic: Topic::Runs,
            version: Version {
                shard,
                position,
                place: 0,
            },
            key: Uuid::nil(),
            tenant: "acme".into(),
            workspace: "main".into(),
            published_at: Timestamp::from_unix_us(0),
            tries,
            payload: Vec::new(),
        }
    }

    #[test]
    fn one_bad_message_holds_up_nobody() {
        let messages = [
            message(1, 4, 0),
            message(1, 5, 0),
            message(1, 6, 0),
            message(2, 9, 0),
        ];
        let bad = Verdict::Nack("no".into());
        let settled = settle(&messages, &[Verdict::Ack, bad, Verdict::Ack, Verdict::Ack]);
        assert_eq!(settled.cursors, [messages[2].version, messages[3].version]);
        assert_eq!(settled.parked.len(), 1);
        let parked = &settled.parked[0];
        assert_eq!((parked.version, parked.tries), (messages[1].version, 1));
        assert!(parked.delay.is_some());
    }

    #[test]
    fn delays_grow_until_it_is_set_aside() {
        let delays: Vec<Option<Duration>> = (0..TRIES_MAX)
            .map(|tries| {
                settle(&[message(0, 1, tries)], &[Verdict::Nack("no".into())]).parked[0].delay
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
        let later = settle(&[message(0, 1, 3)], &[Verdict::Ack]);
        assert_eq!(
            (later.digested.len(), later.cursors.len()),
            (1, 0),
            "its cursor has passed it long since"
        );
    }
}
