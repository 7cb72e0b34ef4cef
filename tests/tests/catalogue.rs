//! Keeps the pages in `docs/` and the code in step: failures, invariants, metrics, spans, paths.
//!
//! `SERVO_BLESS=1` rewrites the list of tests in `docs/failures.md`.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use servo_tests::{files, root};

const FAILURES: &str = "docs/failures.md";
const METRICS: &str = "docs/metrics.md";
const WITHOUT_TEST: &str = "\n## Entries without a test of their number\n";
const TESTS: &str = "\n## Tests by number\n";
const SPANS: &str = "\n## Spans\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Failure,
    Invariant,
    Property,
}

/// The number of an entry in `docs/failures.md`: `F9`, `INV-3` or `I16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    kind: Kind,
    number: u32,
}

impl Entry {
    const PREFIXES: [(&str, Kind); 3] = [
        ("INV-", Kind::Invariant),
        ("F", Kind::Failure),
        ("I", Kind::Property),
    ];

    fn parse(word: &str) -> Option<Entry> {
        let of = |(prefix, kind): (&str, Kind)| Some((kind, word.strip_prefix(prefix)?));
        let (kind, digits) = Entry::PREFIXES.into_iter().find_map(of)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || digits.starts_with('0') {
            return None;
        }
        let number = digits.parse().ok()?;
        Some(Entry { kind, number })
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_own = |(_, kind): &&(&str, Kind)| *kind == self.kind;
        let prefix = Entry::PREFIXES
            .iter()
            .find(is_own)
            .map_or("", |(prefix, _)| prefix);
        write!(f, "{prefix}{}", self.number)
    }
}

/// For each entry the files that cite it, and the tests there that carry its number.
type Citations = BTreeMap<Entry, BTreeMap<String, BTreeSet<String>>>;

fn citations() -> Citations {
    let mut found = Citations::new();
    for path in code_files() {
        let text = read(&path);
        let file = relative(&path);
        // Colons belong to a word here, so that a variant such as `Value::F64` is not an entry.
        let words = text.split(|letter| is_not_of_a_word(letter) && letter != ':');
        for entry in words.filter_map(|word| Entry::parse(word.trim_matches(':'))) {
            found
                .entry(entry)
                .or_default()
                .entry(file.clone())
                .or_default();
        }
        for name in text.lines().filter_map(function_name) {
            for entry in entries_in_name(name) {
                let names = found.entry(entry).or_default();
                names
                    .entry(file.clone())
                    .or_default()
                    .insert(name.to_owned());
            }
        }
    }
    found
}

