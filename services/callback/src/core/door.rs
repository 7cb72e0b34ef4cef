//! A worker's call shows the presigned path of its attempt and verb. The path must say what the call says.
//!
//! Paths for beats and logs live briefly; each beat renews them. An outage that outlasts them leaves an attempt that
//! lives with paths that have expired, and these alone open nothing. Beside one of them its worker shows the attempt's
//! path for its outcome, which lives as long as the attempt may. That gives nobody more than he had: who holds that path
//! may end the attempt, and being the active one still decides whether a beat counts.

use std::time::Duration;

use servo_model::presign::{CallbackPath, CallbackVerb, KeyRing, PresignError, SignatureGrace};

/// What is wrong with a call's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("{0}")]
    Presigned(#[from] PresignError),
    #[error("the presigned path is for another attempt or another call than this one")]
    OtherCall,
    #[error("the renewal does not let in this call: {0}")]
    Renewal(PresignError),
    #[error(
        "the renewal is no path for the outcome of this attempt; send the envelope's path for finished"
    )]
    OtherRenewal,
}

impl Refused {
    pub fn is_expired(self) -> bool {
        matches!(
            self,
            Refused::Presigned(PresignError::Expired) | Refused::Renewal(PresignError::Expired)
        )
    }
}

/// Verifies and renews.
#[derive(Debug)]
pub struct Door {
    keys: KeyRing,
    interval: Duration,
    grace: SignatureGrace,
}

/// What a call shows of signatures.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The path of this very call.
    pub presigned: &'a str,
    /// The path of the attempt's outcome, for a call whose own path has expired; empty without one.
    pub renewal: &'a str,
}

/// The attempt that a call speaks about, in its own words.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    pub tenant: &'a str,
    pub workspace: &'a str,
    pub run_id: &'a str,
    pub attempt_id: &'a str,
}

impl Names<'_> {
    fn are_of(&self, path: &CallbackPath) -> bool {
        path.tenant.as_str() == self.tenant
            && path.workspace.as_str() == self.workspace
            && path.run.to_string() == self.run_id
            && path.attempt.to_string() == self.attempt_id
    }
}

impl Door {
    pub fn new(keys: KeyRing, interval: Duration, grace: SignatureGrace) -> Door {
        Door {
            keys: keys.tolerating(grace),
            interval,
            grace,
        }
    }

    /// Time from one beat to the next.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The path that was signed, if it is for this very call and `now`, a second since 1970, is not past its time.
    pub fn admit(
        &self,
        shown: Shown<'_>,
        verb: CallbackVerb,
        names: Names<'_>,
        now: i64,
    ) -> Result<CallbackPath, Refused> {
        let path = self.signed(shown, verb, now)?;
        if names.are_of(&path) {
            Ok(path)
        } else {
            Err(Refused::OtherCall)
        }
    }

    /// The path that was signed for this verb, whatever the call says of itself.
    pub fn signed(
        &self,
        shown: Shown<'_>,
        verb: CallbackVerb,
        now: i64,
    ) -> Result<CallbackPath, Refused> {
        let path = match self.keys.verify_callback(shown.presigned, now) {
            Err(PresignError::Expired) if may_return(verb) && !shown.renewal.is_empty() => {
                self.returning(shown, now)?
            }
            verified => verified?,
        };
        if path.verb == verb {
            Ok(path)
        } else {
            Err(Refused::OtherCall)
        }
    }

    /// The expired path of a call whose attempt may still tell its outcome.
    fn returning(&self, shown: Shown<'_>, now: i64) -> Result<CallbackPath, Refused> {
        let expired = self.keys.verify_expired_callback(shown.presigned)?;
        let outcome = self
            .keys
            .verify_callback(shown.renewal, now)
            .map_err(Refused::Renewal)?;
        let wanted = CallbackPath {
            verb: CallbackVerb::Finished,
            ..expired.clone()
        };
        if outcome == wanted {
            Ok(expired)
        } else {
            Err(Refused::OtherRenewal)
        }
    }

    /// A fresh signature for a further call of the same attempt: it lives until the worker would count as lost, and a
    /// little longer.
    pub fn renew(
        &self,
        path: &CallbackPath,
        verb: CallbackVerb,
        heartbeat_timeout: Duration,
        now: i64,
    ) -> String {
        let expires = now.saturating_add(whole_seconds(self.grace.beat_life(heartbeat_timeout)));
        self.keys.sign_callback(
            &CallbackPath {
                verb,
                ..path.clone()
            },
            expires,
        )
    }
}

