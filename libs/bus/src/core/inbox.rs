//! The newest version that a consumer has seen of each key. Messages may arrive twice, late or out
//! of order; only a newer version carries new information.

use std::collections::HashMap;

use servo_model::Position;
use uuid::Uuid;

use crate::port::Version;

#[derive(Debug, Default)]
pub struct Inbox {
    seen: HashMap<Uuid, Version>,
}

impl Inbox {
    /// Whether the message is newer than all earlier messages about its key.
    pub fn is_newer(&mut self, key: Uuid, version: Version) -> bool {
        let seen = self.seen.entry(key).or_insert(Version {
            shard: version.shard,
            position: Position::START,
            place: -1,
        });
        let newer = version > *seen;
        if newer {
            *seen = version;
        }
        newer
    }

    /// Drops the key, because no further message about it is expected.
    pub fn forget(&mut self, key: Uuid) {
        self.seen.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use servo_model::Stream;

    use super::*;

    fn version(position: u32) -> Version {
        Version {
            shard: Stream::Execution.shard(3).unwrap(),
            position: Position::START.plus(position),
            place: 0,
        }
    }

    #[test]
    fn f26_repeated_late_and_reordered_messages_change_nothing() {
        let sent: Vec<(u128, u32)> = (1..=40).map(|n| (u128::from(n % 3 == 0), n)).collect();
        let last = |messages: &[(u128, u32)]| {
            let (mut inbox, mut state) = (Inbox::default(), HashMap::new());
            for (key, position) in messages {
                if inbox.is_newer(Uuid::from_u128(*key), version(*position)) {
                    state.insert(*key, *position);
                }
            }
            state
        };
        let expected = HashMap::from([(0, 40), (1, 39)]);
        assert_eq!(last(&sent), expected);
        for step in [3, 7, 11, 17, 23, 29, 37] {
            let mut mixed: Vec<_> = (0..sent.len())
                .map(|n| sent[(n * step) % sent.len()])
                .collect();
            mixed.extend(sent.iter().take(step).copied());
            assert_eq!(last(&mixed), expected, "step {step}");
        }
    }
}
