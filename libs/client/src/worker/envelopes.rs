//! Envelopes at a worker's door: whether they were written for it, and whether they came before.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use prost::Message as _;
use servo_proto::v1 as pb;
use sha2::Sha256;
use tracing::warn;

/// Attempts remembered, so that an envelope that is sent again is not run again.
const REMEMBERED_MAX: usize = 65_536;
/// Unless the server says so.
const BEAT_EVERY: Duration = Duration::from_secs(30);

/// Opens envelopes that were written for this worker.
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
            interval: interval.unwrap_or(BEAT_EVERY),
        }
    }

    pub(super) fn open(&self, signed: &pb::SignedEnvelope) -> Option<pb::TaskEnvelope> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(&signed.envelope);
        if mac.verify_slice(&signed.signature).is_err() {
            warn!(
                key_id = signed.key_id,
                "an envelope has a wrong signature and is not run"
            );
            return None;
        }
        pb::TaskEnvelope::decode(&*signed.envelope)
            .inspect_err(|error| warn!(%error, "an envelope cannot be read"))
            .ok()
    }
}

/// The attempts of late.
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
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.attempts.remove(&oldest);
        }
        true
    }
}