/// The entries at the beginning of a test's name: `f06_f16_…`, `inv_1_and_2_…`, `test_f05_…`.
fn entries_in_name(name: &str) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut after_inv = false;
    for part in name.trim_start_matches("test_").split('_') {
        let digits = part.strip_prefix('f').filter(|digits| digits.len() == 2);
        if part == "inv" {
            after_inv = true;
        } else if let Some(number) = digits.and_then(|digits| digits.parse().ok()) {
            after_inv = false;
            let kind = Kind::Failure;
            found.push(Entry { kind, number });
        } else if let (true, Ok(number)) = (after_inv, part.parse()) {
            let kind = Kind::Invariant;
            found.push(Entry { kind, number });
        } else if !(after_inv && part == "and") {
            break;
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("fn ").or_else(|| line.split_once("def "))?;
    rest.split_once('(').map(|(name, _)| name)
}

/// Rust and Python code, without what is generated and without this file.
fn code_files() -> Vec<PathBuf> {
    let generated = root().join("libs/python/src/servo/v1");
    let own = |path: &PathBuf| !path.ends_with(file!()) && !path.starts_with(&generated);
    let all = [".rs", ".py"].map(|suffix| files(&root(), suffix));
    all.into_iter().flatten().filter(own).collect()
}

fn is_not_of_a_word(letter: char) -> bool {
    !(letter.is_alphanumeric() || letter == '_' || letter == '-')
}

/// The entries that the rows of a table begin with.
fn rows(text: &str) -> BTreeSet<Entry> {
    let entry = |line: &str| Entry::parse(line.strip_prefix("| ")?.split(' ').next()?);
    text.lines().filter_map(entry).collect()
}

fn parts_of_failures() -> (String, String, String) {
    let page = read(&root().join(FAILURES));
    let (defined, rest) = page.split_once(WITHOUT_TEST).expect(WITHOUT_TEST);
    let (without_test, tests) = rest.split_once(TESTS).expect(TESTS);
    (
        defined.to_owned(),
        without_test.to_owned(),
        tests.to_owned(),
    )
}

#[test]
fn every_cited_entry_is_defined() {
    let defined = rows(&parts_of_failures().0);
    let mut unknown = citations();
    unknown.retain(|entry, _| !defined.contains(entry));
    assert!(unknown.is_empty(), "{FAILURES} lacks {unknown:#?}");
}

#[test]
fn entries_without_a_test_are_listed() {
    let (defined, without_test, _) = parts_of_failures();
    let cited = citations();
    let is_uncited = |entry: &Entry| !cited.contains_key(entry);
    let uncited: BTreeSet<Entry> = rows(&defined).into_iter().filter(is_uncited).collect();
    assert_eq!(rows(&without_test), uncited, "{FAILURES}:{WITHOUT_TEST}");
}

#[test]
fn the_list_of_tests_is_current() {
    let mut list = String::new();
    for (entry, files) in citations() {
        list += &format!("\n**{entry}**\n\n");
        for (file, names) in files {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let colon = if names.is_empty() { "" } else { ": " };
            list += &format!("- `{file}`{colon}{}\n", names.join(", "));
        }
    }
    let path = root().join(FAILURES);
    let (_, _, listed) = parts_of_failures();
    if std::env::var_os("SERVO_BLESS").is_some() {
        let page = read(&path);
        let kept = page.strip_suffix(&listed).expect("it is the page's end");
        fs::write(&path, format!("{kept}{list}")).unwrap();
        return;
    }
    assert!(
        list == listed,
        "{FAILURES} is stale: run SERVO_BLESS=1 cargo test -p servo-tests --test catalogue"
    );
}

/// Code outside tests, of services and libraries.
fn production_code() -> Vec<String> {
    let is_production = |path: &PathBuf| {
        let path = relative(path);
        let of_a_crate = path.starts_with("services/") || path.starts_with("libs/");
        of_a_crate && path.contains("/src/") && !path.contains("/tests")
    };
    let before_tests = |path: PathBuf| {
        let text = read(&path);
        let code = text.split("#[cfg(test)]\nmod tests {").next();
        code.unwrap_or_default().to_owned()
    };
    let paths = files(&root(), ".rs").into_iter();
    paths.filter(is_production).map(before_tests).collect()
}

/// The calls of `function` whose first argument is a literal: that literal, and the rest of the
/// statement.
fn first_literals(function: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for code in production_code() {
        for rest in code.split(function).skip(1) {
            let literal = rest.trim_start().strip_prefix('"');
            if let Some((name, rest)) = literal.and_then(|rest| rest.split_once('"')) {
                let statement = rest.split(';').next().unwrap_or_default();
                found.insert(name.to_owned(), statement.to_owned());
            }
        }
    }
    found
}

/// The cells of the tables' rows that begin with a name in backticks.
fn named_rows(text: &str) -> Vec<(String, Vec<String>)> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ").map(str::to_owned);
        let name = cells.next()?.strip_suffix('`')?.to_owned();
        Some((name, cells.collect()))
    };
    text.lines().filter_map(row).collect()
}

fn parts_of_metrics() -> (String, String) {
    let page = read(&root().join(METRICS));
    let (metrics, spans) = page.split_once(SPANS).expect(SPANS);
    (metrics.to_owned(), spans.to_owned())
}

