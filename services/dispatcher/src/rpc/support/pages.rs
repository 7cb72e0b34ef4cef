//! One page of a list.

use servo_mesh::paging::page_size;
use servo_mesh::{Error, PageTokens};
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};

/// The parts of a request that choose a page, and the list, tenant and filter that its token is
/// valid for.
pub(in crate::rpc) struct Pages<'a> {
    pub(in crate::rpc) tokens: &'a PageTokens,
    pub(in crate::rpc) list: &'a str,
    pub(in crate::rpc) tenant: &'a str,
    pub(in crate::rpc) filter: &'a str,
}

impl Pages<'_> {
    /// Returns the position of the last entry that was listed, if any, and the page size.
    pub(in crate::rpc) fn begin(
        &self,
        size: i32,
        token: &str,
    ) -> Result<(Option<String>, usize), Error> {
        let after = self.tokens.read(&self.scope(), token)?;
        Ok((after, page_size(size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?))
    }

    /// Returns the page that starts after the token. `entries` must be sorted by `key`.
    pub(in crate::rpc) fn select<T>(
        &self,
        entries: Vec<T>,
        key: impl Fn(&T) -> String,
        size: i32,
        token: &str,
    ) -> Result<(Vec<T>, String), Error> {
        let (after, size) = self.begin(size, token)?;
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

    /// The token of the page after this position.
    pub(in crate::rpc) fn write(&self, after: &str) -> String {
        self.tokens.write(&self.scope(), after)
    }

    fn scope(&self) -> [&str; 3] {
        [self.list, self.tenant, self.filter]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(tokens: &PageTokens) -> Pages<'_> {
        Pages {
            tokens,
            list: "l",
            tenant: "t",
            filter: "",
        }
    }

    #[test]
    fn pages_have_no_gaps_or_repeats() {
        let tokens = PageTokens::new([b"key".as_slice()]).unwrap();
        let all: Vec<String> = (10..95).map(|number| number.to_string()).collect();
        let (mut seen, mut token) = (Vec::new(), String::new());
        loop {
            let page = pages(&tokens).select(all.clone(), String::clone, 30, &token);
            let (page, next) = page.unwrap();
            seen.extend(page);
            token = next;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(seen, all);
    }

    #[test]
    fn a_token_of_another_filter_is_rejected() {
        let tokens = PageTokens::new([b"key".as_slice()]).unwrap();
        let all: Vec<String> = (10..95).map(|number| number.to_string()).collect();
        let first = pages(&tokens).select(all.clone(), String::clone, 30, "");
        let token = first.unwrap().1;
        let other = Pages {
            filter: "state = LOST",
            ..pages(&tokens)
        };
        assert!(other.select(all, String::clone, 30, &token).is_err());
    }
}
