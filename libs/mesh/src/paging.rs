//! Pages of lists: page sizes, and page tokens that are valid only for their own list.
//!
//! A token is a cursor with a keyed hash over it and over everything that shapes the list (method,
//! tenant, filter, …). A token that was changed, or that belongs to another list, is refused.

use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::{Error, Reason};

const TAG_BYTES: usize = 16;

/// Writes and reads the tokens of one service. Every instance of it needs the same keys.
#[derive(Clone)]
pub struct PageTokens {
    /// The first key writes, all keys read.
    keys: Vec<[u8; 32]>,
}

impl PageTokens {
    /// The first key writes tokens and all keys are accepted, so that keys can be rotated. `None`
    /// without a key.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a [u8]>) -> Option<PageTokens> {
        // Derives a key of its own, so that tokens reveal nothing about a key that is also used
        // elsewhere.
        let derive = |key: &[u8]| keyed_hash(key, &["servo page tokens v1"]);
        let keys: Vec<[u8; 32]> = keys.into_iter().map(derive).collect();
        (!keys.is_empty()).then_some(PageTokens { keys })
    }

    /// Returns the token for the entries after `cursor` in `list`.
    pub fn write(&self, list: &[&str], cursor: &str) -> String {
        let mut bytes = tag(&self.keys[0], list, cursor).to_vec();
        bytes.extend_from_slice(cursor.as_bytes());
        BASE64URL_NOPAD.encode(&bytes)
    }

    /// Returns the cursor in a token of the same list; `None` for the first page.
    pub fn read(&self, list: &[&str], token: &str) -> Result<Option<String>, Error> {
        if token.is_empty() {
            return Ok(None);
        }
        let sentence = "is not from this list; use next_page_token of the previous page and leave all other fields unchanged";
        let refused = || {
            Error::new(Reason::InvalidPageToken, format!("page_token: {sentence}"))
                .and_bad_field("page_token", sentence)
        };
        let bytes = BASE64URL_NOPAD
            .decode(token.as_bytes())
            .map_err(|_| refused())?;
        let (tag, cursor) = bytes.split_at_checked(TAG_BYTES).ok_or_else(refused)?;
        let cursor = std::str::from_utf8(cursor).map_err(|_| refused())?;
        let is_signed_with = |key: &[u8; 32]| self::tag(key, list, cursor).as_slice() == tag;
        if !self.keys.iter().any(is_signed_with) {
            return Err(refused());
        }
        Ok(Some(cursor.to_owned()))
    }
}

fn tag(key: &[u8; 32], list: &[&str], cursor: &str) -> [u8; TAG_BYTES] {
    let parts: Vec<&str> = list.iter().copied().chain([cursor]).collect();
    *keyed_hash(key, &parts)
        .first_chunk()
        .expect("a hash is longer than a tag")
}

impl std::fmt::Debug for PageTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PageTokens")
    }
}

/// Returns the number of entries per page: 0 means the default, and `max` is the upper limit.
pub fn page_size(given: i32, default: usize, max: usize) -> Result<usize, Error> {
    match usize::try_from(given) {
        Ok(0) => Ok(default),
        Ok(given) => Ok(given.min(max)),
        Err(_) => Err(Error::bad_field(
            "page_size",
            format!("is {given}; write 1 to {max}, or 0 for {default}"),
        )),
    }
}

/// Includes the length of each part, so that different lists of parts never produce the same bytes.
fn keyed_hash(key: &[u8], parts: &[&str]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part.as_bytes());
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_valid_only_for_its_own_list() {
        let tokens = PageTokens::new([b"secret".as_slice()]).unwrap();
        let token = tokens.write(&["list", "acme", ""], "41");
        assert_eq!(
            tokens
                .read(&["list", "acme", ""], &token)
                .unwrap()
                .as_deref(),
            Some("41")
        );
        assert_eq!(tokens.read(&["list", "acme", ""], "").unwrap(), None);
        let refused = |list: &[&str], token: &str| tokens.read(list, token).unwrap_err().reason();
        assert_eq!(
            refused(&["list", "other", ""], &token),
            Reason::InvalidPageToken
        );
        assert_eq!(
            refused(&["list", "acm", "e"], &token),
            Reason::InvalidPageToken
        );
        let other = PageTokens::new([b"other".as_slice()])
            .unwrap()
            .write(&["list", "acme", ""], "41");
        assert_eq!(
            refused(&["list", "acme", ""], &other),
            Reason::InvalidPageToken
        );
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(
                refused(&["list", "acme", ""], &changed),
                Reason::InvalidPageToken,
                "{at}"
            );
        }
        for wrong in ["x", "%%%", "ä", "AAAA"] {
            assert_eq!(
                refused(&["list", "acme", ""], wrong),
                Reason::InvalidPageToken,
                "{wrong}"
            );
        }
    }

    #[test]
    fn page_sizes_have_a_default_and_a_maximum() {
        assert_eq!(page_size(0, 20, 100).unwrap(), 20);
        assert_eq!(page_size(7, 20, 100).unwrap(), 7);
        assert_eq!(page_size(1000, 20, 100).unwrap(), 100);
        assert_eq!(
            page_size(-1, 20, 100).unwrap_err().reason(),
            Reason::InvalidField
        );
    }
}
