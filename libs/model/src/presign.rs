//! Presigned callbacks: a path, its expiry and a signature over both, verified without a database.
//!
//! The signed text is `v1\nMETHOD\npath\nexpires\nkid`. The presigned path is
//! `path?expires=…&kid=…&sig=…`, in a URL or in the gRPC metadata `servo-presigned`. Only that
//! spelling is accepted. Keys rotate by `kid`: a ring signs with one key and still accepts the
//! others.

mod callback;
mod grace;

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use subtle::ConstantTimeEq;

pub use callback::{CallbackPath, CallbackVerb};
pub use grace::{GraceTooLong, SignatureGrace};

use crate::hash::hmac_sha256;
use crate::limits::{KEY_ID_BYTES_MAX, PRESIGNED_BYTES_MAX, SECRET_BYTES_MIN};
use crate::text::excerpt;

/// A named secret that signs callbacks and nothing else.
#[derive(Clone)]
pub struct SigningKey {
    kid: String,
    secret: Vec<u8>,
}

impl SigningKey {
    pub fn new(kid: &str, secret: impl Into<Vec<u8>>) -> Result<SigningKey, KeyError> {
        let secret = secret.into();
        if !is_kid(kid) {
            return Err(KeyError::BadKid(excerpt(kid)));
        }
        if secret.len() < SECRET_BYTES_MIN {
            return Err(KeyError::TooShort {
                kid: kid.to_owned(),
                bytes: secret.len(),
            });
        }
        Ok(SigningKey {
            kid: kid.to_owned(),
            secret,
        })
    }

    fn signature(&self, method: &str, path: &str, expires: i64) -> [u8; 32] {
        let message = format!("v1\n{method}\n{path}\n{expires}\n{}", self.kid);
        hmac_sha256(&self.secret, message.as_bytes())
    }
}

/// Shows the key id only, never the secret.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.kid)
    }
}

/// The valid keys: the first one signs, all of them verify.
#[derive(Debug, Clone)]
pub struct KeyRing {
    keys: Vec<SigningKey>,
    /// How far the signer's clock may be ahead of this one.
    clock_skew: Duration,
}

impl KeyRing {
    pub fn new(
        current: SigningKey,
        others: impl IntoIterator<Item = SigningKey>,
    ) -> Result<KeyRing, KeyError> {
        let mut ring = KeyRing {
            keys: vec![current],
            clock_skew: SignatureGrace::default().get(),
        };
        for key in others {
            if ring.key(&key.kid).is_some() {
                return Err(KeyError::RepeatedKid(key.kid));
            }
            ring.keys.push(key);
        }
        Ok(ring)
    }

    /// Replaces the default clock skew of one minute.
    #[must_use]
    pub fn with_grace(self, grace: SignatureGrace) -> KeyRing {
        KeyRing {
            clock_skew: grace.get(),
            ..self
        }
    }

    /// `expires` is a Unix time in seconds.
    pub fn sign(&self, method: &str, path: &str, expires: i64) -> Result<String, CannotSign> {
        let signed = self.signed(method, path, expires);
        let fits = is_method(method)
            && is_path(path)
            && expires >= 0
            && signed.len() <= PRESIGNED_BYTES_MAX;
        fits.then_some(signed)
            .ok_or_else(|| CannotSign(excerpt(path)))
    }

    /// Signs the path of a worker's call; every verb has its own signature.
    pub fn sign_callback(&self, path: &CallbackPath, expires: i64) -> String {
        self.signed(CallbackPath::METHOD, &path.to_string(), expires.max(0))
    }

