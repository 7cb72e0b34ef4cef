//! Whether an output is committed: its marker is in a folder of the attempt, has the digest that
//! the worker reports, and names this attempt.

use servo_model::presign::CallbackPath;
use servo_model::{AttemptId, Digest, RunId};

/// The marker file. Written last and never overwritten.
pub const MARKER: &str = "_commit.json";

/// Why an output does not count as committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCommitted {
    #[error("there is no commit marker at {0}; write {MARKER} last, then report")]
    Missing(String),
    #[error("the commit marker at {uri} has the sha256 {found}; report that as commit_digest")]
    OtherDigest { uri: String, found: String },
    #[error("the commit marker at {0} is not a JSON object with run_id and materialization_id")]
    Unreadable(String),
    #[error("the commit marker at {uri} has {field} {found}, which is not this attempt's")]
    Foreign {
        uri: String,
        field: &'static str,
        found: String,
    },
}

/// The URI is not in a folder of the attempt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is outside the attempt's folder; write below the envelope's output_uri")]
pub struct OutsideFolder;

/// Returns the path segments of `uri` below the base. They must begin with the attempt's tenant and
/// workspace, contain the attempt id, and have no dot segments.
pub fn output_folder<'a>(
    base: &str,
    uri: &'a str,
    path: &CallbackPath,
) -> Result<Vec<&'a str>, OutsideFolder> {
    let below = uri
        .strip_prefix(base.trim_end_matches('/'))
        .and_then(|rest| rest.strip_prefix('/'));
    let parts: Vec<&str> = below
        .ok_or(OutsideFolder)?
        .trim_end_matches('/')
        .split('/')
        .collect();
    let is_unsafe = |part: &&str| matches!(*part, "" | "." | "..") || part.contains(['\\', '\0']);
    let attempt = path.attempt.to_string();
    match parts.as_slice() {
        [tenant, workspace, rest @ ..]
            if *tenant == path.tenant.as_str()
                && *workspace == path.workspace.as_str()
                && rest.contains(&attempt.as_str())
                && !parts.iter().any(is_unsafe) =>
        {
            Ok(parts)
        }
        _ => Err(OutsideFolder),
    }
}

/// Checks that the marker at `uri` belongs to the attempt and has the reported digest.
pub fn check_marker(
    uri: &str,
    marker: &[u8],
    reported: &str,
    run: &RunId,
    attempt: &AttemptId,
) -> Result<(), NotCommitted> {
    let found = Digest::of(marker).to_string();
    if found != reported {
        return Err(NotCommitted::OtherDigest {
            uri: uri.to_owned(),
            found,
        });
    }
    let unreadable = || NotCommitted::Unreadable(uri.to_owned());
    let fields: serde_json::Value = serde_json::from_slice(marker).map_err(|_| unreadable())?;
    for (field, own) in [
        ("run_id", run.to_string()),
        ("materialization_id", attempt.to_string()),
    ] {
        let found = fields[field].as_str().ok_or_else(unreadable)?;
        if found != own {
            let (uri, found) = (uri.to_owned(), found.chars().take(64).collect());
            return Err(NotCommitted::Foreign { uri, field, found });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "file:///data";

    fn path() -> CallbackPath {
        let text = format!(
            "/v1/tenants/acme/workspaces/prod/runs/run_{}/attempts/{}/finished",
            "a".repeat(26),
            "0".repeat(26)
        );
        text.parse().unwrap()
    }

    #[test]
    fn output_must_be_in_a_folder_of_its_attempt() {
        let (of, attempt) = (path(), "0".repeat(26));
        for good in ["x/y/{}", "x/y/{}/", "x/y/day=d:2026-01-01/{}/part"] {
            let uri = format!("{BASE}/acme/prod/{}", good.replace("{}", &attempt));
            for base in [BASE, "file:///data/"] {
                assert!(output_folder(base, &uri, &of).is_ok(), "{uri}");
            }
        }
        for bad in [
            "acme/prod/x/y/1",
            "other/prod/x/y/{}",
            "acme/test/x/y/{}",
            "acme/prod/x/../../../etc/{}",
            "acme/prod/x//{}",
            "acme/prod/./{}",
            "{}",
            "",
        ] {
            let uri = format!("{BASE}/{}", bad.replace("{}", &attempt));
            assert_eq!(output_folder(BASE, &uri, &of), Err(OutsideFolder), "{uri}");
        }
        for foreign in [
            "file:///database/acme/prod/{}",
            "gs://data/acme/prod/{}",
            "/data/acme/prod/{}",
        ] {
            assert_eq!(
                output_folder(BASE, &foreign.replace("{}", &attempt), &of),
                Err(OutsideFolder),
                "{foreign}"
            );
        }
    }

    #[test]
    fn marker_must_belong_to_the_attempt_and_match_the_report() {
        let of = path();
        let judge = |marker: &str, digest: Option<&str>| {
            let own = Digest::of(marker.as_bytes()).to_string();
            check_marker(
                "p",
                marker.as_bytes(),
                digest.unwrap_or(&own),
                &of.run,
                &of.attempt,
            )
        };
        let marker = |run: &str, attempt: &str| {
            format!(r#"{{"run_id":"{run}","materialization_id":"{attempt}"}}"#)
        };
        let (run, attempt) = (of.run.to_string(), of.attempt.to_string());
        assert_eq!(judge(&marker(&run, &attempt), None), Ok(()));
        assert!(matches!(
            judge(&marker(&run, &attempt), Some("00")),
            Err(NotCommitted::OtherDigest { .. })
        ));
        for (text, field) in [
            (marker("run_b", &attempt), "run_id"),
            (marker(&run, "other"), "materialization_id"),
        ] {
            let error = judge(&text, None).unwrap_err();
            assert!(
                matches!(error, NotCommitted::Foreign { field: at, .. } if at == field),
                "{error}"
            );
        }
        for broken in [
            "",
            "[]",
            "7",
            r#"{"run_id":7}"#,
            &format!(r#"{{"run_id":"{run}"}}"#),
        ] {
            assert!(
                matches!(judge(broken, None), Err(NotCommitted::Unreadable(_))),
                "{broken}"
            );
        }
    }
}
