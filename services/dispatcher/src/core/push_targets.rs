//! Addresses that pushes may go to. A worker's registration chooses the URL that this service
//! calls, so an operator must allow it first.

use http::Uri;
use http::uri::PathAndQuery;

/// An allowed address: scheme and host, optionally a port and a path prefix. Without a port it
/// covers every port of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PushTarget {
    scheme: String,
    host: String,
    port: Option<u16>,
    path: String,
}

/// Returns whether one of these targets covers `url`.
pub(crate) fn allows(targets: &[String], url: &str) -> bool {
    let covers = |url: PushTarget| {
        targets
            .iter()
            .filter_map(|one| PushTarget::parse(one))
            .any(|one| one.covers(&url))
    };
    PushTarget::parse(url).is_some_and(covers)
}

impl PushTarget {
    /// Parses the URL with the same parser that the pusher uses, so that both see the same address.
    pub(crate) fn parse(text: &str) -> Option<PushTarget> {
        let uri: Uri = text.parse().ok()?;
        let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
        let port = authority.as_str().strip_prefix(authority.host())?;
        let port = match port.strip_prefix(':') {
            Some(port) => Some(port.parse().ok()?),
            None if port.is_empty() => None,
            None => return None,
        };
        let good = matches!(scheme, "http" | "https")
            && !authority.host().is_empty()
            && !climbs(uri.path());
        good.then(|| PushTarget {
            scheme: scheme.to_owned(),
            host: authority.host().to_ascii_lowercase(),
            port,
            path: uri
                .path_and_query()
                .map_or("/", PathAndQuery::as_str)
                .to_owned(),
        })
    }

    /// Returns whether `url` lies below this target.
    pub(crate) fn covers(&self, url: &PushTarget) -> bool {
        let below = url.path.strip_prefix(self.path.trim_end_matches('/'));
        self.scheme == url.scheme
            && self.host == url.host
            && self.port.is_none_or(|port| Some(port) == url.port)
            && below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
    }
}

/// Returns whether a server could resolve the path to something above it: dot segments in any
/// encoding.
fn climbs(path: &str) -> bool {
    let plain = path
        .to_ascii_lowercase()
        .replace("%2e", ".")
        .replace("%2f", "/")
        .replace(['\\', ';'], "/");
    plain.contains("%5c") || plain.split('/').any(|part| part == "." || part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(allowed: &str, url: &str, expected: bool) {
        assert_eq!(
            allows(&[allowed.to_owned()], url),
            expected,
            "{url} by {allowed}"
        );
    }

    #[test]
    fn target_covers_only_its_own_host() {
        check("https://work.example", "https://work.example/push", true);
        check("https://work.example", "https://WORK.example:8443", true);
        check("https://work.example", "http://work.example/push", false);
        check(
            "https://work.example",
            "https://work.example.evil.com/",
            false,
        );
        check(
            "https://work.example",
            "https://work.example@evil.com/",
            false,
        );
        check(
            "https://work.example",
            "https://evil.com/work.example",
            false,
        );
        check("http://[::1]", "http://[::1]:80/push", true);
    }

    #[test]
    fn ports_and_paths_narrow_a_target() {
        check(
            "https://work.example:8443/push",
            "https://work.example:8443/push/a",
            true,
        );
        check(
            "https://work.example:8443/push",
            "https://work.example:8443/push?a=b",
            true,
        );
        check(
            "https://work.example:8443/push",
            "https://work.example/push",
            false,
        );
        check(
            "https://work.example:8443/push",
            "https://work.example:8443/pushed",
            false,
        );
        for climbing in [
            "..",
            "%2e%2E",
            ".%2e",
            "..;x",
            "%2e%2e%2fadmin",
            "..%5cadmin",
        ] {
            check(
                "https://work.example/push",
                &format!("https://work.example/push/{climbing}/admin"),
                false,
            );
        }
        check(
            "https://work.example/push",
            "https://work.example/push/v1..2",
            true,
        );
        check("https://work.example/", "https://work.example", true);
    }

    #[test]
    fn invalid_address_is_not_a_target() {
        for text in [
            "",
            "work.example",
            "ftp://work.example",
            "https://",
            "https://a b/",
            "https://a:port",
        ] {
            assert_eq!(PushTarget::parse(text), None, "{text}");
        }
    }
}
