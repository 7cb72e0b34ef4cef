use proptest::prelude::*;

use super::*;
use crate::ids::{AttemptId, RunId};

const EXPIRES: i64 = 1_736_942_400;

fn key(kid: &str) -> SigningKey {
    SigningKey::new(kid, kid.repeat(32)).unwrap()
}

fn ring() -> KeyRing {
    KeyRing::new(key("k2"), [key("k1")]).unwrap()
}

fn callback(verb: CallbackVerb) -> CallbackPath {
    CallbackPath {
        tenant: "acme".parse().unwrap(),
        workspace: "prod".parse().unwrap(),
        run: RunId::from_bytes([1; 16]),
        attempt: AttemptId::from_bytes([2; 16]),
        verb,
    }
}

#[test]
fn signed_paths_verify() {
    for verb in CallbackVerb::ALL {
        let presigned = ring().sign_callback(&callback(verb), EXPIRES);
        assert_eq!(
            ring().verify_callback(&presigned, EXPIRES),
            Ok(callback(verb))
        );
    }
}

#[test]
fn f15_every_changed_byte_is_rejected() {
    let presigned = ring().sign_callback(&callback(CallbackVerb::Finished), EXPIRES);
    let mut tried = 0;
    for at in 0..presigned.len() {
        for byte in (0..=127).filter(|byte| *byte != presigned.as_bytes()[at]) {
            let mut forged = presigned.clone().into_bytes();
            forged[at] = byte;
            let forged = String::from_utf8(forged).unwrap();
            assert!(ring().verify("POST", &forged, EXPIRES).is_err(), "{forged}");
            tried += 1;
        }
    }
    assert_eq!(tried, presigned.len() * 127);
}

#[test]
fn truncated_and_extended_paths_are_rejected() {
    let presigned = ring().sign_callback(&callback(CallbackVerb::Heartbeat), EXPIRES);
    for at in 0..presigned.len() {
        assert!(ring().verify("POST", &presigned[..at], EXPIRES).is_err());
        let (head, tail) = presigned.split_at(at);
        for inserted in ["0", "/", "&", "?", "é", "&sig=x", " "] {
            assert!(
                ring()
                    .verify("POST", &format!("{head}{inserted}{tail}"), EXPIRES)
                    .is_err(),
                "{inserted} at {at}"
            );
        }
    }
    assert_eq!(
        ring().verify("POST", &format!("{presigned}A"), EXPIRES),
        Err(PresignError::Malformed)
    );
}

#[test]
fn f15_signature_is_valid_for_one_method_and_path() {
    let start = ring().sign_callback(&callback(CallbackVerb::Start), EXPIRES);
    assert_eq!(
        ring().verify("PUT", &start, EXPIRES),
        Err(PresignError::BadSignature)
    );
    let finish = start.replace("/start?", "/finished?");
    assert_eq!(
        ring().verify_callback(&finish, EXPIRES),
        Err(PresignError::BadSignature)
    );
    let longer = start.replace(&EXPIRES.to_string(), &(EXPIRES + 1).to_string());
    assert_eq!(
        ring().verify_callback(&longer, EXPIRES),
        Err(PresignError::BadSignature)
    );
}

#[test]
fn keys_rotate() {
    let (old, new) = (
        KeyRing::new(key("k1"), []).unwrap(),
        KeyRing::new(key("k2"), []).unwrap(),
    );
    let before = old.sign_callback(&callback(CallbackVerb::Start), EXPIRES);
    assert!(ring().verify_callback(&before, EXPIRES).is_ok());
    assert_eq!(
        new.verify_callback(&before, EXPIRES),
        Err(PresignError::UnknownKey)
    );
    let renamed = before.replace("kid=k1", "kid=k2");
    assert_eq!(
        ring().verify_callback(&renamed, EXPIRES),
        Err(PresignError::BadSignature)
    );
}

#[test]
fn clock_skew_of_a_minute_is_tolerated() {
    let presigned = ring().sign_callback(&callback(CallbackVerb::Heartbeat), EXPIRES);
    for now in [i64::MIN, 0, EXPIRES, EXPIRES + 60] {
        assert!(ring().verify_callback(&presigned, now).is_ok(), "{now}");
    }
    for now in [EXPIRES + 61, i64::MAX] {
        assert_eq!(
            ring().verify_callback(&presigned, now),
            Err(PresignError::Expired),
            "{now}"
        );
    }
}

#[test]
fn signed_path_that_is_not_a_callback_is_rejected() {
    let other = ring().sign("POST", "/v1/tenants/acme", EXPIRES).unwrap();
    assert!(ring().verify("POST", &other, EXPIRES).is_ok());
    assert_eq!(
        ring().verify_callback(&other, EXPIRES),
        Err(PresignError::Malformed)
    );
}

