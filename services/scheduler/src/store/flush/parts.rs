//! The text of a flush's statement.
//!
//! It has a part for every table that the flush writes to and no part for the others, because
//! Postgres prepares for every write that a statement contains, even one of no rows. Each
//! combination of parts is composed once and prepared once per connection.
//!
//! Each part is a CTE under the name of its [`Part`] (`{part:?}`), or a value of the final SELECT.
//! The text for [Tasks, Outbox, AsyncCommit], shortened, with arguments numbered across parts:
//!
//! ```sql
//! WITH ledger AS MATERIALIZED (
//! SELECT ledger.append_held(1::smallint, $1, …, $19) AS at
//! ), Tasks AS (
//! UPDATE scheduler.tasks …
//! )
//! SELECT ledger.at,
//! bus.publish(1::smallint, $40, …),
//! set_config('synchronous_commit', 'off', true)
//! FROM ledger
//! ```
//!
//! The row locks of the fence (`ledger.append_held`) come first, for three reasons. A flush whose
//! lease is lost waits or fails there, before it has locked a row that its successor writes. Every
//! flush and `ledger.append` lock shards, then keys, and a flush then partitions, which several
//! shards write; they cannot deadlock, because all of them keep this order (F18). And bus messages
//! are numbered by the watermark that the fence moves, so they may only be written while the
//! shard's row is locked (ADR 10). The locks last until the commit, so a takeover of the shard
//! comes before this flush, which then fails, or after it (ADR 3). The other parts may therefore
//! rely on the rows as they were when the statement began: only a holder's flush changes them, and
//! it moves the watermark that the fence compares (ADR 12).
//!
//! The order follows from the final SELECT. It reads from `ledger`, so Postgres calls
//! `ledger.append_held` first; it evaluates the values for the row that `ledger` returns; and
//! Postgres executes the CTEs that nothing reads after the SELECT, although its documentation
//! promises no order. Only in a flush with resolutions does the SELECT also read the other CTEs. It
//! reads each with a condition on the row of `ledger`, so that Postgres must have that row before.

use std::fmt::Write as _;
use std::sync::OnceLock;

/// The parts in the order of the statement and of its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    NewRuns,
    Runs,
    NewTasks,
    Tasks,
    Materializations,
    Partitions,
    Checks,
    Conflicts,
    Resolutions,
    Outbox,
    AsyncCommit,
}

const PARTS: usize = 11;
const LEDGER: &str = include_str!("ledger.sql");

impl Part {
    /// The SQL of the part, its arguments numbered from 1.
    fn text(self) -> &'static str {
        match self {
            Part::NewRuns => include_str!("new_runs.sql"),
            Part::Runs => include_str!("runs.sql"),
            Part::NewTasks => include_str!("new_tasks.sql"),
            Part::Tasks => include_str!("tasks.sql"),
            Part::Materializations => include_str!("materializations.sql"),
            Part::Partitions => include_str!("partitions.sql"),
            Part::Checks => include_str!("checks.sql"),
            Part::Conflicts => include_str!("conflicts.sql"),
            Part::Resolutions => include_str!("resolutions.sql"),
            Part::Outbox => include_str!("outbox.sql"),
            Part::AsyncCommit => include_str!("async_commit.sql"),
        }
    }

    /// Whether the part is a value of the final SELECT rather than a statement of its own.
    fn is_value(self) -> bool {
        matches!(self, Part::Resolutions | Part::Outbox | Part::AsyncCommit)
    }
}

/// Returns the statement with the selected parts.
pub(super) fn text(parts: [(Part, bool); PARTS]) -> &'static str {
    static TEXTS: [OnceLock<String>; 1 << PARTS] = [const { OnceLock::new() }; 1 << PARTS];
    let selected = |number: usize| parts[number].1;
    let index: usize = (0..PARTS)
        .filter(|number| selected(*number))
        .map(|number| 1 << number)
        .sum();
    TEXTS[index].get_or_init(|| {
        compose(
            parts
                .iter()
                .filter(|(_, selected)| *selected)
                .map(|(part, _)| *part),
        )
    })
}

fn compose(parts: impl Iterator<Item = Part>) -> String {
    let (values, statements): (Vec<Part>, Vec<Part>) = parts.partition(|part| part.is_value());
    let mut text = Composed::default();
    let mut sources = "ledger".to_owned();
    text.text.push_str("WITH ledger AS MATERIALIZED (\n");
    text.add(LEDGER);
    for part in statements {
        let _ = writeln!(text.text, "), {part:?} AS (");
        text.add(part.text());
        // A materialization may be inserted and resolved in one flush. Counting the inserted rows
        // makes Postgres insert them before it evaluates the resolution, and the condition on
        // `ledger`, which always holds, makes it call `ledger.append_held` before it inserts them.
        if values.contains(&Part::Resolutions) {
            text.text.push_str("RETURNING 1\n");
            let _ = write!(
                sources,
                ", LATERAL (SELECT count(*) FROM {part:?} WHERE ledger.at IS NOT NULL) AS of_{part:?}"
            );
        }
    }
    text.text.push_str(")\nSELECT ledger.at");
    for part in values {
        text.text.push_str(",\n");
        text.add(part.text());
    }
    let _ = write!(text.text, "\nFROM {sources}");
    text.text
}

#[derive(Default)]
struct Composed {
    text: String,
    arguments: usize,
}

impl Composed {
    /// Appends a part and renumbers its arguments after the previous ones.
    fn add(&mut self, text: &str) {
        let mut pieces = text.split('$');
        self.text.push_str(pieces.next().unwrap_or_default());
        let mut most = 0;
        for piece in pieces {
            let digits = piece
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(piece.len());
            let number: usize = piece[..digits].parse().unwrap_or_default();
            most = most.max(number);
            let _ = write!(
                self.text,
                "${}{}",
                self.arguments + number,
                &piece[digits..]
            );
        }
        self.arguments += most;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_renumbered_across_parts() {
        let mut composed = Composed::default();
        composed.add("a($1, $2)");
        composed.add(" b($1, $2 + $1, $10)");
        composed.add(" c");
        composed.add(" d($1)");
        assert_eq!(composed.text, "a($1, $2) b($3, $4 + $3, $12) c d($13)");
    }

    #[test]
    fn values_follow_the_statements() {
        let text = compose([Part::Tasks, Part::Outbox, Part::AsyncCommit].into_iter());
        let offsets: Vec<Option<usize>> = [
            "ledger.append_held(",
            "UPDATE scheduler.tasks",
            "SELECT ledger.at",
            "bus.publish(1::smallint /* runs */, $40",
            "set_config(",
        ]
        .iter()
        .map(|word| text.find(word))
        .collect();
        assert!(
            offsets.iter().all(Option::is_some) && offsets.is_sorted(),
            "{offsets:?} in {text}"
        );
        assert!(!text.contains("scheduler.runs"), "{text}");
    }

    #[test]
    fn resolutions_wait_for_the_other_parts_and_these_for_the_ledger() {
        let parts = [Part::Materializations, Part::Checks, Part::Resolutions];
        let text = compose(parts.into_iter());
        let (_, sources) = text.rsplit_once("\nFROM ").unwrap();
        let counted = |part: &str| {
            format!(
                ", LATERAL (SELECT count(*) FROM {part} WHERE ledger.at IS NOT NULL) AS of_{part}"
            )
        };
        let expected = format!("ledger{}{}", counted("Materializations"), counted("Checks"));
        assert_eq!(sources, expected);
    }
}
