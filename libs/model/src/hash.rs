//! The hashes that ids are made of, and the lower-case base32 they are written in.

use std::fmt::{self, Write};
use std::str::FromStr;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};

use crate::text::{IdError, written_as_text};

/// The length of 16 bytes in base32. Longer hashes are truncated to it.
const BASE32_CHARS: usize = 26;

/// A sha256, printed as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(bytes: impl AsRef<[u8]>) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    pub const fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first half, used for ids of 16 bytes.
    pub(crate) fn first_half(&self) -> [u8; 16] {
        *self.0.first_chunk().expect("32 bytes have a first half")
    }

    pub(crate) fn base32_prefix(&self) -> Base32Prefix {
        Base32Prefix(
            *base32(&self.0)
                .as_bytes()
                .first_chunk()
                .expect("32 bytes are 52 characters"),
        )
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl FromStr for Digest {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let bytes = HEXLOWER
            .decode(text.as_bytes())
            .ok()
            .and_then(|bytes| bytes.try_into().ok());
        bytes
            .map(Digest)
            .ok_or_else(|| IdError::new("sha256", text, "write 64 lower-case hexadecimal digits"))
    }
}

written_as_text!(Digest);

/// The first 26 base32 characters of a digest. Stored as characters, because they hold two bits
/// more than 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Base32Prefix([u8; BASE32_CHARS]);

impl Base32Prefix {
    pub(crate) fn parse(text: &str) -> Option<Base32Prefix> {
        let chars: [u8; BASE32_CHARS] = text.as_bytes().try_into().ok()?;
        chars
            .iter()
            .copied()
            .all(is_base32)
            .then_some(Base32Prefix(chars))
    }
}

impl fmt::Display for Base32Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|&byte| f.write_char(char::from(byte)))
    }
}

pub(crate) fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// RFC 4648 base32, lower case, without padding.
pub(crate) fn base32(bytes: &[u8]) -> String {
    BASE32_NOPAD.encode(bytes).to_ascii_lowercase()
}

/// The 16 bytes that print as exactly this text. Upper case and unused bits after the last byte are
/// rejected, so that no two texts name the same id.
pub(crate) fn base32_id(text: &str) -> Option<[u8; 16]> {
    if text.len() != BASE32_CHARS || !text.bytes().all(is_base32) {
        return None;
    }
    let bytes = BASE32_NOPAD
        .decode(text.to_ascii_uppercase().as_bytes())
        .ok()?;
    bytes.try_into().ok()
}

const fn is_base32(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'2'..=b'7')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_of_the_empty_text_is_the_published_one() {
        assert_eq!(
            Digest::of("").to_string(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn digests_round_trip() {
        let digest = Digest::of("x");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for text in [
            String::new(),
            digest.to_string().to_uppercase(),
            digest.to_string()[1..].to_owned(),
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }

    #[test]
    fn hmac_matches_rfc_4231_case_2() {
        let mac = hmac_sha256(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(
            HEXLOWER.encode(&mac),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn base32_has_one_spelling_per_id() {
        let text = base32(&[0xff; 16]);
        assert_eq!(text, "77777777777777777777777774");
        assert_eq!(base32_id(&text), Some([0xff; 16]));
        for other in [
            "77777777777777777777777775",
            "7777777777777777777777777",
            "A7777777777777777777777774",
            "",
        ] {
            assert_eq!(base32_id(other), None, "{other}");
        }
    }
}
