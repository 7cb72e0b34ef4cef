//! Checks whether envelopes were signed for this worker and whether they were received before.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use prost::Message as _;
use servo_proto::v1 as pb;
use sha2::Sha256;
use tracing::warn;

/// The number of remembered attempts; an envelope that is sent again is not run again.
const SEEN_MAX: usize = 65_536;
/// The heartbeat interval, unless the server sets another.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

/// Verifies and decodes envelopes for this worker.
pub(super) struct Verify {
    pub(super) key: bytes::Bytes,
    pub(super) interval: Duration,
}

impl Verify {
    pub(super) fn new(registered: &pb::RegisterWorkerResponse) -> Verify {
        let interval = registered
            .heartbeat_interval
            .and_then(|interval| Duration::try_from(interval).ok());
        Verify {
            key: registered.envelope_key.clone(),
            interval: interval.unwrap_or(HEARTBEAT_INTERVAL),
        }
    }

    pub(super) fn open(&self, signed: &pb::SignedEnvelope) -> Option<pb::TaskEnvelope> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(&signed.envelope);
        if mac.verify_slice(&signed.signature).is_err() {
            warn!(
                key_id = signed.key_id,
                "ignoring an envelope with an invalid signature"
            );
            return None;
        }
        pb::TaskEnvelope::decode(&*signed.envelope)
            .inspect_err(|error| warn!(%error, "ignoring an envelope that cannot be decoded"))
            .ok()
    }
}

/// The most recent attempts.
#[derive(Default)]
pub(super) struct Seen {
    attempts: HashSet<String>,
    order: VecDeque<String>,
}

impl Seen {
    pub(super) fn is_new(&mut self, attempt: &str) -> bool {
        if !self.attempts.insert(attempt.to_owned()) {
            return false;
        }
        self.order.push_back(attempt.to_owned());
        if self.order.len() > SEEN_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.attempts.remove(&oldest);
        }
        true
    }
}
