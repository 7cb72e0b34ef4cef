//! Verifying presigned paths. Every call of a worker presents the path that was signed for its
//! attempt and verb, and the names in the request must match the path.
//!
//! Paths for heartbeats and logs live briefly, and each heartbeat renews them. After an outage that
//! outlasts them, a running attempt has only expired paths, which alone are not accepted. Its
//! worker then also presents the attempt's finish path as a renewal, which is valid as long as the
//! attempt may run. This grants no new power: the holder of the finish path can already end the
//! attempt, and a heartbeat still counts only for the active attempt.

use std::time::Duration;

use servo_model::Timestamp;
use servo_model::presign::{CallbackPath, CallbackVerb, KeyRing, PresignError, SignatureGrace};

/// Why a call's signature is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("{0}")]
    Presigned(#[from] PresignError),
    #[error("the presigned path is for another attempt or another call than this one")]
    OtherCall,
    #[error("the renewal does not admit this call: {0}")]
    Renewal(PresignError),
    #[error(
        "the renewal is not the finish path of this attempt; send the envelope's path for finished"
    )]
    OtherRenewal,
}

impl SignatureError {
    pub fn is_expired(self) -> bool {
        matches!(
            self,
            SignatureError::Presigned(PresignError::Expired)
                | SignatureError::Renewal(PresignError::Expired)
        )
    }
}

/// Verifies and renews presigned paths.
#[derive(Debug)]
pub struct SignatureVerifier {
    keys: KeyRing,
    interval: Duration,
    grace: SignatureGrace,
}

/// The paths that a call presents.
#[derive(Debug, Clone, Copy)]
pub struct PresentedPaths<'a> {
    /// The path of this call.
    pub presigned: &'a str,
    /// The finish path of the attempt, for a call whose own path has expired; empty if there is
    /// none.
    pub renewal: &'a str,
}

/// The attempt that a request names.
#[derive(Debug, Clone, Copy)]
pub struct AttemptNames<'a> {
    pub tenant: &'a str,
    pub workspace: &'a str,
    pub run_id: &'a str,
    pub attempt_id: &'a str,
}

impl AttemptNames<'_> {
    fn match_path(&self, path: &CallbackPath) -> bool {
        path.tenant.as_str() == self.tenant
            && path.workspace.as_str() == self.workspace
            && path.run.to_string() == self.run_id
            && path.attempt.to_string() == self.attempt_id
    }
}

impl SignatureVerifier {
    pub fn new(keys: KeyRing, interval: Duration, grace: SignatureGrace) -> SignatureVerifier {
        SignatureVerifier {
            keys: keys.with_grace(grace),
            interval,
            grace,
        }
    }

    /// Returns the time between two heartbeats.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns the signed path if it was signed for this call and has not expired at `now`.
    pub fn verify(
        &self,
        presented: PresentedPaths<'_>,
        verb: CallbackVerb,
        names: AttemptNames<'_>,
        now: Timestamp,
    ) -> Result<CallbackPath, SignatureError> {
        let path = self.verify_path(presented, verb, now)?;
        if names.match_path(&path) {
            Ok(path)
        } else {
            Err(SignatureError::OtherCall)
        }
    }

    /// Returns the path that was signed for this verb, without comparing it with the request.
    pub fn verify_path(
        &self,
        presented: PresentedPaths<'_>,
        verb: CallbackVerb,
        now: Timestamp,
    ) -> Result<CallbackPath, SignatureError> {
        let path = match self
            .keys
            .verify_callback(presented.presigned, now.unix_seconds())
        {
            Err(PresignError::Expired) if is_renewable(verb) && !presented.renewal.is_empty() => {
                self.verify_renewal(presented, now)?
            }
            verified => verified?,
        };
        if path.verb == verb {
            Ok(path)
        } else {
            Err(SignatureError::OtherCall)
        }
    }

    /// Returns the expired path of a call whose attempt may still report its outcome.
    fn verify_renewal(
        &self,
        presented: PresentedPaths<'_>,
        now: Timestamp,
    ) -> Result<CallbackPath, SignatureError> {
        let expired = self.keys.verify_expired_callback(presented.presigned)?;
        let outcome = self
            .keys
            .verify_callback(presented.renewal, now.unix_seconds())
            .map_err(SignatureError::Renewal)?;
        let expected = CallbackPath {
            verb: CallbackVerb::Finished,
            ..expired.clone()
        };
        if outcome == expected {
            Ok(expired)
        } else {
            Err(SignatureError::OtherRenewal)
        }
    }

