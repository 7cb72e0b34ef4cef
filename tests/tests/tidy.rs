//! What review would say, said by a test.

#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

use servo_tests::{files, root};

/// Checks every file with `fault` and fails with all findings at once.
fn check(paths: Vec<PathBuf>, fault: impl Fn(&Path, &str) -> Option<String>) {
    assert!(!paths.is_empty(), "nothing to check");
    let found: Vec<String> = paths
        .iter()
        .filter_map(|path| {
            let text = fs::read_to_string(path).unwrap();
            fault(path, &text)
                .map(|fault| format!("{}: {fault}", path.strip_prefix(root()).unwrap().display()))
        })
        .collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

fn rust_files() -> Vec<PathBuf> {
    files(&root(), ".rs")
}

#[test]
fn cores_stay_pure() {
    const ABSENT: [&str; 9] = [
        "async ",
        ".await",
        "SystemTime",
        "Instant::now",
        "sqlx",
        "rand::",
        "tokio",
        "tonic",
        "now_utc",
    ];
    let in_core = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "core");
    let pure = |path: &PathBuf| in_core(path) || path.starts_with(root().join("libs/model/src"));
    check(
        rust_files().into_iter().filter(pure).collect(),
        |_, text| {
            let word = ABSENT.iter().find(|word| code(text).contains(**word))?;
            Some(format!("`{word}` has no place in a pure module"))
        },
    );
}

#[test]
fn no_service_imports_another() {
    let services = fs::read_dir(root().join("services")).unwrap();
    let manifests: Vec<PathBuf> = services
        .map(|entry| entry.unwrap().path().join("Cargo.toml"))
        .collect();
    check(manifests, |path, text| {
        let own = path.parent()?.file_name()?.to_str()?;
        if own == "standalone" {
            return None;
        }
        let other = servo_model::Service::ALL.iter().find(|service| {
            service.name() != own
                && text
                    .lines()
                    .any(|line| line.starts_with(&format!("servo-{service} ")))
        })?;
        Some(format!("depends on servo-{other}; services meet in proto/"))
    });
}

#[test]
fn dependencies_point_one_way() {
    const MAY: [(&str, &[&str]); 6] = [
        ("model", &[]),
        ("proto", &["servo-model"]),
        ("store", &["servo-model"]),
        ("bus", &["servo-model", "servo-store"]),
        ("queue", &["servo-model", "servo-store"]),
        ("mesh", &["servo-model", "servo-proto"]),
    ];
    for (lib, may) in MAY {
        let manifest =
            fs::read_to_string(root().join("libs").join(lib).join("Cargo.toml")).unwrap();
        let own_dependencies = manifest.split("[dev-dependencies]").next().unwrap();
        for line in own_dependencies
            .lines()
            .filter(|line| line.starts_with("servo-"))
        {
            let name = line.split([' ', '.']).next().unwrap();
            assert!(may.contains(&name), "libs/{lib} must not depend on {name}");
        }
    }
}

#[test]
fn every_crate_has_its_page() {
    let is_root = |path: &PathBuf| path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
    check(
        rust_files().into_iter().filter(is_root).collect(),
        |_, text| {
            (!text.starts_with("//! ")).then(|| "does not say in `//!` what it is for".to_owned())
        },
    );
}

#[test]
fn main_is_a_paragraph() {
    let is_main = |path: &PathBuf| path.ends_with("src/main.rs");
    check(
        rust_files().into_iter().filter(is_main).collect(),
        |_, text| (text.lines().count() > 40).then(|| "is longer than 40 lines".to_owned()),
    );
}

#[test]
fn files_stay_small() {
    check(rust_files(), |_, text| {
        let lines = text.lines().count();
        (lines > 850).then(|| format!("has {lines} lines: split it by RPC, table or duty"))
    });
}

#[test]
fn sql_writes_only_its_own_schema() {
    let statements: Vec<PathBuf> = files(&root().join("services"), ".sql");
    for path in statements {
        // An upsert's second half names no table.
        let text = fs::read_to_string(&path)
            .unwrap()
            .replace("DO UPDATE SET", "");
        let below = path.strip_prefix(root().join("services")).unwrap();
        let own = format!("{}.", below.iter().next().unwrap().to_str().unwrap());
        for verb in ["INSERT INTO ", "UPDATE ", "DELETE FROM "] {
            for target in text.split(verb).skip(1) {
                assert!(
                    target.starts_with(&own),
                    "{}: writes outside {own}",
                    path.display()
                );
            }
        }
    }
}

/// Folds, rebuilds, streams and whoever tells a run's history read events; everybody else reads projections.
#[test]
fn inv_7_controllers_do_not_read_the_ledger() {
    const READERS: [&str; 4] = ["list_events", "run_events", "touched_tenants", "finished"];
    let of_services = |path: &PathBuf| path.starts_with(root().join("services"));
    check(
        files(&root(), ".sql")
            .into_iter()
            .filter(of_services)
            .collect(),
        |path, text| {
            let reads = text
                .lines()
                .any(|line| !line.starts_with("--") && line.contains("ledger.events"));
            let name = path.file_stem()?.to_str()?;
            (reads && !READERS.contains(&name))
                .then(|| "reads the ledger; decide on projections".to_owned())
        },
    );
}

/// NOTIFY takes a lock over all commits of the cluster until its own. Pushes are no hot path.
#[test]
fn f21_no_statement_that_does_work_rings() {
    let hot = |path: &PathBuf| !path.starts_with(root().join("libs/queue"));
    check(
        files(&root(), ".sql").into_iter().filter(hot).collect(),
        |path, text| {
            let code: Vec<&str> = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("--"))
                .collect();
            let rings = code
                .iter()
                .any(|line| line.contains("pg_notify") || line.trim_start().starts_with("NOTIFY"));
            let alone = code.len() == 1;
            let name = path.file_name()?.to_str()?;
            (rings && !alone)
                .then(|| format!("{name} rings within a transaction that does something else"))
        },
    );
}

#[test]
fn sql_files_say_who_calls_them() {
    let statements: Vec<PathBuf> = files(&root(), ".sql")
        .into_iter()
        .filter(|path| !path.starts_with(root().join("tests")))
        .collect();
    check(statements, |_, text| {
        (!text.starts_with("-- ")).then(|| "starts without its reason".to_owned())
    });
}

#[test]
fn nothing_of_one_machine() {
    // Assembled so that this file does not find itself.
    let absent = [["/wo", "rk/"], ["/ro", "ot/"], ["/ho", "me/"]].map(|parts| parts.concat());
    let texts = [
        ".rs",
        ".sql",
        ".proto",
        ".toml",
        ".md",
        ".yaml",
        "Makefile",
        "bootstrap",
        "run",
    ];
    let paths = texts
        .iter()
        .flat_map(|suffix| files(&root(), suffix))
        .collect();
    check(paths, |_, text| {
        absent
            .iter()
            .find(|word| text.contains(*word))
            .map(|word| format!("names {word}"))
    });
}

/// The text without its comments, which may speak about what must stay absent.
fn code(text: &str) -> String {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}
