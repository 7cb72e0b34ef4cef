//! Whether what an attempt wrote is committed: its marker lies in a folder of that attempt alone, is what the worker
//! says it is, and was written by nobody else.

use servo_model::presign::CallbackPath;
use servo_model::{AttemptId, Digest, RunId};

/// Written last, and never over another.
pub const MARKER: &str = "_commit.json";

/// Why an output does not count as committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCommitted {
    #[error("there is no commit marker at {0}; write {MARKER} last, then report")]
    Missing(String),
    #[error("the commit marker at {place} has the sha256 {found}; report that as commit_digest")]
    OtherDigest { place: String, found: String },
    #[error("the commit marker at {0} is not a JSON object with run_id and materialization_id")]
    Unreadable(String),
    #[error("the commit marker at {place} is of {field} {found}, not of this attempt")]
    Foreign {
        place: String,
        field: &'static str,
        found: String,
    },
}

/// Why a place cannot be one of the attempt's outputs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("lies outside of the attempt's folder; write below the envelope's output_uri")]
pub struct Elsewhere;

/// The parts below the base of the folder that `uri` names: of the attempt's tenant and workspace, and somewhere in it
/// the attempt itself. Nothing in it may climb.
pub fn folder<'a>(base: &str, uri: &'a str, of: &CallbackPath) -> Result<Vec<&'a str>, Elsewhere> {
    let below = uri
        .strip_prefix(base.trim_end_matches('/'))
        .and_then(|rest| rest.strip_prefix('/'));
    let parts: Vec<&str> = below
        .ok_or(Elsewhere)?
        .trim_end_matches('/')
        .split('/')
        .collect();
    let climbs = |part: &&str| matches!(*part, "" | "." | "..") || part.contains(['\\', '\0']);
    let attempt = of.attempt.to_string();
    match parts.as_slice() {
        [tenant, workspace, rest @ ..]
            if *tenant == of.tenant.as_str()
                && *workspace == of.workspace.as_str()
                && rest.contains(&attempt.as_str())
                && !parts.iter().any(climbs) =>
        {
            Ok(parts)
        }
        _ => Err(Elsewhere),
    }
}

/// Whether the marker found at `place` is the attempt's own, and the one that was reported.
pub fn check(
    place: &str,
    marker: &[u8],
    reported: &str,
    run: &RunId,
    attempt: &AttemptId,
) -> Result<(), NotCommitted> {
    let found = Digest::of(marker).to_string();
    if found != reported {
        return Err(NotCommitted::OtherDigest {
            place: place.to_owned(),
            found,
        });
    }
    let unreadable = || NotCommitted::Unreadable(place.to_owned());
    let told: serde_json::Value = serde_json::from_slice(marker).map_err(|_| unreadable())?;
    for (field, own) in [
        ("run_id", run.to_string()),
        ("materialization_id", attempt.to_string()),
    ] {
        let found = told[field].as_str().ok_or_else(unreadable)?;
        if found != own {
            let (place, found) = (place.to_owned(), found.chars().take(64).collect());
            return Err(NotCommitted::Foreign {
                place,
                field,
                found,
            });
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
    fn an_output_lies_in_a_folder_of_its_attempt() {
        let (of, attempt) = (path(), "0".repeat(26));
        for good in ["x/y/{}", "x/y/{}/", "x/y/day=d:2026-01-01/{}/part"] {
            let uri = format!("{BASE}/acme/prod/{}", good.replace("{}", &attempt));
            for base in [BASE, "file:///data/"] {
                assert!(folder(base, &uri, &of).is_ok(), "{uri}");
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
            assert_eq!(folder(BASE, &uri, &of), Err(Elsewhere), "{uri}");
        }
        for foreign in [
            "file:///database/acme/prod/{}",
            "gs://data/acme/prod/{}",
            "/data/acme/prod/{}",
        ] {
            assert_eq!(
                folder(BASE, &foreign.replace("{}", &attempt), &of),
                Err(Elsewhere),
                "{foreign}"
            );
        }
    }

    #[test]
    fn a_marker_is_the_attempts_own_and_the_one_reported() {
        let of = path();
        let judge = |marker: &str, digest: Option<&str>| {
            let own = Digest::of(marker.as_bytes()).to_string();
            check(
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
            let told = judge(&text, None).unwrap_err();
            assert!(
                matches!(told, NotCommitted::Foreign { field: at, .. } if at == field),
                "{told}"
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
