//! Where workers may ask to be pushed to. Whoever registers a worker chooses what this service calls, so an operator
//! says first which places may be called.

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
    let covers =
        |url: Target| targets.iter().filter_map(|one| Target::parse(one)).any(|one| one.covers(&url));
    Target::parse(url).is_some_and(covers)
}

impl Target {
    pub(crate) fn parse(text: &str) -> Option<Target> {
        let (scheme, rest) = text.split_once("://")?;
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (host, port) = match authority.rsplit_once(':') {
            // The colon of an address in brackets is no port's.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok()?)),
            _ => (authority, None),
        };
        let good = matches!(scheme, "http" | "https")
            && !host.is_empty()
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-[]:".contains(&byte))
            && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
            && !path.split(['/', '?']).any(|part| part == "..");
        good.then(|| Target {
            scheme: scheme.to_owned(),
            host: host.to_ascii_lowercase(),
            port,
            path: path.to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(allowed: &str, url: &str, expected: bool) {
        assert_eq!(allows(&[allowed.to_owned()], url), expected, "{url} by {allowed}");
    }

    #[test]
    fn a_target_covers_its_own_host_only() {
        check("https://work.example", "https://work.example/push", true);
        check("https://work.example", "https://WORK.example:8443", true);
        check("https://work.example", "http://work.example/push", false);
        check("https://work.example", "https://work.example.evil.com/", false);
        check("https://work.example", "https://work.example@evil.com/", false);
        check("https://work.example", "https://evil.com/work.example", false);
        check("http://[::1]", "http://[::1]:80/push", true);
    }

    #[test]
    fn ports_and_paths_narrow_it() {
        check("https://work.example:8443/push", "https://work.example:8443/push/a", true);
        check("https://work.example:8443/push", "https://work.example:8443/push?a=b", true);
        check("https://work.example:8443/push", "https://work.example/push", false);
        check("https://work.example:8443/push", "https://work.example:8443/pushed", false);
        check("https://work.example/push", "https://work.example/push/../admin", false);
        check("https://work.example/", "https://work.example", true);
    }

    #[test]
    fn what_is_no_address_is_nobody() {
        for text in ["", "work.example", "ftp://work.example", "https://", "https://a b/", "https://a:port"] {
            assert_eq!(Target::parse(text), None, "{text}");
        }
    }
}