    /// Signs a path for a further call of the same attempt. It is valid until the worker would
    /// count as lost, plus a grace.
    pub fn renew(
        &self,
        path: &CallbackPath,
        verb: CallbackVerb,
        heartbeat_timeout: Duration,
        now: Timestamp,
    ) -> String {
        let ttl = whole_seconds(self.grace.heartbeat_signature_ttl(heartbeat_timeout));
        let expires = now.unix_seconds().saturating_add(ttl);
        self.keys.sign_callback(
            &CallbackPath {
                verb,
                ..path.clone()
            },
            expires,
        )
    }
}

/// Returns whether a running attempt may renew this path after an outage. A late start is not
/// accepted, because another attempt may have replaced this one.
fn is_renewable(verb: CallbackVerb) -> bool {
    matches!(verb, CallbackVerb::Heartbeat | CallbackVerb::Logs)
}

/// Rounds up, because a signature must not expire before the time that was promised.
fn whole_seconds(life: Duration) -> i64 {
    i64::try_from(life.as_millis().div_ceil(1_000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use servo_model::limits::HEARTBEAT_TIMEOUT;
    use servo_model::presign::SigningKey;

    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_seconds(1_800_000_000);
    const LONG_AGO: Timestamp = Timestamp::from_unix_seconds(1_799_900_000);

    fn verifier(kid: &str) -> SignatureVerifier {
        let key = SigningKey::new(kid, [7; 32]).unwrap();
        SignatureVerifier::new(
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

    fn signed_at(verifier: &SignatureVerifier, verb: CallbackVerb, at: Timestamp) -> String {
        verifier.renew(&path(verb), verb, HEARTBEAT_TIMEOUT, at)
    }

    fn try_with(
        verifier: &SignatureVerifier,
        signed: &str,
        verb: CallbackVerb,
        change: impl Fn(&mut [String; 4]),
    ) -> Result<(), SignatureError> {
        let own = path(verb);
        let mut names = [
            own.tenant.to_string(),
            own.workspace.to_string(),
            own.run.to_string(),
            own.attempt.to_string(),
        ];
        change(&mut names);
        let [tenant, workspace, run_id, attempt_id] = &names;
        let presented = PresentedPaths {
            presigned: signed,
            renewal: "",
        };
        verifier
            .verify(
                presented,
                verb,
                AttemptNames {
                    tenant,
                    workspace,
                    run_id,
                    attempt_id,
                },
                NOW,
            )
            .map(|_| ())
    }

    /// A call that presents a renewal in addition to its own path.
    fn renew_with(
        verifier: &SignatureVerifier,
        presigned: &str,
        renewal: &str,
        verb: CallbackVerb,
    ) -> Result<(), SignatureError> {
        let own = path(verb);
        let (run_id, attempt_id) = (&own.run.to_string(), &own.attempt.to_string());
        let names = AttemptNames {
            tenant: own.tenant.as_str(),
            workspace: own.workspace.as_str(),
            run_id,
            attempt_id,
        };
        verifier
            .verify(PresentedPaths { presigned, renewal }, verb, names, NOW)
            .map(|_| ())
    }

    #[test]
    fn signature_is_valid_for_its_own_call_only() {
        let verifier = verifier("k1");
        let signed = signed_at(&verifier, CallbackVerb::Heartbeat, NOW);
        assert_eq!(
            try_with(&verifier, &signed, CallbackVerb::Heartbeat, |_| {}),
            Ok(())
        );
        for verb in CallbackVerb::ALL
            .into_iter()
            .filter(|verb| *verb != CallbackVerb::Heartbeat)
        {
            assert_eq!(
                try_with(&verifier, &signed, verb, |_| {}),
                Err(SignatureError::OtherCall),
                "{verb:?}"
            );
        }
        for index in 0..4 {
            let changed = try_with(&verifier, &signed, CallbackVerb::Heartbeat, |names| {
                names[index].push('x')
            });
            assert_eq!(changed, Err(SignatureError::OtherCall), "name {index}");
        }
    }

    #[test]
    fn changed_expired_or_foreign_signature_is_rejected() {
        let own = verifier("k1");
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
        let foreign = signed_at(&verifier("k2"), CallbackVerb::Logs, NOW);
        assert_eq!(
            try_with(&own, &foreign, CallbackVerb::Logs, |_| {}),
            Err(SignatureError::Presigned(PresignError::UnknownKey))
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
    fn f14_signature_lives_for_the_heartbeat_timeout_plus_grace() {
        let verifier = verifier("k1");
        let grace = 3 * SignatureGrace::default().get().as_secs();
        for (timeout, seconds) in [
            (Duration::from_millis(1), 1),
            (Duration::from_millis(1_500), 2),
            (Duration::from_secs(3), 3),
            (HEARTBEAT_TIMEOUT, 300),
            (Duration::from_secs(86_400), 86_400),
        ] {
            let signed_ago = |ago: u64| {
                verifier.renew(
                    &path(CallbackVerb::Heartbeat),
                    CallbackVerb::Heartbeat,
                    timeout,
                    NOW.minus(Duration::from_secs(ago)),
                )
            };
            let tried =
                |ago| try_with(&verifier, &signed_ago(ago), CallbackVerb::Heartbeat, |_| {});
            assert_eq!(tried(seconds + grace), Ok(()), "{timeout:?}");
            assert!(
                tried(seconds + grace + 1).unwrap_err().is_expired(),
                "{timeout:?}"
            );
        }
    }

    #[test]
    fn f14_attempt_renews_expired_heartbeat_and_log_paths_after_an_outage() {
        let verifier = verifier("k1");
        let outcome = signed_at(&verifier, CallbackVerb::Finished, NOW);
        for verb in [CallbackVerb::Heartbeat, CallbackVerb::Logs] {
            let expired = signed_at(&verifier, verb, LONG_AGO);
            assert!(
                renew_with(&verifier, &expired, "", verb)
                    .unwrap_err()
                    .is_expired(),
                "{verb:?}"
            );
            assert_eq!(
                renew_with(&verifier, &expired, &outcome, verb),
                Ok(()),
                "{verb:?}"
            );
        }
    }

    #[test]
    fn f15_renewal_admits_only_heartbeats_and_logs_of_its_own_attempt() {
        let verifier = verifier("k1");
        let beat = CallbackVerb::Heartbeat;
        let (expired, outcome) = (
            signed_at(&verifier, beat, LONG_AGO),
            signed_at(&verifier, CallbackVerb::Finished, NOW),
        );
        let foreign = verifier.renew(
            &path_of("1", CallbackVerb::Finished),
            CallbackVerb::Finished,
            HEARTBEAT_TIMEOUT,
            NOW,
        );
        assert_eq!(
            renew_with(&verifier, &expired, &foreign, beat),
            Err(SignatureError::OtherRenewal)
        );
        for verb in CallbackVerb::ALL
            .into_iter()
            .filter(|verb| *verb != CallbackVerb::Finished)
        {
            let other = signed_at(&verifier, verb, NOW);
            assert_eq!(
                renew_with(&verifier, &expired, &other, beat),
                Err(SignatureError::OtherRenewal),
                "{verb:?}"
            );
        }
        let late = signed_at(&verifier, CallbackVerb::Finished, LONG_AGO);
        assert!(
            renew_with(&verifier, &expired, &late, beat)
                .unwrap_err()
                .is_expired()
        );
        for verb in [CallbackVerb::Start, CallbackVerb::Finished] {
            let expired = signed_at(&verifier, verb, LONG_AGO);
            assert!(
                renew_with(&verifier, &expired, &outcome, verb)
                    .unwrap_err()
                    .is_expired(),
                "{verb:?}"
            );
        }
        let of_logs = signed_at(&verifier, CallbackVerb::Logs, LONG_AGO);
        assert_eq!(
            renew_with(&verifier, &of_logs, &outcome, beat),
            Err(SignatureError::OtherCall)
        );
    }

    #[test]
    fn f15_renewal_does_not_help_a_forged_path() {
        let verifier = verifier("k1");
        let beat = CallbackVerb::Heartbeat;
        let (expired, outcome) = (
            signed_at(&verifier, beat, LONG_AGO),
            signed_at(&verifier, CallbackVerb::Finished, NOW),
        );
        for forged in changed(&expired) {
            assert!(
                renew_with(&verifier, &forged, &outcome, beat).is_err(),
                "{forged}"
            );
        }
        for forged in changed(&outcome) {
            assert!(
                renew_with(&verifier, &expired, &forged, beat).is_err(),
                "{forged}"
            );
        }
        assert_eq!(
            renew_with(&verifier, &outcome, &outcome, beat),
            Err(SignatureError::OtherCall)
        );
        assert_eq!(
            renew_with(&verifier, &outcome, &expired, beat),
            Err(SignatureError::OtherCall)
        );
    }
}
