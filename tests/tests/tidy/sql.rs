//! Statements write only their own schema, say what they are for, and name their numbers.

use std::fs;

use servo_tests::{files, root};

use crate::source::{finds, none, product, relative};

/// A statement of the repository, or one that a test made up.
struct Statement {
    path: String,
    text: String,
}

impl Statement {
    fn new(path: &str, text: &str) -> Statement {
        Statement {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// Without its comments.
    fn code(&self) -> String {
        let code = self
            .text
            .lines()
            .map(|line| line.split("--").next().unwrap_or_default());
        code.collect::<Vec<_>>().join("\n")
    }

    fn name(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".sql").unwrap_or(name)
    }
}

fn statements() -> Vec<Statement> {
    let all: Vec<Statement> = files(&root(), ".sql")
        .into_iter()
        .filter(|path| !path.starts_with(root().join("tests")))
        .map(|path| Statement::new(&relative(&path), &fs::read_to_string(&path).unwrap()))
        .collect();
    assert!(!all.is_empty(), "no statements");
    all
}

fn foreign_writes(statements: &[Statement]) -> Vec<String> {
    let mut findings = Vec::new();
    for statement in statements {
        let Some(service) = service_of(&statement.path) else {
            continue;
        };
        // The second half of an upsert names no table.
        let code = statement.code().replace("DO UPDATE SET", "");
        for verb in ["INSERT INTO ", "UPDATE ", "DELETE FROM "] {
            for target in code.split(verb).skip(1) {
                if !target.trim_start().starts_with(&format!("{service}.")) {
                    findings.push(format!("{}: writes outside {service}", statement.path));
                }
            }
        }
    }
    findings
}

fn service_of(path: &str) -> Option<&str> {
    path.strip_prefix("services/")?.split('/').next()
}

/// INV-7: folds, rebuilds, streams and a run's history read events; everything else reads
/// projections.
fn ledger_reads(statements: &[Statement]) -> Vec<String> {
    const READERS: [&str; 4] = [
        "list_events",
        "run_events",
        "changed_tenants",
        "finished_attempts",
    ];
    let reads = |statement: &&Statement| {
        service_of(&statement.path).is_some()
            && statement.code().contains("ledger.events")
            && !READERS.contains(&statement.name())
    };
    let findings = statements.iter().filter(reads);
    findings
        .map(|statement| {
            format!(
                "{}: reads the ledger; decide on projections",
                statement.path
            )
        })
        .collect()
}

/// F21: NOTIFY locks all commits of the cluster until its own, so it stands alone in its
/// transaction. Pushes are not a hot path.
fn notify_within_work(statements: &[Statement]) -> Vec<String> {
    let notifies = |statement: &&Statement| {
        let code = statement.code();
        let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
        let notifies = code.contains("pg_notify")
            || code
                .lines()
                .any(|line| line.trim_start().starts_with("NOTIFY"));
        notifies && lines > 1 && !statement.path.starts_with("libs/queue")
    };
    let findings = statements.iter().filter(notifies);
    findings
        .map(|statement| format!("{}: NOTIFY in a transaction that does more", statement.path))
        .collect()
}

/// A statement begins with a comment; in services it names the function that runs it
/// (`Run by store::runs::list`), which exists.
fn unexplained(statements: &[Statement], is_function: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let mut findings = Vec::new();
    for statement in statements {
        if !statement.text.starts_with("-- ") {
            findings.push(format!("{}: begins without a comment", statement.path));
            continue;
        }
        let Some(service) = service_of(&statement.path) else {
            continue;
        };
        let comment: String = statement
            .text
            .lines()
            .take_while(|line| line.starts_with("--"))
            .map(|line| line.trim_start_matches('-').trim())
            .collect::<Vec<_>>()
            .join(" ");
        let runner = comment.split("Run by ").nth(1);
        let name = runner.and_then(|rest| {
            let path = rest.split([' ', ',', ';']).next()?.trim_end_matches('.');
            path.rsplit("::").next()
        });
        match name {
            None => findings.push(format!("{}: does not say `Run by <fn>`", statement.path)),
            Some(name) if !is_function(service, name) => {
                findings.push(format!("{}: `{name}` is not a function", statement.path));
            }
            Some(_) => {}
        }
    }
    findings
}

/// Numbers of states and streams are named next to them: `state = 3 /* READY */`.
fn unnamed_numbers(statements: &[Statement]) -> Vec<String> {
    let mut findings = Vec::new();
    for statement in statements.iter().filter(|s| service_of(&s.path).is_some()) {
        for line in statement.code().lines() {
            if let Some(number) = unnamed_number(line) {
                findings.push(format!(
                    "{}: say what {number} is: {}",
                    statement.path,
                    line.trim()
                ));
            }
        }
    }
    findings
}

fn unnamed_number(line: &str) -> Option<String> {
    for column in ["state", "stream", "attempt_state", "kind"] {
        let mut rest = line;
        while let Some(at) = rest.find(column) {
            let before = rest[..at].chars().next_back();
            let after = &rest[at + column.len()..];
            rest = after;
            let is_column = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
            let compared = after
                .trim_start()
                .trim_start_matches(['=', '<', '>', '!'])
                .trim_start();
            let is_compared = after.trim_start().starts_with(['=', '<', '>', '!'])
                || after.trim_start().starts_with("IN (");
            let value = compared.strip_prefix("IN (").unwrap_or(compared);
            let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
            if is_column && is_compared && !digits.is_empty() {
                let behind = value[digits.len()..].trim_start();
                if !behind.starts_with("/*") {
                    return Some(digits);
                }
            }
        }
    }
    None
}

#[test]
fn statements_write_only_their_own_schema() {
    none(foreign_writes(&statements()));
}

#[test]
fn inv_7_controllers_do_not_read_the_ledger() {
    none(ledger_reads(&statements()));
}

#[test]
fn f21_no_statement_that_does_work_notifies() {
    none(notify_within_work(&statements()));
}

#[test]
fn statements_say_which_function_runs_them() {
    let sources = product(&["services"]);
    let is_function = |service: &str, name: &str| {
        let of_service = format!("services/{service}/");
        let mut own = sources
            .iter()
            .filter(|source| source.path.starts_with(&of_service));
        own.any(|source| source.has_function(name))
    };
    none(unexplained(&statements(), is_function));
}

#[test]
fn statements_name_their_numbers() {
    none(unnamed_numbers(&statements()));
}

#[test]
fn violations_in_statements_are_found() {
    let one = |path: &str, text: &str| [Statement::new(path, text)];
    let path = "services/quota/src/store/x.sql";
    finds(
        &foreign_writes(&one(path, "-- x\nDELETE FROM scheduler.runs")),
        "writes outside",
    );
    none(foreign_writes(&one(path, "-- x\nDELETE FROM quota.pools")));
    finds(
        &ledger_reads(&one(path, "-- x\nSELECT FROM ledger.events")),
        "reads the ledger",
    );
    none(ledger_reads(&one(path, "-- not ledger.events\nSELECT 1")));
    let notify = "-- x\nSELECT pg_notify('a', 'b'),\n  1";
    finds(&notify_within_work(&one(path, notify)), "NOTIFY");
    none(notify_within_work(&one(
        path,
        "-- x\nSELECT pg_notify('a', 'b')",
    )));
    let exists = |_: &str, name: &str| name == "known";
    finds(
        &unexplained(&one(path, "SELECT 1"), exists),
        "without a comment",
    );
    finds(
        &unexplained(&one(path, "-- A part.\nSELECT 1"), exists),
        "Run by",
    );
    let missing = "-- Counts. Run by store::gone.\nSELECT 1";
    finds(
        &unexplained(&one(path, missing), exists),
        "`gone` is not a function",
    );
    none(unexplained(
        &one(path, "-- Counts. Run by store::known.\nSELECT 1"),
        exists,
    ));
    finds(
        &unnamed_numbers(&one(path, "-- x\nWHERE r.state < 5")),
        "say what 5 is",
    );
    finds(
        &unnamed_numbers(&one(path, "-- x\nWHERE state IN (1, 2)")),
        "say what 1 is",
    );
    finds(
        &unnamed_numbers(&one(path, "-- x\nAND stream = 1 AND shard = 3")),
        "say what 1 is",
    );
    none(unnamed_numbers(&one(
        path,
        "-- x\nWHERE r.state = 3 /* READY */",
    )));
    none(unnamed_numbers(&one(
        path,
        "-- x\nWHERE state IN (1 /* PENDING */, 2)",
    )));
    none(unnamed_numbers(&one(path, "-- x\nWHERE state = $1")));
}
