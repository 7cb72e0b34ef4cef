//! Mapping rules as a manifest declares them, and their validation.

use std::collections::HashMap;

use super::Rule;
use crate::limits::WINDOW_PERIODS_MAX;
use crate::partition::PartitionValue;
use crate::partitioning::{Dimension, Partitioning, Values};
use crate::text::excerpt;

/// The declared rule for one upstream dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredRule {
    pub upstream: String,
    /// The downstream dimension that drives the rule; empty for [`MappingRule::All`] and
    /// [`MappingRule::Latest`].
    pub downstream: String,
    pub rule: MappingRule,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MappingRule {
    Identity,
    /// Offsets in upstream periods.
    Window {
        start: i32,
        end: i32,
    },
    All,
    Latest(u32),
    /// Downstream value to upstream values, as text.
    Table(Vec<(String, Vec<String>)>),
}

/// The field of the rule at `index` that is wrong, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingFault {
    pub index: usize,
    pub field: &'static str,
    pub sentence: String,
}

type Wrong = (&'static str, String);

pub(super) fn resolve(
    up: &Partitioning,
    down: Option<&Partitioning>,
    declared: &[DeclaredRule],
) -> Result<Vec<Rule>, Vec<MappingFault>> {
    let mut rules: Vec<Option<Rule>> = vec![None; up.dimensions().len()];
    let mut faults = Vec::new();
    for (index, rule) in declared.iter().enumerate() {
        match locate_rule(up, down, rule, &rules) {
            Ok((index, rule)) => rules[index] = Some(rule),
            Err((field, sentence)) => faults.push(MappingFault {
                index,
                field,
                sentence,
            }),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let fill = |(rule, dimension): (Option<Rule>, &Dimension)| {
        rule.unwrap_or_else(|| default_rule(up, dimension, down))
    };
    Ok(rules.into_iter().zip(up.dimensions()).map(fill).collect())
}

fn locate_rule(
    up: &Partitioning,
    down: Option<&Partitioning>,
    declared: &DeclaredRule,
    taken: &[Option<Rule>],
) -> Result<(usize, Rule), Wrong> {
    let unknown = || {
        (
            "upstream",
            format!(
                "the upstream asset has no dimension `{}`",
                excerpt(&declared.upstream)
            ),
        )
    };
    let index = up.position(&declared.upstream).ok_or_else(unknown)?;
    if taken[index].is_some() {
        return Err((
            "upstream",
            format!(
                "the dimension `{}` has a rule already; keep one",
                declared.upstream
            ),
        ));
    }
    let dimension = &up.dimensions()[index];
    let no_driver = || {
        if declared.downstream.is_empty() {
            Ok(())
        } else {
            Err((
                "downstream",
                "this rule depends on no downstream dimension; leave it empty".to_owned(),
            ))
        }
    };
    let rule = match &declared.rule {
        MappingRule::All => no_driver().map(|()| Rule::All)?,
        MappingRule::Latest(0) => return Err(("latest", "is 0; write at least 1".to_owned())),
        MappingRule::Latest(count) => no_driver().map(|()| Rule::Latest(*count))?,
        MappingRule::Identity => same(dimension, driver(down, &declared.downstream)?)?,
        MappingRule::Window { start, end } => window(
            dimension,
            driver(down, &declared.downstream)?,
            (*start).into(),
            (*end).into(),
        )?,
        MappingRule::Table(lines) => table(lines, dimension, driver(down, &declared.downstream)?)?,
    };
    Ok((index, rule))
}

/// The downstream dimension that drives a rule, and its index.
type Driver<'a> = (usize, &'a Dimension);

fn driver<'a>(down: Option<&'a Partitioning>, name: &str) -> Result<Driver<'a>, Wrong> {
    let found = down.and_then(|partitioning| {
        partitioning
            .position(name)
            .map(|index| (index, &partitioning.dimensions()[index]))
    });
    found.ok_or_else(|| {
        (
            "downstream",
            format!("this asset has no dimension `{}`", excerpt(name)),
        )
    })
}

fn same(dimension: &Dimension, (down, driver): Driver<'_>) -> Result<Rule, Wrong> {
    if driver.kind() == dimension.kind() {
        Ok(Rule::Same { down })
    } else {
        Err((
            "identity",
            "the two dimensions have values of different types; use a table".to_owned(),
        ))
    }
}

fn window(
    dimension: &Dimension,
    (down, driver): Driver<'_>,
    start: i64,
    end: i64,
) -> Result<Rule, Wrong> {
    let is_time = |dimension: &Dimension| matches!(dimension.values, Values::Time(_));
    if !is_time(dimension) || !is_time(driver) {
        return Err((
            "window",
            "a window lies between two dimensions of time".to_owned(),
        ));
    }
    if start.abs().max(end.abs()) > WINDOW_PERIODS_MAX {
        return Err((
            "window",
            format!("an offset is beyond {WINDOW_PERIODS_MAX} periods"),
        ));
    }
    Ok(Rule::Window { down, start, end })
}

fn table(
    lines: &[(String, Vec<String>)],
    dimension: &Dimension,
    (down, driver): Driver<'_>,
) -> Result<Rule, Wrong> {
    let mut entries = HashMap::new();
    for (downstream, upstream) in lines {
        let key = table_value(driver, downstream)?;
        let values: Result<Vec<_>, Wrong> = upstream
            .iter()
            .map(|text| table_value(dimension, text))
            .collect();
        if entries.insert(key, values?).is_some() {
            return Err((
                "table",
                format!(
                    "the value `{}` appears twice; keep one",
                    excerpt(downstream)
                ),
            ));
        }
    }
    Ok(Rule::Table { down, entries })
}

fn table_value(dimension: &Dimension, text: &str) -> Result<PartitionValue, Wrong> {
    let value = PartitionValue::from_text(dimension.kind(), text)
        .map_err(|fault| ("table", fault.to_string()))?;
    match &dimension.values {
        Values::Fixed(list) if !list.contains(&value) => Err((
            "table",
            format!(
                "the dimension `{}` has no value `{}`",
                dimension.name,
                excerpt(text)
            ),
        )),
        _ => Ok(value),
    }
}

/// The rule of an upstream dimension for which none is declared.
fn default_rule(up: &Partitioning, dimension: &Dimension, down: Option<&Partitioning>) -> Rule {
    let Some(down) = down else { return Rule::All };
    let namesake = down.position(&dimension.name);
    if !matches!(dimension.values, Values::Time(_)) {
        let same = namesake.filter(|index| down.dimensions()[*index].kind() == dimension.kind());
        return same.map_or(Rule::All, |down| Rule::Same { down });
    }
    let named =
        namesake.filter(|index| matches!(down.dimensions()[*index].values, Values::Time(_)));
    let only = || single_time_dimension(up).and_then(|_| single_time_dimension(down));
    named.or_else(only).map_or(Rule::All, |down| Rule::Window {
        down,
        start: 0,
        end: 0,
    })
}

fn single_time_dimension(partitioning: &Partitioning) -> Option<usize> {
    let of_time =
        |index: &usize| matches!(partitioning.dimensions()[*index].values, Values::Time(_));
    let mut times = (0..partitioning.dimensions().len()).filter(of_time);
    times.next().filter(|_| times.next().is_none())
}
