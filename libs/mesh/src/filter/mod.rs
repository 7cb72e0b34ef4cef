//! The filters of list methods, the part of AIP-160 that they support:
//! `field = "value" AND labels.team = core AND owners : ann`.
//!
//! A list method declares its fields in a table of [`Field`]s. [`Filter::parse`] checks a filter
//! against it; [`Filter::matches`] then decides about each record, and what the filter fixes
//! ([`Filter::exact`], [`Filter::range`] and others) selects an index or becomes an argument of a
//! statement. Terms are joined by AND. `=` and `!=` compare, `:` tests a list for an entry, and `<`,
//! `<=`, `>` and `>=` order times.

mod field;
mod terms;

use servo_model::{RunId, Timestamp};

pub use self::field::{Field, entry};
use self::field::{Kind, Value};
use self::terms::Operator;
use crate::error::{Error, Reason};

/// The error for a filter that is not valid.
pub fn bad_filter(fault: &str) -> Error {
    Error::new(Reason::InvalidFilter, format!("filter: {fault}")).and_bad_field("filter", fault)
}

/// A checked filter of records `R`: all conditions must hold.
pub struct Filter<R: 'static>(Vec<Condition<R>>);

struct Condition<R: 'static> {
    field: &'static Field<R>,
    /// The key of a map's entry.
    key: String,
    operator: Operator,
    value: Value,
}

/// The times from `from` on and before `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    pub from: Timestamp,
    pub until: Timestamp,
}

impl TimeRange {
    /// From 1970 to the year 9999, which Postgres can store as well.
    pub const ALL: TimeRange = TimeRange {
        from: Timestamp::UNIX_EPOCH,
        until: Timestamp::from_unix_seconds(253_370_764_800),
    };
}

impl<R: 'static> Filter<R> {
    /// Fails when the text is not a filter over these fields.
    pub fn parse(text: &str, fields: &'static [Field<R>]) -> Result<Filter<R>, Error> {
        let names: Vec<String> = fields.iter().map(Field::pattern).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut filter = Filter(Vec::new());
        for term in terms::parse(text, &names)? {
            let field = fields.iter().find(|field| field.name == term.field);
            let field = field
                .ok_or_else(|| bad_filter(&format!("`{}` cannot be filtered by", term.field)))?;
            let is_repeated = || filter.0.iter().any(|other| other.field.name == field.name);
            if matches!(field.kind, Kind::Exact) && is_repeated() {
                return Err(bad_filter(&format!("`{}` may be given once", field.name)));
            }
            let value = field.read(&term)?;
            filter.0.push(Condition {
                field,
                key: term.key.unwrap_or_default(),
                operator: term.operator,
                value,
            });
        }
        Ok(filter)
    }

    /// Whether the filter is empty, so that every record matches.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every condition holds for the record. Fields that a statement applies always do.
    pub fn matches(&self, record: &R) -> bool {
        self.0.iter().all(|condition| condition.holds(record))
    }

    /// The text that a field must equal, if the filter says so.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.equal(field).find_map(|value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The run that a field must name.
    pub fn run_id(&self, field: &str) -> Option<RunId> {
        self.exact(field).and_then(|id| id.parse().ok())
    }

    /// The number of the enum's value that a field must equal.
    pub fn number(&self, field: &str) -> Option<i32> {
        self.equal(field).find_map(|value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        })
    }

    /// The flag that a field must have, because it must equal it or must not equal the other one.
    pub fn flag(&self, field: &str) -> Option<bool> {
        self.of(field).find_map(|condition| match condition.value {
            Value::Flag(flag) => Some(flag == (condition.operator == Operator::Is)),
            _ => None,
        })
    }

    /// The times that all conditions on a field allow.
    pub fn range(&self, field: &str) -> TimeRange {
        let mut range = TimeRange::ALL;
        for condition in self.of(field) {
            let Value::Time(nanos) = condition.value else {
                continue;
            };
            // Rows store microseconds, so `>` begins with the next microsecond.
            let (floor, ceiling) = (to_us(nanos), to_us(nanos.saturating_add(999)));
            match condition.operator {
                Operator::AtLeast => range.from = range.from.max(ceiling),
                Operator::Greater => range.from = range.from.max(floor.plus_us(1)),
                Operator::Less => range.until = range.until.min(ceiling),
                Operator::AtMost => range.until = range.until.min(floor.plus_us(1)),
                Operator::Is | Operator::IsNot | Operator::Has => {}
            }
        }
        range
    }

    fn of(&self, field: &str) -> impl Iterator<Item = &Condition<R>> {
        (self.0.iter()).filter(move |condition| condition.field.name == field)
    }

    fn equal(&self, field: &str) -> impl Iterator<Item = &Value> {
        self.of(field)
            .filter(|condition| condition.operator == Operator::Is)
            .map(|condition| &condition.value)
    }
}

impl<R> Condition<R> {
    fn holds(&self, record: &R) -> bool {
        let operator = self.operator;
        match (&self.field.kind, &self.value) {
            (Kind::Text(get) | Kind::AssetKey(get) | Kind::RunId(get), Value::Text(text))
            | (Kind::OneOf(_, get), Value::Text(text)) => operator.holds(get(record), text),
            (Kind::Named { get, .. }, Value::Number(number)) => {
                operator.holds(get(record), *number)
            }
            (Kind::Flag(get), Value::Flag(flag)) => operator.holds(get(record), *flag),
            (Kind::Time(get), Value::Time(nanos)) => get(record).is_some_and(|time| {
                let own = i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
                operator.holds(own, *nanos)
            }),
            // A missing entry is empty.
            (Kind::Map(get), Value::Text(text)) => {
                operator.holds(get(record, &self.key).unwrap_or_default(), text)
            }
            (Kind::List(get), Value::Text(text)) => get(record).contains(text),
            (Kind::Exact | Kind::Range, _) => true,
            _ => false,
        }
    }
}

/// Microseconds, rounded down, within [`TimeRange::ALL`].
fn to_us(nanos: i128) -> Timestamp {
    let us = i64::try_from(nanos.div_euclid(1_000)).unwrap_or(i64::MAX);
    Timestamp::from_unix_us(us).clamp(TimeRange::ALL.from, TimeRange::ALL.until)
}

#[cfg(test)]
mod tests;