#[test]
fn only_unambiguous_paths_are_signed() {
    for (method, path, expires) in [
        ("post", "/a", 1),
        ("", "/a", 1),
        ("POST", "a", 1),
        ("POST", "/a?b=c", 1),
        ("POST", "/a#b", 1),
        ("POST", "/a\nb", 1),
        ("POST", "/é", 1),
        ("POST", "/a", -1),
    ] {
        assert!(
            ring().sign(method, path, expires).is_err(),
            "{method} {path} {expires}"
        );
    }
    assert!(
        ring()
            .sign("POST", &format!("/{}", "a".repeat(PRESIGNED_BYTES_MAX)), 1)
            .is_err()
    );
}

#[test]
fn keys_have_a_minimum_length_a_name_and_hidden_secrets() {
    assert!(matches!(
        SigningKey::new("k1", [0; 31]),
        Err(KeyError::TooShort { bytes: 31, .. })
    ));
    for kid in ["", "a&b", "ü", "a b", &"k".repeat(KEY_ID_BYTES_MAX + 1)] {
        assert!(
            matches!(SigningKey::new(kid, [0; 32]), Err(KeyError::BadKid(_))),
            "{kid}"
        );
    }
    assert!(matches!(
        KeyRing::new(key("k1"), [key("k1")]),
        Err(KeyError::RepeatedKid(_))
    ));
    assert_eq!(
        format!("{:?}", ring()),
        "KeyRing { keys: [SigningKey(k2), SigningKey(k1)], clock_skew: 60s }"
    );
}

proptest! {
    #[test]
    fn callback_paths_round_trip(run: [u8; 16], attempt: [u8; 16], verb in prop::sample::select(&CallbackVerb::ALL[..])) {
        let path = CallbackPath {
            run: RunId::from_bytes(run),
            attempt: AttemptId::from_bytes(attempt),
            ..callback(verb)
        };
        prop_assert_eq!(path.to_string().parse(), Ok(path));
    }

    #[test]
    fn random_text_is_rejected(noise in "[/a-z0-9?&=_-]{0,40}", now: i64) {
        prop_assert!(ring().verify("POST", &noise, now).is_err());
    }
}

#[test]
fn f31_signature_tolerates_clock_skew_up_to_the_limit() {
    let presigned = ring().sign_callback(&callback(CallbackVerb::Start), EXPIRES);
    let skew = i64::try_from(SignatureGrace::default().get().as_secs()).unwrap();
    for off in [-3_600, -45, 0, 45, skew] {
        assert!(
            ring().verify_callback(&presigned, EXPIRES + off).is_ok(),
            "{off} s"
        );
    }
    assert_eq!(
        ring().verify_callback(&presigned, EXPIRES + skew + 1),
        Err(PresignError::Expired)
    );
}

#[test]
fn key_ring_tolerates_the_configured_skew() {
    let presigned = ring().sign_callback(&callback(CallbackVerb::Logs), EXPIRES);
    for (seconds, off, good) in [(0, 0, true), (0, 1, false), (3, 3, true), (3, 4, false)] {
        let ring = ring().with_grace(SignatureGrace::new(Duration::from_secs(seconds)).unwrap());
        assert_eq!(
            ring.verify_callback(&presigned, EXPIRES + off).is_ok(),
            good,
            "{off} s of {seconds}"
        );
    }
}

#[test]
fn f15_every_changed_byte_of_an_expired_path_is_rejected() {
    let presigned = ring().sign_callback(&callback(CallbackVerb::Heartbeat), EXPIRES);
    assert_eq!(
        ring().verify_expired_callback(&presigned),
        Ok(callback(CallbackVerb::Heartbeat))
    );
    for at in 0..presigned.len() {
        let mut forged = presigned.clone().into_bytes();
        forged[at] ^= 1;
        let forged = String::from_utf8(forged).unwrap();
        assert!(ring().verify_expired_callback(&forged).is_err(), "{forged}");
    }
}

#[test]
fn grace_is_limited() {
    assert_eq!(SignatureGrace::default().get(), Duration::from_secs(60));
    assert!(SignatureGrace::new(SignatureGrace::MAX).is_ok());
    let error = SignatureGrace::new(SignatureGrace::MAX + Duration::from_secs(1))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "is 301s, which would keep signatures valid for too long; set 300s or less"
    );
    assert_eq!(
        SignatureGrace::default().heartbeat_signature_ttl(Duration::from_secs(7)),
        Duration::from_secs(127)
    );
    assert_eq!(
        SignatureGrace::default().heartbeat_signature_ttl(Duration::MAX),
        Duration::MAX
    );
}
