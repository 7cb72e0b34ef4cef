//! Sections of the configuration that several services read, so that one value is written once.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use servo_mesh::config::SigningKeys;
use servo_mesh::{Fault, PageTokens};
use servo_model::limits::{CLOCK_SKEW_MAX, HEARTBEAT_INTERVAL};
use servo_model::presign::{KeyRing, SignatureGrace};

/// The `[attempts]` section: everything on which the dispatcher, which signs envelopes, and the
/// callback, which verifies calls of attempts, must agree.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempts {
    /// The first key signs, all of them verify.
    pub signing_keys: SigningKeys,
    /// The time between two heartbeats of an attempt.
    #[serde(
        default = "heartbeat_interval",
        deserialize_with = "servo_mesh::config::duration"
    )]
    pub heartbeat_interval: Duration,
    /// How late a signed call may be, and how far clocks may differ.
    #[serde(
        default = "signature_grace",
        deserialize_with = "servo_mesh::config::duration"
    )]
    pub signature_grace: Duration,
    /// The prefix of output folders; without it no outputs are accepted.
    #[serde(default)]
    pub output_base: String,
}

impl Attempts {
    pub fn key_ring(&self) -> Result<KeyRing, Fault> {
        self.signing_keys
            .ring()
            .map_err(|error| Fault::config("attempts.signing_keys", error))
    }

    pub fn grace(&self) -> Result<SignatureGrace, Fault> {
        SignatureGrace::new(self.signature_grace)
            .map_err(|error| Fault::config("attempts.signature_grace", error))
    }
}

fn heartbeat_interval() -> Duration {
    HEARTBEAT_INTERVAL
}

fn signature_grace() -> Duration {
    CLOCK_SKEW_MAX
}

/// The `[paging]` section: the keys of page tokens. The first one writes, all of them read; to
/// rotate, put a new key in front and remove the old one when lists that began with it have ended.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    pub keys: Vec<SecretString>,
}

/// Keys may not be guessed.
const KEY_BYTES_MIN: usize = 32;

impl Paging {
    pub fn tokens(&self) -> Result<PageTokens, Fault> {
        let keys = || self.keys.iter().map(|key| key.expose_secret().as_bytes());
        if let Some(short) = keys().position(|key| key.len() < KEY_BYTES_MIN) {
            let sentence = format!(
                "entry {short} is shorter than {KEY_BYTES_MIN} bytes; use as many random ones"
            );
            return Err(Fault::config("paging.keys", sentence));
        }
        PageTokens::new(keys()).ok_or_else(|| {
            let sentence =
                format!("is empty; name at least one key of {KEY_BYTES_MIN} random bytes");
            Fault::config("paging.keys", sentence)
        })
    }
}
