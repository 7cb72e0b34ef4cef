//! The text of a flush's statement: a part for every table it writes to and none for the others, for Postgres prepares to
//! write wherever a statement might. Each combination of parts is written down once, and prepared once per connection.

use std::fmt::Write as _;
use std::sync::OnceLock;

/// In the order in which they stand and take their arguments.
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
    OutboxMessage,
    MayBeLost,
}

const PARTS: usize = 11;
const LEDGER: &str = include_str!("../store/fold/ledger.sql");

impl Part {
    /// Its arguments are numbered from 1.
    fn text(self) -> &'static str {
        match self {
            Part::NewRuns => include_str!("../store/fold/new_runs.sql"),
            Part::Runs => include_str!("../store/fold/runs.sql"),
            Part::NewTasks => include_str!("../store/fold/new_tasks.sql"),
            Part::Tasks => include_str!("../store/fold/tasks.sql"),
            Part::Materializations => include_str!("../store/fold/materializations.sql"),
            Part::Partitions => include_str!("../store/fold/partitions.sql"),
            Part::Checks => include_str!("../store/fold/checks.sql"),
            Part::Conflicts => include_str!("../store/fold/conflicts.sql"),
            Part::Resolutions => include_str!("../store/fold/resolutions.sql"),
            Part::OutboxMessage => include_str!("../store/fold/news.sql"),
            Part::MayBeLost => include_str!("../store/fold/may_be_lost.sql"),
        }
    }

    /// Whether it is a value that is asked for, and no statement of its own.
    fn is_value(self) -> bool {
        matches!(
            self,
            Part::Resolutions | Part::OutboxMessage | Part::MayBeLost
        )
    }
}

/// The statement with those parts that are wanted.
pub(super) fn text(parts: [(Part, bool); PARTS]) -> &'static str {
    static TEXTS: [OnceLock<String>; 1 << PARTS] = [const { OnceLock::new() }; 1 << PARTS];
    let wanted = |number: usize| parts[number].1;
    let index: usize = (0..PARTS)
        .filter(|number| wanted(*number))
        .map(|number| 1 << number)
        .sum();
    TEXTS[index].get_or_init(|| {
        compose(
            parts
                .iter()
                .filter(|(_, wanted)| *wanted)
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
        // A version may be made and decided about in one batch, and is there to be decided about once it was counted.
        if values.contains(&Part::Resolutions) {
            text.text.push_str("RETURNING 1\n");
            let _ = write!(sources, ", (SELECT count(*) FROM {part:?}) AS of_{part:?}");
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
    /// Adds a text, its arguments behind those that are there.
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
    fn arguments_are_numbered_through() {
        let mut composed = Composed::default();
        composed.add("a($1, $2)");
        composed.add(" b($1, $2 + $1, $10)");
        composed.add(" c");
        composed.add(" d($1)");
        assert_eq!(composed.text, "a($1, $2) b($3, $4 + $3, $12) c d($13)");
    }

    #[test]
    fn values_stand_behind_the_statements() {
        let text = compose([Part::Tasks, Part::OutboxMessage, Part::MayBeLost].into_iter());
        let places: Vec<Option<usize>> = [
            "ledger.fold(",
            "UPDATE scheduler.tasks",
            "SELECT ledger.at",
            "bus.publish(1::smallint, $40",
            "set_config(",
        ]
        .iter()
        .map(|word| text.find(word))
        .collect();
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "{places:?} in {text}"
        );
        assert!(!text.contains("scheduler.runs"), "{text}");
    }
}
