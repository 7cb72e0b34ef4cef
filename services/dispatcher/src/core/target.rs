//! Where workers may ask to be pushed to. Whoever registers a worker chooses what this service calls, so an operator
//! says first which places may be called.

use http::Uri;
use http::uri::PathAndQuery;

/// A place that pushes may go to: scheme and host, optionally a port and the beginning of a path. Without a port every
/// port of the host is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    scheme: String,
    host: String,
    port: Option<u16>,
    path: String,
}

/// Whether one of these places covers `url`.
pub(crate) fn allows(targets: &[String], url: &str) -> bool {
    let covers = |url: Target| {
        targets
            .iter()
            .filter_map(|one| Target::parse(one))
            .any(|one| one.covers(&url))
    };
    Target::parse(url).is_some_and(covers)
}

impl Target {
    /// Read as the sender reads it, so that both mean the same place.
    pub(crate) fn parse(text: &str) -> Option<Target> {
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
        good.then(|| Target {
            scheme: scheme.to_owned(),
            host: authority.host().to_ascii_lowercase(),
            port,
            path: uri
                .path_and_query()
                .map_or("/", PathAndQuery::as_str)
                .to_owned(),
        })
    }

    /// Whether pushes to `url` are pushes to here.
    pub(crate) fn covers(&self, url: &Target) -> bool {
        let below = url.path.strip_prefix(self.path.trim_end_matches('/'));
        self.scheme == url.scheme
            && self.host == url.host
            && self.port.is_none_or(|port| Some(port) == url.port)
            && below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
    }
}

/// Whether a server may find something else under the path than what it says, dots in any writing.
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
    fn a_target_covers_its_own_host_only() {
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
    fn ports_and_paths_narrow_it() {
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
    fn what_is_no_address_is_nobody() {
        for text in [
            "",
            "work.example",
            "ftp://work.example",
            "https://",
            "https://a b/",
            "https://a:port",
        ] {
            assert_eq!(Target::parse(text), None, "{text}");
        }
    }
}
