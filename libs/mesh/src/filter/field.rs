//! The fields of a filter: what their values are, and where a record has them.

use std::collections::BTreeMap;

use prost_types::Timestamp;
use servo_model::RunId;

use super::bad_filter;
use super::terms::{Operator, Term};
use crate::error::Error;

/// A field that records `R` can be filtered by.
pub struct Field<R> {
    pub(super) name: &'static str,
    pub(super) kind: Kind<R>,
}

pub(super) enum Kind<R> {
    Text(fn(&R) -> &str),
    AssetKey(fn(&R) -> &str),
    RunId(fn(&R) -> &str),
    OneOf(&'static [&'static str], fn(&R) -> &str),
    Named {
        prefix: &'static str,
        number: fn(&str) -> Option<i32>,
        get: fn(&R) -> i32,
    },
    Flag(fn(&R) -> bool),
    Time(fn(&R) -> Option<Timestamp>),
    Map(for<'a> fn(&'a R, &str) -> Option<&'a str>),
    List(fn(&R) -> &[String]),
    Exact,
    Range,
}

/// The value of a term, read as its field's kind demands.
#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    /// The number of an enum's value.
    Number(i32),
    Flag(bool),
    /// In nanoseconds since 1970.
    Time(i128),
}

impl<R> Field<R> {
    pub const fn text(name: &'static str, get: fn(&R) -> &str) -> Field<R> {
        let kind = Kind::Text(get);
        Field { name, kind }
    }

    /// The key of an asset, which may be written with a dot instead of the slash.
    pub const fn asset_key(name: &'static str, get: fn(&R) -> &str) -> Field<R> {
        let kind = Kind::AssetKey(get);
        Field { name, kind }
    }

    pub const fn run_id(name: &'static str, get: fn(&R) -> &str) -> Field<R> {
        let kind = Kind::RunId(get);
        Field { name, kind }
    }

    pub const fn one_of(
        name: &'static str,
        values: &'static [&'static str],
        get: fn(&R) -> &str,
    ) -> Field<R> {
        let kind = Kind::OneOf(values, get);
        Field { name, kind }
    }

    /// A value of an enum, written as its name with or without the prefix that all names of the
    /// enum share, in any case.
    pub const fn named(
        name: &'static str,
        prefix: &'static str,
        number: fn(&str) -> Option<i32>,
        get: fn(&R) -> i32,
    ) -> Field<R> {
        let kind = Kind::Named {
            prefix,
            number,
            get,
        };
        Field { name, kind }
    }

    pub const fn flag(name: &'static str, get: fn(&R) -> bool) -> Field<R> {
        let kind = Kind::Flag(get);
        Field { name, kind }
    }

    /// A record without the time matches no condition on it.
    pub const fn time(name: &'static str, get: fn(&R) -> Option<Timestamp>) -> Field<R> {
        let kind = Kind::Time(get);
        Field { name, kind }
    }

    /// A map, whose entries are written as `labels.team`.
    pub const fn map(
        name: &'static str,
        get: for<'a> fn(&'a R, &str) -> Option<&'a str>,
    ) -> Field<R> {
        let kind = Kind::Map(get);
        Field { name, kind }
    }

    pub const fn list(name: &'static str, get: fn(&R) -> &[String]) -> Field<R> {
        let kind = Kind::List(get);
        Field { name, kind }
    }

    /// A text that a statement compares; takes `=` only, once.
    pub const fn exact(name: &'static str) -> Field<R> {
        let kind = Kind::Exact;
        Field { name, kind }
    }

    /// A time that a statement compares; takes no `=`.
    pub const fn range(name: &'static str) -> Field<R> {
        let kind = Kind::Range;
        Field { name, kind }
    }

    /// The name as the parser of terms knows it.
    pub(super) fn pattern(&self) -> String {
        let suffix = if matches!(self.kind, Kind::Map(_)) {
            ".*"
        } else {
            ""
        };
        format!("{}{suffix}", self.name)
    }

    pub(super) fn read(&self, term: &Term) -> Result<Value, Error> {
        self.check_operator(term.operator)?;
        let text = &term.value;
        match &self.kind {
            Kind::Text(_) | Kind::Map(_) | Kind::List(_) | Kind::Exact => {
                Ok(Value::Text(text.clone()))
            }
            Kind::AssetKey(_) => Ok(Value::Text(text.replacen('.', "/", 1))),
            Kind::RunId(_) => match text.parse::<RunId>() {
                Ok(_) => Ok(Value::Text(text.clone())),
                Err(_) => Err(bad_filter(&format!("`{text}` is not a run id"))),
            },
            Kind::OneOf(values, _) if values.contains(&text.as_str()) => {
                Ok(Value::Text(text.clone()))
            }
            Kind::OneOf(values, _) => Err(bad_filter(&format!(
                "`{text}` is not a {}; use one of {}",
                self.name,
                values.join(", ")
            ))),
            Kind::Named { prefix, number, .. } => {
                let upper = text.to_ascii_uppercase();
                number(&upper)
                    .or_else(|| number(&format!("{prefix}{upper}")))
                    .map(Value::Number)
                    .ok_or_else(|| bad_filter(&format!("`{text}` is not a {}", self.name)))
            }
            Kind::Flag(_) => text.parse().map(Value::Flag).map_err(|_| {
                bad_filter(&format!(
                    "`{text}` is neither true nor false; `{}` takes one of them",
                    self.name
                ))
            }),
            Kind::Time(_) | Kind::Range => {
                let parsed: Result<jiff::Timestamp, _> = text.parse();
                parsed
                    .map(|at| Value::Time(at.as_nanosecond()))
                    .map_err(|_| {
                        bad_filter(&format!(
                            "`{text}` is not a time; write {} like \"2026-01-31T12:00:00Z\"",
                            self.name
                        ))
                    })
            }
        }
    }

    fn check_operator(&self, operator: Operator) -> Result<(), Error> {
        use Operator::{AtLeast, AtMost, Greater, Has, Is, IsNot, Less};
        let (allowed, rule): (&[Operator], &str) = match self.kind {
            Kind::Time(_) => (
                &[Is, IsNot, Less, AtMost, Greater, AtLeast],
                "takes =, !=, <, <=, > and >= only",
            ),
            Kind::Range => (
                &[Less, AtMost, Greater, AtLeast],
                "takes <, <=, > and >= only",
            ),
            Kind::List(_) => (&[Has], "is a list; ask it for an entry with `:`"),
            Kind::Exact => (&[Is], "takes = only"),
            _ => (&[Is, IsNot], "takes = and != only"),
        };
        if allowed.contains(&operator) {
            return Ok(());
        }
        Err(bad_filter(&format!("`{}` {rule}", self.name)))
    }
}

/// The entry of a map, for [`Field::map`].
pub fn entry<'a>(map: &'a BTreeMap<String, String>, key: &str) -> Option<&'a str> {
    map.get(key).map(String::as_str)
}
