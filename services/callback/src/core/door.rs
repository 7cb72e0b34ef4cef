//! A worker's call shows the presigned path of its attempt and verb. The path must say what the call says.

use std::time::Duration;

use servo_model::limits::{CLOCK_SKEW_MAX, HEARTBEAT_TIMEOUT};
use servo_model::presign::{CallbackPath, CallbackVerb, KeyRing, PresignError};

/// What is wrong with a call's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("{0}")]
    Presigned(#[from] PresignError),
    #[error("the presigned path is for another attempt or another call than this one")]
    OtherCall,
}

impl Refused {
    pub fn is_expired(self) -> bool {
        self == Refused::Presigned(PresignError::Expired)
    }
}

/// Verifies and renews.
#[derive(Debug)]
pub struct Door {
    keys: KeyRing,
    interval: Duration,
}

/// The attempt that a call speaks about, in its own words.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    pub tenant: &'a str,
    pub workspace: &'a str,
    pub run_id: &'a str,
    pub attempt_id: &'a str,
}

impl Door {
    pub fn new(keys: KeyRing, interval: Duration) -> Door {
        Door { keys, interval }
    }

    /// Time from one beat to the next.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The path that was signed, if it is for this very call and `now`, a second since 1970, is not past its time.
    pub fn admit(
        &self,
        presigned: &str,
        verb: CallbackVerb,
        names: Names<'_>,
        now: i64,
    ) -> Result<CallbackPath, Refused> {
        let path = self.keys.verify_callback(presigned, now)?;
        let same = path.verb == verb
            && path.tenant.as_str() == names.tenant
            && path.workspace.as_str() == names.workspace
            && path.run.to_string() == names.run_id
            && path.attempt.to_string() == names.attempt_id;
        if same { Ok(path) } else { Err(Refused::OtherCall) }
    }

    /// Whether the path was signed for this verb, whatever the call says of itself.
    pub fn is_signed(&self, presigned: &str, verb: CallbackVerb, now: i64) -> Result<(), Refused> {
        let path = self.keys.verify_callback(presigned, now)?;
        if path.verb == verb { Ok(()) } else { Err(Refused::OtherCall) }
    }

    /// A fresh signature for a further call of the same attempt: it lives until the worker would count as lost, and a
    /// little longer.
    pub fn renew(&self, path: &CallbackPath, verb: CallbackVerb, now: i64) -> String {
        let life = HEARTBEAT_TIMEOUT + self.interval + CLOCK_SKEW_MAX;
        let expires = now.saturating_add(life.as_secs().cast_signed());
        self.keys.sign_callback(&CallbackPath { verb, ..path.clone() }, expires)
    }
}

#[cfg(test)]
mod tests {
    use servo_model::presign::SigningKey;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn door(kid: &str) -> Door {
        let key = SigningKey::new(kid, [7; 32]).unwrap();
        Door::new(KeyRing::new(key, []).unwrap(), Duration::from_secs(30))
    }

    fn path(verb: CallbackVerb) -> CallbackPath {
        let text = format!(
            "/v1/tenants/acme/workspaces/prod/runs/run_{}/attempts/{}/{}",
            "a".repeat(26),
            "0".repeat(26),
            verb.name()
        );
        text.parse().unwrap()
    }

    fn try_with(
        door: &Door,
        signed: &str,
        verb: CallbackVerb,
        change: impl Fn(&mut [String; 4]),
    ) -> Result<(), Refused> {
        let of = path(verb);
        let mut names =
            [of.tenant.to_string(), of.workspace.to_string(), of.run.to_string(), of.attempt.to_string()];
        change(&mut names);
        let [tenant, workspace, run_id, attempt_id] = &names;
        door.admit(signed, verb, Names { tenant, workspace, run_id, attempt_id }, NOW).map(|_| ())
    }

    #[test]
    fn a_signature_opens_its_own_call_only() {
        let door = door("k1");
        let signed = door.renew(&path(CallbackVerb::Heartbeat), CallbackVerb::Heartbeat, NOW);
        assert_eq!(try_with(&door, &signed, CallbackVerb::Heartbeat, |_| {}), Ok(()));
        for verb in CallbackVerb::ALL.into_iter().filter(|verb| *verb != CallbackVerb::Heartbeat) {
            assert_eq!(try_with(&door, &signed, verb, |_| {}), Err(Refused::OtherCall), "{verb:?}");
        }
        for place in 0..4 {
            let changed = try_with(&door, &signed, CallbackVerb::Heartbeat, |names| names[place].push('x'));
            assert_eq!(changed, Err(Refused::OtherCall), "name {place}");
        }
    }

    #[test]
    fn a_changed_expired_or_foreign_signature_opens_nothing() {
        let own = door("k1");
        let signed = own.renew(&path(CallbackVerb::Logs), CallbackVerb::Logs, NOW);
        for index in 0..signed.len() {
            let mut bytes = signed.clone().into_bytes();
            bytes[index] ^= 1;
            let forged = String::from_utf8(bytes).unwrap();
            assert!(try_with(&own, &forged, CallbackVerb::Logs, |_| {}).is_err(), "byte {index}");
        }
        let old = own.renew(&path(CallbackVerb::Logs), CallbackVerb::Logs, NOW - 100_000);
        assert!(try_with(&own, &old, CallbackVerb::Logs, |_| {}).unwrap_err().is_expired());
        let foreign = door("k2").renew(&path(CallbackVerb::Logs), CallbackVerb::Logs, NOW);
        assert_eq!(
            try_with(&own, &foreign, CallbackVerb::Logs, |_| {}),
            Err(Refused::Presigned(PresignError::UnknownKey))
        );
    }
}
