//! Ids that sort by creation time. They are stored as uuid: the same 16 bytes.

use std::fmt;
use std::str::FromStr;

use ulid::Ulid;

use super::IdError;
use crate::text::written_as_text;

pub(super) const RULE: &str =
    "write the 26 characters of a ULID in upper case, such as 01JCZX5RA0000000000000000A";

macro_rules! ulid_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// The caller supplies time and randomness; `millis` is a Unix time, truncated to its
            /// lowest 48 bits.
            pub fn new(millis: u64, random: [u8; 10]) -> $name {
                let mut chance = [0; 16];
                chance[6..].copy_from_slice(&random);
                $name(Ulid::from_parts(millis, u128::from_be_bytes(chance)).to_bytes())
            }

            pub const fn from_bytes(bytes: [u8; 16]) -> $name {
                $name(bytes)
            }

            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }

            /// The creation time in milliseconds since 1970.
            pub fn millis(&self) -> u64 {
                Ulid::from_bytes(self.0).timestamp_ms()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                Ulid::from_bytes(self.0).fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                parse(text).map($name).ok_or_else(|| IdError::new($kind, text, RULE))
            }
        }

        written_as_text!($name);
    };
}

ulid_id!(
    /// One event of the ledger.
    EventId,
    "event id"
);
ulid_id!(
    /// One registered version of a workspace's assets.
    DeploymentId,
    "deployment id"
);
ulid_id!(ScheduleId, "schedule id");
ulid_id!(SensorId, "sensor id");
ulid_id!(BackfillId, "backfill id");
ulid_id!(
    /// One worker process, from its registration to its end.
    WorkerId,
    "worker id"
);

/// Accepts only the canonical spelling, because Crockford's alphabet also allows lower case, which
/// would give an id several names.
pub(super) fn parse(text: &str) -> Option<[u8; 16]> {
    let ulid = Ulid::from_string(text).ok()?;
    (ulid.to_string() == text).then(|| ulid.to_bytes())
}
