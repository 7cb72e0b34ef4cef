//! Reading the terms of a filter.

use servo_mesh::Error;
use servo_mesh::filter::{Operator, Term, bad_filter};
use servo_store::Timestamp;

/// The latest time of a filter: the year 9999.
pub(crate) const NEWEST: i64 = 253_370_764_800_000_000;
/// The earliest time of a filter: 1970.
const OLDEST: i64 = 0;

/// Parses an enum value by its name, with or without the prefix that the names of its enum share.
pub(crate) fn named<E: Into<i32>>(
    from_name: fn(&str) -> Option<E>,
    prefix: &str,
    term: &Term,
) -> Result<i32, Error> {
    let upper = term.value.to_ascii_uppercase();
    let found = from_name(&upper).or_else(|| from_name(&format!("{prefix}{upper}")));
    found
        .map(Into::into)
        .ok_or_else(|| bad_filter(&format!("`{}` is not a {}", term.value, term.field)))
}

/// The value that a field must equal, if the filter names the field.
pub(crate) fn is(terms: &[Term], field: &str) -> Result<Option<String>, Error> {
    let Some(term) = terms.iter().find(|term| term.field == field) else {
        return Ok(None);
    };
    match term.operator {
        Operator::Is => Ok(Some(term.value.clone())),
        _ => Err(bad_filter(&format!("`{field}` takes = only"))),
    }
}

/// The time range that all terms about a field allow: from when, and before when.
pub(crate) fn within(terms: &[Term], field: &str) -> Result<(Timestamp, Timestamp), Error> {
    let (mut from, mut until) = (OLDEST, NEWEST);
    for term in terms.iter().filter(|term| term.field == field) {
        // Rows store microseconds, so `>` begins with the next microsecond.
        let nanos = term.time()?;
        let (floor, ceiling) = (
            micros(nanos.div_euclid(1_000)),
            micros((nanos + 999).div_euclid(1_000)),
        );
        match term.operator {
            Operator::AtLeast => from = from.max(ceiling),
            Operator::Greater => from = from.max(floor + 1),
            Operator::Less => until = until.min(ceiling),
            Operator::AtMost => until = until.min(floor + 1),
            _ => {
                return Err(bad_filter(&format!("`{field}` takes <, <=, > and >= only")));
            }
        }
    }
    Ok((
        Timestamp::from_unix_us(from),
        Timestamp::from_unix_us(until),
    ))
}

fn micros(micros: i128) -> i64 {
    i64::try_from(micros)
        .unwrap_or(NEWEST)
        .clamp(OLDEST, NEWEST)
}