/// Whether an attempt that lives may go on with this after an outage. A start that comes too late is somebody else's.
fn may_return(verb: CallbackVerb) -> bool {
    matches!(verb, CallbackVerb::Heartbeat | CallbackVerb::Logs)
}

/// Rounded up: a signature lives no shorter than it is promised to.
fn whole_seconds(life: Duration) -> i64 {
    i64::try_from(life.as_millis().div_ceil(1_000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use servo_model::limits::HEARTBEAT_TIMEOUT;
    use servo_model::presign::SigningKey;

    use super::*;

    const NOW: i64 = 1_800_000_000;
    const LONG_AGO: i64 = NOW - 100_000;

    fn door(kid: &str) -> Door {
        let key = SigningKey::new(kid, [7; 32]).unwrap();
        Door::new(
            KeyRing::new(key, []).unwrap(),
            Duration::from_secs(30),
            SignatureGrace::default(),
        )
    }

    fn path(verb: CallbackVerb) -> CallbackPath {
        path_of("0", verb)
    }

    fn path_of(attempt: &str, verb: CallbackVerb) -> CallbackPath {
        let text = format!(
            "/v1/tenants/acme/workspaces/prod/runs/run_{}/attempts/{}/{}",
            "a".repeat(26),
            attempt.repeat(26),
            verb.name()
        );
        text.parse().unwrap()
    }

    fn signed_at(door: &Door, verb: CallbackVerb, at: i64) -> String {
        door.renew(&path(verb), verb, HEARTBEAT_TIMEOUT, at)
    }

    fn try_with(
        door: &Door,
        signed: &str,
        verb: CallbackVerb,
        change: impl Fn(&mut [String; 4]),
    ) -> Result<(), Refused> {
        let of = path(verb);
        let mut names = [
            of.tenant.to_string(),
            of.workspace.to_string(),
            of.run.to_string(),
            of.attempt.to_string(),
        ];
        change(&mut names);
        let [tenant, workspace, run_id, attempt_id] = &names;
        let shown = Shown {
            presigned: signed,
            renewal: "",
        };
        door.admit(
            shown,
            verb,
            Names {
                tenant,
                workspace,
                run_id,
                attempt_id,
            },
            NOW,
        )
        .map(|_| ())
    }

    /// A call that comes with the path of its outcome beside its own.
    fn return_with(
        door: &Door,
        presigned: &str,
        renewal: &str,
        verb: CallbackVerb,
    ) -> Result<(), Refused> {
        let of = path(verb);
        let (run_id, attempt_id) = (&of.run.to_string(), &of.attempt.to_string());
        let names = Names {
            tenant: of.tenant.as_str(),
            workspace: of.workspace.as_str(),
            run_id,
            attempt_id,
        };
        door.admit(Shown { presigned, renewal }, verb, names, NOW)
            .map(|_| ())
    }

    #[test]
    fn a_signature_opens_its_own_call_only() {
        let door = door("k1");
        let signed = signed_at(&door, CallbackVerb::Heartbeat, NOW);
        assert_eq!(
            try_with(&door, &signed, CallbackVerb::Heartbeat, |_| {}),
            Ok(())
        );
        for verb in CallbackVerb::ALL
            .into_iter()
            .filter(|verb| *verb != CallbackVerb::Heartbeat)
        {
            assert_eq!(
                try_with(&door, &signed, verb, |_| {}),
                Err(Refused::OtherCall),
                "{verb:?}"
            );
        }
        for place in 0..4 {
            let changed = try_with(&door, &signed, CallbackVerb::Heartbeat, |names| {
                names[place].push('x')
            });
            assert_eq!(changed, Err(Refused::OtherCall), "name {place}");
        }
    }

    #[test]
    fn a_changed_expired_or_foreign_signature_opens_nothing() {
        let own = door("k1");
        let signed = signed_at(&own, CallbackVerb::Logs, NOW);
        for forged in changed(&signed) {
            assert!(
                try_with(&own, &forged, CallbackVerb::Logs, |_| {}).is_err(),
                "{forged}"
            );
        }
        let old = signed_at(&own, CallbackVerb::Logs, LONG_AGO);
        assert!(
            try_with(&own, &old, CallbackVerb::Logs, |_| {})
                .unwrap_err()
                .is_expired()
        );
        let foreign = signed_at(&door("k2"), CallbackVerb::Logs, NOW);
        assert_eq!(
            try_with(&own, &foreign, CallbackVerb::Logs, |_| {}),
            Err(Refused::Presigned(PresignError::UnknownKey))
        );
    }

    fn changed(signed: &str) -> impl Iterator<Item = String> {
        (0..signed.len()).map(|index| {
            let mut bytes = signed.as_bytes().to_vec();
            bytes[index] ^= 1;
            String::from_utf8(bytes).unwrap()
        })
    }

    #[test]
    fn f14_a_signature_lives_as_long_as_its_assets_heartbeat_timeout_and_a_grace() {
        let door = door("k1");
        let grace = 3 * SignatureGrace::default().get().as_secs().cast_signed();
        for (timeout, seconds) in [
            (Duration::from_millis(1), 1),
            (Duration::from_millis(1_500), 2),
            (Duration::from_secs(3), 3),
            (HEARTBEAT_TIMEOUT, 300),
            (Duration::from_secs(86_400), 86_400),
        ] {
            let signed_ago = |ago: i64| {
                door.renew(
                    &path(CallbackVerb::Heartbeat),
                    CallbackVerb::Heartbeat,
                    timeout,
                    NOW - ago,
                )
            };
            let tried = |ago| try_with(&door, &signed_ago(ago), CallbackVerb::Heartbeat, |_| {});
            assert_eq!(tried(seconds + grace), Ok(()), "{timeout:?}");
            assert!(
                tried(seconds + grace + 1).unwrap_err().is_expired(),
                "{timeout:?}"
            );
        }
    }

    #[test]
    fn f14_an_attempt_that_lived_through_an_outage_beats_and_logs_again() {
        let door = door("k1");
        let outcome = signed_at(&door, CallbackVerb::Finished, NOW);
        for verb in [CallbackVerb::Heartbeat, CallbackVerb::Logs] {
            let expired = signed_at(&door, verb, LONG_AGO);
            assert!(
                return_with(&door, &expired, "", verb)
                    .unwrap_err()
                    .is_expired(),
                "{verb:?}"
            );
            assert_eq!(
                return_with(&door, &expired, &outcome, verb),
                Ok(()),
                "{verb:?}"
            );
        }
    }

    #[test]
    fn f15_a_renewal_lets_in_nothing_but_a_beat_or_logs_of_its_own_attempt() {
        let door = door("k1");
        let beat = CallbackVerb::Heartbeat;
        let (expired, outcome) = (
            signed_at(&door, beat, LONG_AGO),
            signed_at(&door, CallbackVerb::Finished, NOW),
        );
        let foreign = door.renew(
            &path_of("1", CallbackVerb::Finished),
            CallbackVerb::Finished,
            HEARTBEAT_TIMEOUT,
            NOW,
        );
        assert_eq!(
            return_with(&door, &expired, &foreign, beat),
            Err(Refused::OtherRenewal)
        );
        for verb in CallbackVerb::ALL
            .into_iter()
            .filter(|verb| *verb != CallbackVerb::Finished)
        {
            let other = signed_at(&door, verb, NOW);
            assert_eq!(
                return_with(&door, &expired, &other, beat),
                Err(Refused::OtherRenewal),
                "{verb:?}"
            );
        }
        let late = signed_at(&door, CallbackVerb::Finished, LONG_AGO);
        assert!(
            return_with(&door, &expired, &late, beat)
                .unwrap_err()
                .is_expired()
        );
        for verb in [CallbackVerb::Start, CallbackVerb::Finished] {
            let expired = signed_at(&door, verb, LONG_AGO);
            assert!(
                return_with(&door, &expired, &outcome, verb)
                    .unwrap_err()
                    .is_expired(),
                "{verb:?}"
            );
        }
        let of_logs = signed_at(&door, CallbackVerb::Logs, LONG_AGO);
        assert_eq!(
            return_with(&door, &of_logs, &outcome, beat),
            Err(Refused::OtherCall)
        );
    }

    #[test]
    fn f15_a_renewal_helps_no_forger() {
        let door = door("k1");
        let beat = CallbackVerb::Heartbeat;
        let (expired, outcome) = (
            signed_at(&door, beat, LONG_AGO),
            signed_at(&door, CallbackVerb::Finished, NOW),
        );
        for forged in changed(&expired) {
            assert!(
                return_with(&door, &forged, &outcome, beat).is_err(),
                "{forged}"
            );
        }
        for forged in changed(&outcome) {
            assert!(
                return_with(&door, &expired, &forged, beat).is_err(),
                "{forged}"
            );
        }
        assert_eq!(
            return_with(&door, &outcome, &outcome, beat),
            Err(Refused::OtherCall)
        );
        assert_eq!(
            return_with(&door, &outcome, &expired, beat),
            Err(Refused::OtherCall)
        );
    }
}
