//! The terms of a filter, parsed but not yet checked against the kinds of its fields.

use super::bad_filter;
use crate::error::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) field: String,
    /// The text after the dot, for fields that are maps.
    pub(super) key: Option<String>,
    pub(super) operator: Operator,
    pub(super) value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Is,
    IsNot,
    Has,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

const OPERATORS: [(&str, Operator); 7] = [
    ("!=", Operator::IsNot),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("=", Operator::Is),
    (":", Operator::Has),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

/// Parses a filter over `fields`; a map is written as `labels.*`. The error names where parsing
/// stopped.
pub(super) fn parse(filter: &str, fields: &[&str]) -> Result<Vec<Term>, Error> {
    terms(filter, fields).map_err(|fault| bad_filter(&fault))
}

fn terms(filter: &str, fields: &[&str]) -> Result<Vec<Term>, String> {
    let mut rest = filter.trim();
    let mut terms = Vec::new();
    while !rest.is_empty() {
        if !terms.is_empty() {
            let after = rest
                .strip_prefix("AND")
                .filter(|after| after.starts_with(char::is_whitespace));
            rest = after
                .ok_or_else(|| format!("`AND` is expected before `{rest}`"))?
                .trim_start();
        }
        let (term, after) = term(rest, fields)?;
        terms.push(term);
        rest = after.trim_start();
    }
    Ok(terms)
}

fn term<'a>(text: &'a str, fields: &[&str]) -> Result<(Term, &'a str), String> {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)))
        .unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let (field, key) = name
        .split_once('.')
        .map_or((name, None), |(field, key)| (field, Some(key)));
    let known = match key {
        None => fields.contains(&field),
        Some(key) => {
            !key.is_empty()
                && fields
                    .iter()
                    .any(|known| known.strip_suffix(".*") == Some(field))
        }
    };
    if !known {
        return Err(format!(
            "`{name}` cannot be filtered by; the fields are {}",
            fields.join(", ")
        ));
    }
    let rest = rest.trim_start();
    let (sign, operator) = (OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign)))
        .ok_or_else(|| format!("an operator (= != : < <= > >=) is expected after `{name}`"))?;
    let (value, rest) = value(rest[sign.len()..].trim_start())?;
    let term = Term {
        field: field.to_owned(),
        key: key.map(str::to_owned),
        operator: *operator,
        value,
    };
    Ok((term, rest))
}

fn value(text: &str) -> Result<(String, &str), String> {
    if text.contains('\0') {
        return Err("a value contains a NUL character".to_owned());
    }
    if let Some(quoted) = text.strip_prefix('"') {
        let (value, rest) = quoted
            .split_once('"')
            .ok_or("a quotation mark is not closed")?;
        return Ok((value.to_owned(), rest));
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (value, rest) = text.split_at(end);
    if value.is_empty() {
        Err("a value is missing at the end".to_owned())
    } else {
        Ok((value.to_owned(), rest))
    }
}

impl Operator {
    /// Evaluates `left <operator> right`.
    pub(super) fn holds<T: PartialOrd>(self, left: T, right: T) -> bool {
        match self {
            Operator::Is | Operator::Has => left == right,
            Operator::IsNot => left != right,
            Operator::Less => left < right,
            Operator::AtMost => left <= right,
            Operator::Greater => left > right,
            Operator::AtLeast => left >= right,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(filter: &str, expected: Result<&[(&str, Operator, &str)], &str>) {
        let read = terms(filter, &["state", "name", "labels.*"]);
        let read = read.map(|terms| {
            terms
                .into_iter()
                .map(|t| (t.field, t.operator, t.value))
                .collect::<Vec<_>>()
        });
        let expected = expected.map(|terms| {
            terms
                .iter()
                .map(|(f, o, v)| ((*f).to_owned(), *o, (*v).to_owned()))
                .collect::<Vec<_>>()
        });
        assert_eq!(read, expected.map_err(str::to_owned), "{filter}");
    }

    #[test]
    fn terms_are_joined_by_and() {
        check("", Ok(&[]));
        check("state = LOST", Ok(&[("state", Operator::Is, "LOST")]));
        check(
            "state!=LOST AND name : \"a b\"",
            Ok(&[
                ("state", Operator::IsNot, "LOST"),
                ("name", Operator::Has, "a b"),
            ]),
        );
        check("name<=x", Ok(&[("name", Operator::AtMost, "x")]));
        check(
            "labels.cost-centre = 7",
            Ok(&[("labels", Operator::Is, "7")]),
        );
        assert_eq!(
            terms("labels.a.b = 1", &["labels.*"]).unwrap()[0]
                .key
                .as_deref(),
            Some("a.b")
        );
    }

    #[test]
    fn errors_name_the_position_of_the_fault() {
        check(
            "states = x",
            Err("`states` cannot be filtered by; the fields are state, name, labels.*"),
        );
        check(
            "labels = x",
            Err("`labels` cannot be filtered by; the fields are state, name, labels.*"),
        );
        check(
            "name.x = y",
            Err("`name.x` cannot be filtered by; the fields are state, name, labels.*"),
        );
        check(
            "state LOST",
            Err("an operator (= != : < <= > >=) is expected after `state`"),
        );
        check(
            "state = LOST name = x",
            Err("`AND` is expected before `name = x`"),
        );
        check("state =", Err("a value is missing at the end"));
        check("name = \"x", Err("a quotation mark is not closed"));
        check("name = x\0", Err("a value contains a NUL character"));
        check("state = LOST AND", Err("`AND` is expected before `AND`"));
    }
}
