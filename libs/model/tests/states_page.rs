//! Keeps `docs/states.md` equal to the tables. `SERVO_BLESS=1` rewrites it.

#![cfg(test)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use servo_model::coded_enum::DocumentedEnum;
use servo_model::states::{
    BackfillState, Machine, MaterializationState, QueueEntryState, RunState, TaskState, Transition,
    TransitionReason,
};

#[test]
fn states_page_matches_the_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/states.md");
    if std::env::var_os("SERVO_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, page()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/states.md is out of date: run SERVO_BLESS=1 cargo test -p servo-model"
    );
}

const HEAD: &str = "\
# State machines

<!-- Generated from libs/model/src/states by `SERVO_BLESS=1 cargo test -p servo-model`; do not edit. -->

Every change of state is a row below: in this state, for this cause, to that state, with that reason. A cause
without a row changes nothing; terminal states have no rows. The events are those of the ledger that may carry the
cause. Where a machine is small, its causes are its reasons.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    machine::<TaskState>(&mut page);
    machine::<RunState>(&mut page);
    machine::<BackfillState>(&mut page);
    machine::<MaterializationState>(&mut page);
    machine::<QueueEntryState>(&mut page);
    page.push_str("\n## Reasons of tasks and runs\n\n");
    list(
        &mut page,
        ["reason", "number"],
        TransitionReason::ALL,
        |reason| reason.code().to_string(),
    );
    page
}

fn machine<S: Machine>(page: &mut String) {
    write!(page, "\n## {}\n\n", S::NAME).unwrap();
    diagram::<S>(page);
    list(page, ["state", "terminal"], S::VARIANTS, |state| {
        if state.is_terminal() { "yes" } else { "" }.to_owned()
    });
    page.push('\n');
    transitions::<S>(page);
    page.push('\n');
    let events = |cause| joined(S::events(cause).iter().map(|event| event.name()));
    list(page, ["cause", "events"], S::Cause::VARIANTS, events);
}

/// One arrow per pair of states; the table has the causes.
fn diagram<S: Machine>(page: &mut String) {
    let mut arrows: BTreeMap<(usize, usize), (S, S)> = BTreeMap::new();
    let place = |state: S| {
        S::VARIANTS
            .iter()
            .position(|other| *other == state)
            .unwrap()
    };
    for row in S::TABLE {
        arrows.insert((place(row.from), place(row.to)), (row.from, row.to));
    }
    write!(
        page,
        "```mermaid\nstateDiagram-v2\n    [*] --> {}\n",
        S::INITIAL
    )
    .unwrap();
    for (from, to) in arrows.values() {
        writeln!(page, "    {from} --> {to}").unwrap();
    }
    for state in S::VARIANTS.iter().filter(|state| state.is_terminal()) {
        writeln!(page, "    {state} --> [*]").unwrap();
    }
    page.push_str("```\n\n");
}

/// Adjacent rows that differ only in their start state share a line.
fn transitions<S: Machine>(page: &mut String) {
    page.push_str("| from | cause | to | reason |\n|---|---|---|---|\n");
    let alike = |a: &Transition<S>, b: &Transition<S>| {
        a.cause == b.cause && a.to == b.to && a.reason == b.reason
    };
    for rows in S::TABLE.chunk_by(alike) {
        let from = joined(rows.iter().map(|row| row.from));
        writeln!(
            page,
            "| {from} | {} | {} | {} |",
            rows[0].cause, rows[0].to, rows[0].reason
        )
        .unwrap();
    }
}

fn list<T: DocumentedEnum>(
    page: &mut String,
    head: [&str; 2],
    items: &[T],
    note: impl Fn(T) -> String,
) {
    write!(
        page,
        "| {} | {} | meaning |\n|---|---|---|\n",
        head[0], head[1]
    )
    .unwrap();
    for item in items {
        writeln!(
            page,
            "| {item} | {} | {} |",
            note(*item),
            item.description()
        )
        .unwrap();
    }
}

fn joined(items: impl Iterator<Item = impl ToString>) -> String {
    items
        .map(|item| item.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}
