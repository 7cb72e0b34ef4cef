//! Rules as a manifest asks for them, and what is wrong with them.

use std::collections::HashMap;

use super::Rule;
use crate::limits::WINDOW_PERIODS_MAX;
use crate::partition::PartitionValue;
use crate::partitioning::{Dimension, Partitioning, Values};
use crate::text::excerpt;

/// A rule for one upstream dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedRule {
    pub upstream: String,
    /// The downstream dimension that decides; empty for [`Wanted::All`] and [`Wanted::Latest`].
    pub downstream: String,
    pub rule: Wanted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
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

/// What is wrong with the rule at `index`, in which field.
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
    wanted: &[WantedRule],
) -> Result<Vec<Rule>, Vec<MappingFault>> {
    let mut rules: Vec<Option<Rule>> = vec![None; up.dimensions().len()];
    let mut faults = Vec::new();
    for (index, rule) in wanted.iter().enumerate() {
        match place_rule(up, down, rule, &rules) {
            Ok((place, rule)) => rules[place] = Some(rule),
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
        rule.unwrap_or_else(|| usual(up, dimension, down))
    };
    Ok(rules.into_iter().zip(up.dimensions()).map(fill).collect())
}

fn place_rule(
    up: &Partitioning,
    down: Option<&Partitioning>,
    wanted: &WantedRule,
    taken: &[Option<Rule>],
) -> Result<(usize, Rule), Wrong> {
    let unknown = || {
        (
            "upstream",
            format!(
                "the upstream asset has no dimension `{}`",
                excerpt(&wanted.upstream)
            ),
        )
    };
    let place = up.position(&wanted.upstream).ok_or_else(unknown)?;
    if taken[place].is_some() {
        return Err((
            "upstream",
            format!(
                "the dimension `{}` has a rule already; keep one",
                wanted.upstream
            ),
        ));
    }
    let dimension = &up.dimensions()[place];
    let undecided = || match wanted.downstream.is_empty() {
        true => Ok(()),
        false => Err((
            "downstream",
            "nothing downstream decides here; leave it empty".to_owned(),
        )),
    };
    let rule = match &wanted.rule {
        Wanted::All => undecided().map(|()| Rule::All)?,
        Wanted::Latest(0) => return Err(("latest", "is 0; write at least 1".to_owned())),
        Wanted::Latest(count) => undecided().map(|()| Rule::Latest(*count))?,
        Wanted::Identity => same(dimension, decider(down, &wanted.downstream)?)?,
        Wanted::Window { start, end } => window(
            dimension,
            decider(down, &wanted.downstream)?,
            (*start).into(),
            (*end).into(),
        )?,
        Wanted::Table(lines) => table(lines, dimension, decider(down, &wanted.downstream)?)?,
    };
    Ok((place, rule))
}

/// The downstream dimension that decides, and its place.
type Decider<'a> = (usize, &'a Dimension);

fn decider<'a>(down: Option<&'a Partitioning>, name: &str) -> Result<Decider<'a>, Wrong> {
    let found = down.and_then(|partitioning| {
        partitioning
            .position(name)
            .map(|place| (place, &partitioning.dimensions()[place]))
    });
    found.ok_or_else(|| {
        (
            "downstream",
            format!("this asset has no dimension `{}`", excerpt(name)),
        )
    })
}

fn same(dimension: &Dimension, (down, decider): Decider<'_>) -> Result<Rule, Wrong> {
    match decider.kind() == dimension.kind() {
        true => Ok(Rule::Same { down }),
        false => Err((
            "identity",
            "the two dimensions have values of different types; use a table".to_owned(),
        )),
    }
}

fn window(
    dimension: &Dimension,
    (down, decider): Decider<'_>,
    start: i64,
    end: i64,
) -> Result<Rule, Wrong> {
    let is_time = |dimension: &Dimension| matches!(dimension.values, Values::Time(_));
    if !is_time(dimension) || !is_time(decider) {
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
    (down, decider): Decider<'_>,
) -> Result<Rule, Wrong> {
    let mut entries = HashMap::new();
    for (downstream, upstream) in lines {
        let key = table_value(decider, downstream)?;
        let values: Result<Vec<_>, Wrong> = upstream
            .iter()
            .map(|text| table_value(dimension, text))
            .collect();
        if entries.insert(key, values?).is_some() {
            return Err((
                "table",
                format!("the value `{}` stands twice; keep one", excerpt(downstream)),
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

/// What holds for an upstream dimension that no rule names.
fn usual(up: &Partitioning, dimension: &Dimension, down: Option<&Partitioning>) -> Rule {
    let Some(down) = down else { return Rule::All };
    let namesake = down.position(&dimension.name);
    if !matches!(dimension.values, Values::Time(_)) {
        let same = namesake.filter(|place| down.dimensions()[*place].kind() == dimension.kind());
        return same.map_or(Rule::All, |down| Rule::Same { down });
    }
    let named =
        namesake.filter(|place| matches!(down.dimensions()[*place].values, Values::Time(_)));
    let only = || only_time(up).and_then(|_| only_time(down));
    named.or_else(only).map_or(Rule::All, |down| Rule::Window {
        down,
        start: 0,
        end: 0,
    })
}

fn only_time(partitioning: &Partitioning) -> Option<usize> {
    let of_time =
        |place: &usize| matches!(partitioning.dimensions()[*place].values, Values::Time(_));
    let mut times = (0..partitioning.dimensions().len()).filter(of_time);
    times.next().filter(|_| times.next().is_none())
}
