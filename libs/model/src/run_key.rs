//! A run's key: the caller's name for a run. The same key finds the same run; a repeat is a new
//! generation of the key.
//!
//! A terminal run never reopens. A retry, a forced repeat or a reuse after the key's lifetime is
//! generation n > 1: a new run with the key `{key}#{n}`. Each generation has its own run id and is
//! decided on the shard of that id (ADR 8).

use std::fmt;
use std::str::FromStr;

use crate::hash::hmac_sha256;
use crate::ids::{BackfillId, RunId, ScheduleId, SensorId, TenantId, WorkspaceId};
use crate::limits::{RUN_KEY_BYTES_MAX, SECRET_BYTES_MIN};
use crate::text::{excerpt, written_as_text};

/// Key prefixes that are reserved for Servo; see the constructors of [`RunKey`].
const RESERVED_PREFIXES: [&str; 4] = ["manual:", "sched:", "sensor:", "backfill:"];

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey {
    base: String,
    generation: u32,
}

impl RunKey {
    /// A key that a user chose. The reserved prefixes of schedules, sensors, backfills and manual
    /// runs are rejected, so that a user's key cannot collide with their runs.
    pub fn chosen(text: &str) -> Result<RunKey, RunKeyError> {
        if let Some(prefix) = RESERVED_PREFIXES
            .into_iter()
            .find(|prefix| text.starts_with(prefix))
        {
            return Err(RunKeyError::Reserved {
                given: excerpt(text),
                prefix,
            });
        }
        RunKey::first_of(text.to_owned())
    }

    /// The key of a run without a chosen key: derived from its request id.
    pub fn manual(request_id: &str) -> Result<RunKey, RunKeyError> {
        RunKey::first_of(format!("manual:{request_id}"))
    }

    /// The run of a schedule's tick; `epoch` is the scheduled second.
    pub fn schedule(schedule: ScheduleId, epoch: i64) -> RunKey {
        RunKey {
            base: format!("sched:{schedule}:{epoch}"),
            generation: 1,
        }
    }

    /// The run that a pushed message requests.
    pub fn sensor_message(sensor: SensorId, message_id: &str) -> Result<RunKey, RunKeyError> {
        RunKey::first_of(format!("sensor:{sensor}:msg:{message_id}"))
    }

    /// A run that a sensor's poll requests under its own key.
    pub fn sensor_request(sensor: SensorId, key: &str) -> Result<RunKey, RunKeyError> {
        RunKey::first_of(format!("sensor:{sensor}:key:{key}"))
    }

    /// The run that executes a sensor's poll.
    pub fn sensor_poll(sensor: SensorId, epoch: u64) -> RunKey {
        RunKey {
            base: format!("sensor:{sensor}:poll:{epoch}"),
            generation: 1,
        }
    }

    pub fn backfill_chunk(backfill: BackfillId, chunk: u32) -> RunKey {
        RunKey {
            base: format!("backfill:{backfill}:chunk:{chunk}"),
            generation: 1,
        }
    }

    /// Counts from 1.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Generation 1 of this key, from which the later generations are found.
    pub fn first(&self) -> RunKey {
        RunKey {
            base: self.base.clone(),
            generation: 1,
        }
    }

    /// The key of the next generation; `None` after four billion of them.
    pub fn next(&self) -> Option<RunKey> {
        Some(RunKey {
            base: self.base.clone(),
            generation: self.generation.checked_add(1)?,
        })
    }

    /// Another generation of this key; 0 counts as 1.
    #[must_use]
    pub fn in_generation(&self, generation: u32) -> RunKey {
        RunKey {
            base: self.base.clone(),
            generation: generation.max(1),
        }
    }

    fn first_of(base: String) -> Result<RunKey, RunKeyError> {
        if base.is_empty() {
            return Err(RunKeyError::Empty);
        }
        if base.len() > RUN_KEY_BYTES_MAX {
            return Err(RunKeyError::TooLong(base.len()));
        }
        if let Some(character) = base.chars().find(|c| *c == '#' || c.is_control()) {
            return Err(RunKeyError::Character {
                given: excerpt(&base),
                character,
            });
        }
        Ok(RunKey {
            base,
            generation: 1,
        })
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.generation {
            1 => f.write_str(&self.base),
            generation => write!(f, "{}#{generation}", self.base),
        }
    }
}

/// Parses any stored key, including reserved prefixes and generations.
impl FromStr for RunKey {
    type Err = RunKeyError;

    fn from_str(text: &str) -> Result<Self, RunKeyError> {
        let Some((base, generation)) = text.split_once('#') else {
            return RunKey::first_of(text.to_owned());
        };
        let number = generation
            .parse()
            .ok()
            .filter(|n: &u32| *n > 1 && n.to_string() == generation);
        let generation = number.ok_or_else(|| RunKeyError::Generation(excerpt(text)))?;
        Ok(RunKey {
            generation,
            ..RunKey::first_of(base.to_owned())?
        })
    }
}

written_as_text!(RunKey);

/// A tenant's secret for deriving run ids. It is never rotated and signs nothing else.
#[derive(Clone)]
pub struct RunIdSecret(Vec<u8>);

