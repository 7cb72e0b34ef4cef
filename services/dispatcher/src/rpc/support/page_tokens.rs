//! Page tokens: the position of the last entry, signed together with the list, tenant and filter.

use data_encoding::BASE64URL_NOPAD;
use servo_mesh::{Error, Reason};
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};

use crate::envelope::hmac;

const MAC_BYTES: usize = 16;

/// A list, tenant and filter. A token is valid only for the combination that it was issued for.
pub(in crate::rpc) struct Pages<'a> {
    pub(in crate::rpc) secret: &'a [u8],
    pub(in crate::rpc) list: &'a str,
    pub(in crate::rpc) tenant: &'a str,
    pub(in crate::rpc) filter: &'a str,
}

impl Pages<'_> {
    /// Returns the position of the last entry that was listed, if any, and the page size.
    pub(in crate::rpc) fn begin(
        &self,
        page_size: i32,
        token: &str,
    ) -> Result<(Option<String>, usize), Error> {
        Ok((self.read(token)?, size(page_size)?))
    }

    /// Returns the page that starts after the token. `entries` must be sorted by `key`.
    pub(in crate::rpc) fn cut<T>(
        &self,
        entries: Vec<T>,
        key: impl Fn(&T) -> String,
        page_size: i32,
        token: &str,
    ) -> Result<(Vec<T>, String), Error> {
        let (after, size) = self.begin(page_size, token)?;
        let mut rest = entries
            .into_iter()
            .filter(|entry| after.as_ref().is_none_or(|after| key(entry) > *after));
        let page: Vec<T> = rest.by_ref().take(size).collect();
        let more = rest.next().is_some();
        let next = page
            .last()
            .filter(|_| more)
            .map(|last| self.write(&key(last)))
            .unwrap_or_default();
        Ok((page, next))
    }

    pub(in crate::rpc) fn write(&self, after: &str) -> String {
        BASE64URL_NOPAD.encode(&[&self.mac(after)[..MAC_BYTES], after.as_bytes()].concat())
    }

    fn read(&self, token: &str) -> Result<Option<String>, Error> {
        if token.is_empty() {
            return Ok(None);
        }
        let message =
            "page_token is invalid, or belongs to another list or filter; start without it";
        let wrong = || Error::new(Reason::InvalidPageToken, message);
        let bytes = BASE64URL_NOPAD
            .decode(token.as_bytes())
            .map_err(|_| wrong())?;
        let (mac, after) = bytes.split_at_checked(MAC_BYTES).ok_or_else(wrong)?;
        let after = String::from_utf8(after.to_vec()).map_err(|_| wrong())?;
        if self.mac(&after)[..MAC_BYTES] == *mac {
            Ok(Some(after))
        } else {
            Err(wrong())
        }
    }

    fn mac(&self, after: &str) -> [u8; 32] {
        let Pages {
            list,
            tenant,
            filter,
            ..
        } = self;
        hmac(
            self.secret,
            format!("page v1\n{list}\n{tenant}\n{filter}\n{after}").as_bytes(),
        )
    }
}

fn size(requested: i32) -> Result<usize, Error> {
    match usize::try_from(requested) {
        Ok(0) => Ok(PAGE_SIZE_DEFAULT),
        Ok(size) => Ok(size.min(PAGE_SIZE_MAX)),
        Err(_) => Err(Error::bad_field(
            "page_size",
            format!("is {requested}; 1 to {PAGE_SIZE_MAX} are allowed"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: Pages<'static> = Pages {
        secret: b"s",
        list: "l",
        tenant: "t",
        filter: "",
    };

    #[test]
    fn pages_have_no_gaps_or_repeats() {
        let all: Vec<String> = (10..95).map(|number| number.to_string()).collect();
        let (mut seen, mut token) = (Vec::new(), String::new());
        loop {
            let (page, next) = PAGES.cut(all.clone(), String::clone, 30, &token).unwrap();
            seen.extend(page);
            token = next;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(seen, all);
    }

    #[test]
    fn changed_or_foreign_page_token_is_rejected() {
        let all: Vec<String> = (10..95).map(|number| number.to_string()).collect();
        let (_, token) = PAGES.cut(all.clone(), String::clone, 30, "").unwrap();
        let mut changed = token.clone().into_bytes();
        changed[3] ^= 1;
        let changed = String::from_utf8(changed).unwrap();
        assert!(PAGES.cut(all.clone(), String::clone, 30, &changed).is_err());
        let other = Pages {
            filter: "state = LOST",
            ..PAGES
        };
        assert!(other.cut(all.clone(), String::clone, 30, &token).is_err());
        assert!(PAGES.cut(all.clone(), String::clone, -1, "").is_err());
        assert!(PAGES.cut(all, String::clone, 30, "x").is_err());
    }
}
