//! What a consumer knows of each key. Messages may come twice, late and out of order; only a newer one tells anything.

use std::collections::HashMap;

use uuid::Uuid;

use crate::port::Version;

/// The newest version seen of each key.
#[derive(Debug, Default)]
pub struct Inbox {
    seen: HashMap<Uuid, Version>,
}

impl Inbox {
    /// Whether the message is newer than all that came before about its key.
    pub fn is_news(&mut self, key: Uuid, version: Version) -> bool {
        let seen = self.seen.entry(key).or_insert(Version {
            shard: version.shard,
            position: 0,
            place: -1,
        });
        let news = version > *seen;
        if news {
            *seen = version;
        }
        news
    }

    /// The key has come to its end.
    pub fn forget(&mut self, key: Uuid) {
        self.seen.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(position: i64) -> Version {
        Version {
            shard: 3,
            position,
            place: 0,
        }
    }

    #[test]
    fn f26_what_comes_twice_late_or_out_of_order_changes_nothing() {
        let told: Vec<(u128, i64)> = (1..=40)
            .map(|n| (u128::from(n % 3 == 0), i64::from(n)))
            .collect();
        let last = |messages: &[(u128, i64)]| {
            let (mut inbox, mut state) = (Inbox::default(), HashMap::new());
            for (key, position) in messages {
                if inbox.is_news(Uuid::from_u128(*key), version(*position)) {
                    state.insert(*key, *position);
                }
            }
            state
        };
        let expected = HashMap::from([(0, 40), (1, 39)]);
        assert_eq!(last(&told), expected);
        for step in [3, 7, 11, 17, 23, 29, 37] {
            let mut mixed: Vec<_> = (0..told.len())
                .map(|n| told[(n * step) % told.len()])
                .collect();
            mixed.extend(told.iter().take(step).copied());
            assert_eq!(last(&mixed), expected, "step {step}");
        }
    }
}
