//! Crates depend one way, begin with their page and stay small.

use std::fs;
use std::path::{Path, PathBuf};

use servo_tests::{files, root};

use crate::source::{finds, none, relative};

/// Our crates that each library may depend on.
const MAY_DEPEND_ON: [(&str, &[&str]); 8] = [
    ("model", &[]),
    ("actor", &[]),
    ("proto", &["servo-model"]),
    ("store", &["servo-actor", "servo-model"]),
    ("bus", &["servo-actor", "servo-model", "servo-store"]),
    ("queue", &["servo-actor", "servo-model", "servo-store"]),
    ("mesh", &["servo-actor", "servo-model", "servo-proto"]),
    (
        "service",
        &[
            "servo-actor",
            "servo-mesh",
            "servo-model",
            "servo-proto",
            "servo-store",
        ],
    ),
];

fn wrong_dependencies(path: &str, manifest: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let own = manifest
        .split("[dev-dependencies]")
        .next()
        .unwrap_or_default();
    let names = own.lines().filter(|line| line.starts_with("servo-"));
    for name in names.filter_map(|line| line.split([' ', '.']).next()) {
        let folder = path.trim_end_matches("/Cargo.toml");
        let wrong = match folder.split_once('/') {
            Some(("libs", lib)) => MAY_DEPEND_ON
                .iter()
                .find(|(known, _)| *known == lib)
                .is_some_and(|(_, may)| !may.contains(&name)),
            Some(("services", "standalone")) => false,
            Some(("services", service)) => servo_model::Service::ALL
                .iter()
                .any(|other| other.name() != service && name == format!("servo-{other}")),
            _ => false,
        };
        if wrong {
            findings.push(format!("{path}: must not depend on {name}"));
        }
    }
    findings
}

#[test]
fn dependencies_point_one_way() {
    let mut findings = Vec::new();
    for folder in ["libs", "services"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path().join("Cargo.toml");
            if let Ok(manifest) = fs::read_to_string(&path) {
                findings.extend(wrong_dependencies(&relative(&path), &manifest));
            }
        }
    }
    none(findings);
}

#[test]
fn a_wrong_dependency_is_found() {
    let check = |path: &str, line: &str| {
        finds(
            &wrong_dependencies(path, &format!("[dependencies]\n{line}\n")),
            path,
        );
    };
    check(
        "libs/model/Cargo.toml",
        "servo-proto = { workspace = true }",
    );
    check("libs/mesh/Cargo.toml", "servo-store.workspace = true");
    check(
        "services/quota/Cargo.toml",
        "servo-scheduler = { workspace = true }",
    );
    let dev = "[dev-dependencies]\nservo-local = { workspace = true }\n";
    none(wrong_dependencies("libs/model/Cargo.toml", dev));
}

/// Applies a rule to every file with one of these endings.
fn over(endings: &[&str], rule: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    let paths: Vec<PathBuf> = endings
        .iter()
        .flat_map(|ending| files(&root(), ending))
        .collect();
    assert!(!paths.is_empty(), "no files end with {endings:?}");
    let apply = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let path = relative(path);
        rule(&path, &text).map(|finding| format!("{path}: {finding}"))
    };
    paths.iter().filter_map(apply).collect()
}

fn without_page(path: &str, text: &str) -> Option<String> {
    let is_root = path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
    (is_root && !text.starts_with("//! ")).then(|| "does not say in `//!` what it is for".into())
}

fn long_main(path: &str, text: &str) -> Option<String> {
    (path.ends_with("src/main.rs") && text.lines().count() > 40)
        .then(|| "is longer than 40 lines".into())
}

/// Product code is cut by RPC, table or duty; tests may be longer, because cases are data.
const PRODUCT_LINES_MAX: usize = 600;
const TEST_LINES_MAX: usize = 860;
/// One table each.
const TABLES: [&str; 1] = ["libs/store/src/ownership/mod.rs"];

fn long_file(path: &str, text: &str) -> Option<String> {
    let is_test = path.starts_with("tests/")
        || path.contains("/tests/")
        || path.contains("tests.rs")
        || path.contains("test_");
    let max = if is_test {
        TEST_LINES_MAX
    } else {
        PRODUCT_LINES_MAX
    };
    let exempt = TABLES.contains(&path) || path.contains("/servo/v1/");
    let lines = text.lines().count();
    (lines > max && !exempt).then(|| format!("has {lines} lines; split it by RPC, table or duty"))
}

/// Paths of the machine that something was written on.
fn machine_path(_: &str, text: &str) -> Option<String> {
    // Assembled so that this file does not find itself.
    let absent = [["/wo", "rk/"], ["/ro", "ot/"], ["/ho", "me/"]].map(|parts| parts.concat());
    let found = absent.iter().find(|word| text.contains(word.as_str()))?;
    Some(format!("names {found}"))
}

#[test]
fn every_crate_begins_with_its_page() {
    none(over(&[".rs"], without_page));
}

#[test]
fn main_is_a_paragraph() {
    none(over(&[".rs"], long_main));
}

#[test]
fn files_stay_small() {
    none(over(&[".rs", ".py"], long_file));
}

#[test]
fn nothing_names_a_machine() {
    let endings = [
        ".rs",
        ".py",
        ".sql",
        ".proto",
        ".toml",
        ".md",
        ".yaml",
        "Makefile",
        "bootstrap",
        "run",
    ];
    none(over(&endings, machine_path));
}

#[test]
fn violations_of_the_layout_are_found() {
    assert!(without_page("libs/x/src/lib.rs", "mod a;").is_some());
    assert!(without_page("libs/x/src/lib.rs", "//! A page.").is_none());
    let long = "\n".repeat(900);
    assert!(long_main("services/x/src/main.rs", &long).is_some());
    assert!(long_file("services/x/src/a.rs", &long).is_some());
    assert!(long_file("services/x/tests/a.rs", &long).is_some());
    assert!(long_file("services/x/src/a.rs", "").is_none());
    let path = Path::new("/").join("wo").display().to_string();
    assert!(machine_path("a.md", &format!("see {path}{}", "rk/x")).is_some());
}
