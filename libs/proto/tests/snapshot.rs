//! Keeps `proto/methods.txt` equal to the methods: verb, path, body, streaming and access rule of
//! each. `buf breaking` sees none of these, and clients depend on all of them.
//!
//! `make lint` runs this test, `make baseline` rewrites the file (`SERVO_BLESS=1`).

#![cfg(test)]

use std::fs;

use anyhow::{Result, ensure};
use servo_proto::access::{Access, Method, methods, read_methods};

#[path = "../build/compile.rs"]
mod compile;
mod tree;

#[test]
fn methods_are_those_of_the_snapshot() {
    let path = tree::root().join("proto/methods.txt");
    let current = snapshot(methods());
    if std::env::var_os("SERVO_BLESS").is_some() {
        fs::write(&path, &current).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let changed: Vec<&str> = current
        .lines()
        .filter(|line| !kept.contains(line))
        .collect();
    let gone: Vec<&str> = kept
        .lines()
        .filter(|line| !current.contains(line))
        .collect();
    assert!(
        kept == current,
        "proto/methods.txt differs; clients break unless this is meant (then `make baseline`):\n\
         now: {changed:#?}\nbefore: {gone:#?}"
    );
}

#[test]
fn changed_route_permission_or_body_differs_from_the_snapshot() -> Result<()> {
    for (file, before, after) in [
        (
            "v1/scheduler",
            "runs/{run_id}:cancel\"",
            "runs/{run_id}:stop\"",
        ),
        (
            "v1/system",
            "get: \"/v1/system/rebuilds",
            "put: \"/v1/system/rebuilds",
        ),
        (
            "v1/scheduler",
            "{permission: \"runs.cancel\"}",
            "{permission: \"runs.read\"}",
        ),
        ("v1/planner", "body: \"chunk\"", "body: \"*\""),
        ("v1/dispatcher", "      confined: true\n", ""),
        ("mesh/v1/quota", "\"scheduler\"", "\"console\""),
        (
            "v1/scheduler",
            "returns (stream WatchRunResponse)",
            "returns (WatchRunResponse)",
        ),
    ] {
        let folder = tempfile::tempdir()?;
        let file = format!("servo/{file}.proto");
        tree::copy_and_change(folder.path(), &file, before, after)?;
        let pool = compile::compile(folder.path())?.descriptor_pool();
        let changed = read_methods(&pool).map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
        ensure!(
            snapshot(&changed) != snapshot(methods()),
            "`{after}` instead of `{before}` is not noticed"
        );
    }
    Ok(())
}

/// One line per method, sorted.
fn snapshot(methods: &[Method]) -> String {
    let mut lines: Vec<String> = methods.iter().map(line).collect();
    lines.sort();
    lines.join("\n") + "\n"
}

fn line(method: &Method) -> String {
    let flags = [
        (method.client_streaming, "client-stream"),
        (method.server_streaming, "server-stream"),
        (method.idempotent, "idempotent"),
        (method.confined, "confined"),
    ];
    let set = flags.into_iter().filter(|(is_set, _)| *is_set);
    let access = match &method.access {
        Access::Permission(permission) => format!("permission={permission}"),
        Access::Callers(callers) => {
            let names: Vec<&str> = callers.iter().map(|service| service.name()).collect();
            format!("callers={}", names.join(","))
        }
        Access::AttemptSignature => "attempt-signature".to_owned(),
        Access::Open => "open".to_owned(),
    };
    let routes = method
        .routes
        .iter()
        .map(|route| format!("{} {} body={}", route.verb, route.template, route.body));
    let words = std::iter::once(method.path.clone())
        .chain(set.map(|(_, word)| word.to_owned()))
        .chain([access])
        .chain(routes);
    words.collect::<Vec<_>>().join(" ")
}