impl RunIdSecret {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<RunIdSecret, SecretTooShort> {
        let bytes = bytes.into();
        if bytes.len() >= SECRET_BYTES_MIN {
            Ok(RunIdSecret(bytes))
        } else {
            Err(SecretTooShort(bytes.len()))
        }
    }
}

impl RunId {
    /// The tenant's secret prevents others from computing the ids of runs that they may not know.
    pub fn derive(
        secret: &RunIdSecret,
        tenant: &TenantId,
        workspace: &WorkspaceId,
        key: &RunKey,
    ) -> RunId {
        let message = format!("{tenant}:{workspace}:{key}");
        let mac = hmac_sha256(&secret.0, message.as_bytes());
        RunId::from_bytes(*mac.first_chunk().expect("32 bytes have 16"))
    }
}

/// Hides the secret.
impl fmt::Debug for RunIdSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunIdSecret(…)")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a secret of {0} bytes is too short; use at least {SECRET_BYTES_MIN} random bytes")]
pub struct SecretTooShort(pub usize);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunKeyError {
    #[error("a run key must not be empty; leave it out to have one made from the request")]
    Empty,
    #[error("a run key has at most {RUN_KEY_BYTES_MAX} bytes, this one has {0}; use a hash of it")]
    TooLong(usize),
    #[error("the run key `{given}` holds {character:?}; control characters and `#` are refused")]
    Character { given: String, character: char },
    #[error(
        "the run key `{given}` begins with `{prefix}`, which is kept for runs that Servo starts; choose another"
    )]
    Reserved { given: String, prefix: &'static str },
    #[error(
        "`{0}` is not a generation of a run key: write key#2 and so on; generation 1 has no suffix"
    )]
    Generation(String),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_source_has_its_key_space() {
        let keys = [
            RunKey::manual("req-1").unwrap(),
            RunKey::schedule(ScheduleId::from_bytes([0; 16]), 1_736_935_200),
            RunKey::sensor_message(SensorId::from_bytes([0; 16]), "m1").unwrap(),
            RunKey::sensor_request(SensorId::from_bytes([0; 16]), "file.csv").unwrap(),
            RunKey::sensor_poll(SensorId::from_bytes([0; 16]), 5),
            RunKey::backfill_chunk(BackfillId::from_bytes([0; 16]), 7),
        ];
        assert_eq!(
            keys.each_ref().map(RunKey::to_string),
            [
                "manual:req-1",
                "sched:00000000000000000000000000:1736935200",
                "sensor:00000000000000000000000000:msg:m1",
                "sensor:00000000000000000000000000:key:file.csv",
                "sensor:00000000000000000000000000:poll:5",
                "backfill:00000000000000000000000000:chunk:7",
            ]
        );
        for key in keys {
            assert_eq!(key.to_string().parse(), Ok(key.clone()));
            assert!(
                matches!(
                    RunKey::chosen(&key.to_string()),
                    Err(RunKeyError::Reserved { .. })
                ),
                "{key}"
            );
        }
    }

    #[test]
    fn repeats_count_up() {
        let first = RunKey::chosen("nightly").unwrap();
        let third = first.next().and_then(|second| second.next()).unwrap();
        assert_eq!(third.to_string(), "nightly#3");
        assert_eq!("nightly#3".parse(), Ok(third.clone()));
        assert_eq!((third.generation(), third.first()), (3, first));
        assert_eq!("x#4294967295".parse::<RunKey>().unwrap().next(), None);
    }

    #[test]
    fn every_generation_of_a_key_can_be_named() {
        let key: RunKey = "nightly#3".parse().unwrap();
        assert_eq!(key.in_generation(7).to_string(), "nightly#7");
        assert_eq!(key.in_generation(1), key.first());
        assert_eq!(key.in_generation(0), key.first());
    }

    #[test]
    fn refuses_keys_with_a_second_meaning() {
        for text in [
            "",
            "#2",
            "a#",
            "a#1",
            "a#0",
            "a#02",
            "a#+2",
            "a#2#2",
            "a#4294967296",
            "a\n",
            "a\u{7f}",
        ] {
            assert!(text.parse::<RunKey>().is_err(), "{text:?}");
        }
        assert!(RunKey::chosen("nightly#2").is_err());
        assert!(RunKey::chosen(&"k".repeat(RUN_KEY_BYTES_MAX)).is_ok());
        assert!(RunKey::chosen(&"k".repeat(RUN_KEY_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn secrets_are_long_and_silent() {
        assert_eq!(RunIdSecret::new([7; 31]).unwrap_err(), SecretTooShort(31));
        let secret = RunIdSecret::new(*b"0123456789abcdef0123456789abcdef").unwrap();
        assert!(!format!("{secret:?}").contains("0123"));
    }

    proptest! {
        #[test]
        fn text_form_round_trips(base in "[a-z:#é ]{1,8}", repeats in 0u32..4) {
            if let Ok(key) = RunKey::chosen(&base) {
                let key = (0..repeats).fold(key, |key, _| key.next().unwrap());
                prop_assert_eq!(key.to_string().parse(), Ok(key));
            }
        }
    }
}
