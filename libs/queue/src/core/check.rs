//! Validation of tasks; the limits are those of Cloud Tasks.

use crate::port::NewEntry;

const NAME_BYTES_MAX: usize = 500;
const BODY_BYTES_MAX: usize = 100_000;
/// The maximum length of a target's address.
pub const URL_BYTES_MAX: usize = 2_083;

/// Returns the field that is wrong and why.
pub(crate) fn check(task: &NewEntry) -> Result<(), (&'static str, String)> {
    let named = task
        .name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if !named || !(1..=NAME_BYTES_MAX).contains(&task.name.len()) {
        let rule = format!("write 1 to {NAME_BYTES_MAX} letters, digits, `-` and `_`");
        return Err(("name", rule));
    }
    let target: Option<http::Uri> = task
        .url
        .parse()
        .ok()
        .filter(|_| task.url.len() <= URL_BYTES_MAX);
    let scheme = target.as_ref().and_then(http::Uri::scheme_str);
    if !matches!(scheme, Some("http" | "https")) {
        let rule = format!("write an http:// or https:// address of at most {URL_BYTES_MAX} bytes");
        return Err(("url", rule));
    }
    match task.body.len() {
        bytes if bytes > BODY_BYTES_MAX => Err((
            "body",
            format!("has {bytes} bytes; {BODY_BYTES_MAX} are allowed"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(change: impl Fn(&mut NewEntry)) -> Option<&'static str> {
        let mut task = NewEntry {
            queue: "dispatch-0".into(),
            name: "d_a".into(),
            tenant: "acme".parse().unwrap(),
            url: "https://worker.example:8443/push".into(),
            body: bytes::Bytes::from_static(b"body"),
            not_before: None,
        };
        change(&mut task);
        check(&task).err().map(|(field, _)| field)
    }

    #[test]
    fn a_fault_names_its_field() {
        assert_eq!(fault(|_| {}), None);
        assert_eq!(fault(|task| task.name.clear()), Some("name"));
        assert_eq!(fault(|task| task.name = "a/b".into()), Some("name"));
        assert_eq!(fault(|task| task.name = "a".repeat(501)), Some("name"));
        for url in ["", "worker", "ftp://worker/", "/push"] {
            assert_eq!(fault(|task| task.url = url.into()), Some("url"), "{url}");
        }
        assert_eq!(
            fault(|task| task.body = vec![0; 100_001].into()),
            Some("body")
        );
    }
}