#[test]
fn every_metric_is_documented_and_no_other() {
    let mut documented = BTreeSet::new();
    for (name, cells) in named_rows(&parts_of_metrics().0) {
        let suffix = match cells[0].as_str() {
            "counter" => "_total",
            "info" => "_info",
            "gauge" | "histogram" => "",
            other => panic!("{METRICS}: {name} has the unknown type {other}"),
        };
        let base = name
            .strip_prefix("servo_")
            .and_then(|name| name.strip_suffix(suffix));
        documented.insert(
            base.unwrap_or_else(|| panic!("{METRICS}: {name}"))
                .to_owned(),
        );
    }
    let registered: BTreeSet<String> = first_literals(".register(").into_keys().collect();
    assert_eq!(documented, registered, "{METRICS}");
}

#[test]
fn every_exported_span_is_documented_and_no_other() {
    // Recorded when the call is answered, not where the span begins.
    const RECORDED_LATER: &str = "code";
    let mut exported = first_literals("_span!(");
    exported.retain(|name, _| name == "rpc" || name.starts_with("servo."));
    let rows = named_rows(&parts_of_metrics().1);
    for (name, cells) in &rows {
        let begun = exported.get(name).map_or("", String::as_str);
        let words: BTreeSet<&str> = begun.split(is_not_of_a_word).collect();
        for attribute in inline_code(&cells[1]) {
            assert!(
                attribute == RECORDED_LATER || words.contains(&*attribute),
                "{METRICS}: {name} has no attribute {attribute}"
            );
        }
    }
    let documented: BTreeSet<String> = rows.into_iter().map(|row| row.0).collect();
    assert_eq!(documented, exported.into_keys().collect(), "{METRICS}");
}

#[test]
fn every_path_in_the_docs_exists() {
    let mut missing = Vec::new();
    for page in files(&root(), ".md") {
        for code in inline_code(&read(&page)) {
            if let Some(fault) = fault_of_path(&page, &code) {
                missing.push(format!("{}: {code}: {fault}", relative(&page)));
            }
        }
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

/// Checks code such as `services/x/src/y.rs::Type::function`: the file exists, below the
/// root or the page's folder, and has the names. Other code has no fault.
fn fault_of_path(page: &Path, code: &str) -> Option<&'static str> {
    const FOLDERS: [&str; 6] = [
        "docs/",
        "libs/",
        "proto/",
        "scripts/",
        "services/",
        "tests/",
    ];
    let is_path = FOLDERS.iter().any(|folder| code.starts_with(folder));
    if !is_path || code.contains(['*', '<', '{', ' ', '…', '$']) {
        return None;
    }
    let mut parts = code.split("::");
    let name = parts.next()?;
    let candidates = [root().join(name), page.with_file_name(name)];
    let Some(path) = candidates.iter().find(|path| path.exists()) else {
        return Some("no such file");
    };
    let names: Vec<&str> = parts.collect();
    if names.is_empty() {
        return None;
    }
    let text = read(path);
    let words: BTreeSet<&str> = text.split(is_not_of_a_word).collect();
    let is_unknown = |name: &&str| !words.contains(name);
    let unknown = names.iter().any(is_unknown);
    unknown.then_some("the file has no such name")
}

/// Returns the code between single backticks, outside of code blocks.
fn inline_code(page: &str) -> Vec<String> {
    let prose = page.split("```").step_by(2);
    let of_line = |line: &str| -> Vec<String> {
        let pieces = line.split('`').skip(1).step_by(2);
        pieces.map(str::to_owned).collect()
    };
    prose.flat_map(str::lines).flat_map(of_line).collect()
}

#[test]
fn every_link_in_the_docs_leads_somewhere() {
    let mut broken = Vec::new();
    for page in files(&root(), ".md") {
        let text = read(&page);
        let targets = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split([')', '#']).next());
        for target in targets.filter(|target| !target.contains("://")) {
            if !page.with_file_name(target).exists() {
                broken.push(format!("{} links to {target}", relative(&page)));
            }
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn relative(path: &Path) -> String {
    let below = path.strip_prefix(root()).unwrap();
    below.display().to_string()
}
