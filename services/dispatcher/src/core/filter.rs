//! The part of AIP-160 that our lists speak: `field = "value" AND other : value`.
//!
//! `=` and `!=` compare, `:` asks a list for an entry, `<`, `<=`, `>` and `>=` order. Terms are joined by AND.

/// One term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) field: String,
    pub(crate) operator: Operator,
    pub(crate) value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
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

/// Reads a filter over `fields`; the error says where it stopped.
pub(crate) fn parse(filter: &str, fields: &[&str]) -> Result<Vec<Term>, String> {
    let mut rest = filter.trim();
    let mut terms = Vec::new();
    while !rest.is_empty() {
        if !terms.is_empty() {
            let after = rest.strip_prefix("AND").filter(|after| after.starts_with(char::is_whitespace));
            rest = after.ok_or_else(|| format!("`AND` is expected before `{rest}`"))?.trim_start();
        }
        let (term, after) = term(rest, fields)?;
        terms.push(term);
        rest = after.trim_start();
    }
    Ok(terms)
}

fn term<'a>(text: &'a str, fields: &[&str]) -> Result<(Term, &'a str), String> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    let (field, rest) = text.split_at(end);
    if !fields.contains(&field) {
        return Err(format!("`{field}` cannot be filtered by; the fields are {}", fields.join(", ")));
    }
    let rest = rest.trim_start();
    let (sign, operator) = (OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign)))
        .ok_or_else(|| format!("an operator (= != : < <= > >=) is expected after `{field}`"))?;
    let (value, rest) = value(rest[sign.len()..].trim_start())?;
    Ok((Term { field: field.to_owned(), operator: *operator, value }, rest))
}

fn value(text: &str) -> Result<(String, &str), String> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (value, rest) = quoted.split_once('"').ok_or("a quotation mark is not closed")?;
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
    /// Whether `left` stands to `right` as the operator says.
    pub(crate) fn holds<T: PartialOrd>(self, left: T, right: T) -> bool {
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
        let read = parse(filter, &["state", "name"]);
        let read =
            read.map(|terms| terms.into_iter().map(|t| (t.field, t.operator, t.value)).collect::<Vec<_>>());
        let expected = expected.map(|terms| {
            terms.iter().map(|(f, o, v)| ((*f).to_owned(), *o, (*v).to_owned())).collect::<Vec<_>>()
        });
        assert_eq!(read, expected.map_err(str::to_owned), "{filter}");
    }

    #[test]
    fn terms_are_joined_by_and() {
        check("", Ok(&[]));
        check("state = LOST", Ok(&[("state", Operator::Is, "LOST")]));
        check(
            "state!=LOST AND name : \"a b\"",
            Ok(&[("state", Operator::IsNot, "LOST"), ("name", Operator::Has, "a b")]),
        );
        check("name<=x", Ok(&[("name", Operator::AtMost, "x")]));
    }

    #[test]
    fn a_fault_says_where() {
        check("states = x", Err("`states` cannot be filtered by; the fields are state, name"));
        check("state LOST", Err("an operator (= != : < <= > >=) is expected after `state`"));
        check("state = LOST name = x", Err("`AND` is expected before `name = x`"));
        check("state =", Err("a value is missing at the end"));
        check("name = \"x", Err("a quotation mark is not closed"));
    }
}