    /// Returns the signed path if its signature is valid and it has not expired at `now`.
    pub fn verify<'a>(
        &self,
        method: &str,
        presigned: &'a str,
        now: i64,
    ) -> Result<Verified<'a>, PresignError> {
        let verified = self.verify_at_any_time(method, presigned)?;
        if now.saturating_sub(verified.expires) > self.clock_skew.as_secs().cast_signed() {
            return Err(PresignError::Expired);
        }
        Ok(verified)
    }

    /// Returns the worker's call that was signed.
    pub fn verify_callback(&self, presigned: &str, now: i64) -> Result<CallbackPath, PresignError> {
        self.verify(CallbackPath::METHOD, presigned, now)?
            .callback()
    }

    /// Returns the worker's call that was signed, even if it has expired. This is not sufficient
    /// for access: the caller must also present a signature that is still valid.
    pub fn verify_expired_callback(&self, presigned: &str) -> Result<CallbackPath, PresignError> {
        self.verify_at_any_time(CallbackPath::METHOD, presigned)?
            .callback()
    }

    fn verify_at_any_time<'a>(
        &self,
        method: &str,
        presigned: &'a str,
    ) -> Result<Verified<'a>, PresignError> {
        let parts = Parts::parse(presigned).ok_or(PresignError::Malformed)?;
        let key = self.key(parts.kid).ok_or(PresignError::UnknownKey)?;
        let expected = key.signature(method, parts.path, parts.expires);
        if !bool::from(expected.ct_eq(&parts.signature)) {
            return Err(PresignError::BadSignature);
        }
        Ok(Verified {
            path: parts.path,
            expires: parts.expires,
        })
    }

    fn key(&self, kid: &str) -> Option<&SigningKey> {
        self.keys.iter().find(|key| key.kid == kid)
    }

    fn signed(&self, method: &str, path: &str, expires: i64) -> String {
        let key = &self.keys[0];
        let signature = BASE64URL_NOPAD.encode(&key.signature(method, path, expires));
        format!("{path}?expires={expires}&kid={}&sig={signature}", key.kid)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified<'a> {
    pub path: &'a str,
    pub expires: i64,
}

impl Verified<'_> {
    fn callback(self) -> Result<CallbackPath, PresignError> {
        self.path.parse().map_err(|_| PresignError::Malformed)
    }
}

/// Why a presigned path is rejected. The variants give a forger no hint about how close an attempt
/// was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PresignError {
    #[error("the presigned path is malformed; send it exactly as it was received")]
    Malformed,
    #[error("the presigned path names an unknown or retired key; request a new path")]
    UnknownKey,
    #[error(
        "the signature does not belong to this method and path; send them exactly as they were received"
    )]
    BadSignature,
    #[error(
        "the presigned path has expired; each heartbeat returns a new one, and a late heartbeat or log call may send \
         the attempt's path for finished in addition"
    )]
    Expired,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error(
        "the key id `{0}` is refused: write 1 to {KEY_ID_BYTES_MAX} letters, digits, `-` and `_`"
    )]
    BadKid(String),
    #[error("the key `{kid}` has {bytes} bytes; use at least {SECRET_BYTES_MIN} random bytes")]
    TooShort { kid: String, bytes: usize },
    #[error("the key id `{0}` appears twice; give every key its own")]
    RepeatedKid(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be signed: the method is upper-case letters, the path printable ASCII beginning with `/` without \
     `?` and `#`, the expiry not negative, the whole at most {PRESIGNED_BYTES_MAX} bytes"
)]
pub struct CannotSign(pub String);

struct Parts<'a> {
    path: &'a str,
    expires: i64,
    kid: &'a str,
    signature: [u8; 32],
}

impl<'a> Parts<'a> {
    fn parse(presigned: &'a str) -> Option<Parts<'a>> {
        if presigned.len() > PRESIGNED_BYTES_MAX {
            return None;
        }
        let (path, query) = presigned.split_once("?expires=")?;
        let (expires, rest) = query.split_once("&kid=")?;
        let (kid, signature) = rest.split_once("&sig=")?;
        let signature = BASE64URL_NOPAD
            .decode(signature.as_bytes())
            .ok()?
            .try_into()
            .ok()?;
        Some(Parts {
            path,
            expires: second(expires)?,
            kid,
            signature,
        })
    }
}

fn second(text: &str) -> Option<i64> {
    text.parse()
        .ok()
        .filter(|second: &i64| *second >= 0 && second.to_string() == text)
}

fn is_method(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn is_path(text: &str) -> bool {
    text.starts_with('/')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'?' && byte != b'#')
}

fn is_kid(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=KEY_ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(inner)
}
