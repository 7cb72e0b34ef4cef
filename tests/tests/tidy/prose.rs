//! Comments are plain sentences that name their subject.

use std::fs;

use servo_tests::{files, root};

use crate::source::{finds, none, relative};

/// Words with which a riddle begins: a relative clause without a noun as the subject.
const OPENINGS: [&str; 7] = [
    "What", "Who", "Whoever", "Whose", "Nobody", "Somebody", "So many",
];
/// Questions in docs are fine; in comments of code a handful may be.
const RIDDLES_MAX: usize = 30;

fn riddles(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut in_comment = false;
    for (number, line) in text.lines().enumerate() {
        let comment = comment(path, line);
        // The second line of a comment may begin with any word.
        if let Some(words) = comment.filter(|_| !in_comment) {
            let is_riddle = OPENINGS.iter().any(|opening| {
                words
                    .strip_prefix(opening)
                    .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
            });
            if is_riddle {
                findings.push(format!("{path}:{}: {words}", number + 1));
            }
        }
        in_comment = comment.is_some_and(|words| !words.is_empty());
    }
    findings
}

/// The words of a comment or of the first line of a docstring.
fn comment<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    let line = line.trim_start();
    let markers: &[&str] = match path.rsplit('.').next() {
        Some("rs") => &["///", "//!", "//"],
        Some("py") => &["#", "\"\"\""],
        _ => &["--"],
    };
    let marker = markers.iter().find(|marker| line.starts_with(**marker))?;
    Some(line[marker.len()..].trim_start())
}

#[test]
fn comments_name_their_subject() {
    let mut findings = Vec::new();
    for ending in [".rs", ".py", ".sql"] {
        for path in files(&root(), ending) {
            let path_text = relative(&path);
            if !path_text.contains("/servo/v1/") {
                findings.extend(riddles(&path_text, &fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(
        findings.len() <= RIDDLES_MAX,
        "{} comments begin like riddles, {RIDDLES_MAX} may:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

#[test]
fn a_riddle_is_found() {
    finds(
        &riddles("a.rs", "/// What is left goes."),
        "a.rs:1: What is left",
    );
    finds(&riddles("a.py", "x = 1\n# Whoever asks is told."), "a.py:2");
    finds(&riddles("a.py", "    \"\"\"Nobody waits.\"\"\""), "a.py:1");
    finds(&riddles("a.sql", "-- So many rows."), "a.sql:1");
    none(riddles(
        "a.rs",
        "// Deletes rows that\n// What follows is a second line.",
    ));
    none(riddles("a.rs", "/// Whole batches."));
}
