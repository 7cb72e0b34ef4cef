//! Which partitions of an upstream asset one partition of a downstream asset reads.
//!
//! An upstream dimension without a rule follows the downstream dimension of the same name and type.
//! A time dimension otherwise follows the only time dimension downstream. All other dimensions are
//! read whole.

mod axes;
mod declared;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;

pub use axes::Axis;
pub use declared::{DeclaredRule, MappingFault, MappingRule};

use crate::grid::TimeGrid;
use crate::limits::INPUT_KEYS_PER_PLAN_MAX;
use crate::partition::{PartitionKey, PartitionValue};
use crate::partitioning::{Dimension, Moment, Partitioning, PartitioningError, Product, Values};

/// One rule per upstream dimension, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    rules: Vec<Rule>,
}

/// `down` is the index of a dimension in the downstream partitioning.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    Same {
        down: usize,
    },
    Window {
        down: usize,
        start: i64,
        end: i64,
    },
    All,
    Latest(u32),
    Table {
        down: usize,
        entries: HashMap<PartitionValue, Vec<PartitionValue>>,
    },
}

impl Mapping {
    /// Checks the declared rules and fills in the defaults. `down` is `None` for an asset without
    /// partitions.
    pub fn new(
        up: &Partitioning,
        down: Option<&Partitioning>,
        declared: &[DeclaredRule],
    ) -> Result<Mapping, Vec<MappingFault>> {
        declared::resolve(up, down, declared).map(|rules| Mapping { rules })
    }

    /// Whether every downstream partition reads exactly one upstream partition. Judged by the
    /// definitions alone: that partition may not exist.
    pub fn is_one_to_one(&self, up: &Partitioning, down: Option<&Partitioning>) -> bool {
        let driver =
            |index: usize| down.map(|partitioning| &partitioning.dimensions()[index].values);
        self.rules
            .iter()
            .zip(up.dimensions())
            .all(|(rule, dimension)| match rule {
                Rule::Same { .. } => true,
                Rule::Window {
                    down,
                    start: 0,
                    end: 0,
                } => match (&dimension.values, driver(*down)) {
                    (Values::Time(upstream), Some(Values::Time(own))) => {
                        upstream.has_same_periods_as(own)
                    }
                    _ => false,
                },
                Rule::Window { .. } | Rule::All | Rule::Latest(_) | Rule::Table { .. } => false,
            })
    }

    /// The upstream partitions that one downstream partition reads, without values that the
    /// upstream partitioning does not have.
    pub fn upstream(
        &self,
        up: &Partitioning,
        down: Option<(&Partitioning, &PartitionKey)>,
        moment: &Moment,
    ) -> Result<Vec<PartitionKey>, PartitioningError> {
        let mut lists = Vec::with_capacity(self.rules.len());
        for (rule, dimension) in self.rules.iter().zip(up.dimensions()) {
            lists.push(rule.read(dimension, down, moment)?);
        }
        product(up, lists)
    }

    /// The downstream partitions that read this partition; `None` when all of them do.
    pub fn downstream(
        &self,
        up: &Partitioning,
        down: &Partitioning,
        key: &PartitionKey,
        moment: &Moment,
    ) -> Result<Option<Vec<PartitionKey>>, PartitioningError> {
        let mut lists: Vec<Option<Vec<PartitionValue>>> = vec![None; down.dimensions().len()];
        for (rule, dimension) in self.rules.iter().zip(up.dimensions()) {
            let Some(value) = key.get(&dimension.name) else {
                continue;
            };
            if let Some((index, readers)) = rule.readers(dimension, down, value)? {
                let narrowed = match lists[index].take() {
                    Some(before) => before
                        .into_iter()
                        .filter(|value| readers.contains(value))
                        .collect(),
                    None => readers,
                };
                lists[index] = Some(narrowed);
            }
        }
        if lists.iter().all(Option::is_none) {
            return Ok(None);
        }
        let filled: Result<Vec<_>, PartitioningError> = lists
            .into_iter()
            .zip(down.dimensions())
            .map(|(list, dimension)| list.map_or_else(|| dimension.existing(moment), Ok))
            .collect();
        let exists = |key: &PartitionKey| down.check(key, moment).is_ok();
        Ok(Some(
            product(down, filled?)?.into_iter().filter(exists).collect(),
        ))
    }
}

impl Rule {
    /// The upstream values that a downstream partition reads.
    fn read(
        &self,
        dimension: &Dimension,
        down: Option<(&Partitioning, &PartitionKey)>,
        moment: &Moment,
    ) -> Result<Vec<PartitionValue>, PartitioningError> {
        let driver = |index: usize| {
            let (partitioning, key) = down?;
            let driver = &partitioning.dimensions()[index];
            Some((driver, key.get(&driver.name)?))
        };
        match self {
            Rule::All => dimension.existing(moment),
            Rule::Latest(count) => dimension.newest(*count, moment),
            Rule::Same { down } => {
                let value = driver(*down).map(|(_, value)| value.clone());
                Ok(value
                    .filter(|value| dimension.has(value, moment))
                    .into_iter()
                    .collect())
            }
            Rule::Window { down, start, end } => {
                let (Values::Time(grid), Some((driver, value))) =
                    (&dimension.values, driver(*down))
                else {
                    return Ok(Vec::new());
                };
                dimension.periods(grid, window(grid, driver, value, *start, *end))
            }
            Rule::Table { down, entries } => {
                let listed = driver(*down).and_then(|(_, value)| entries.get(value));
                let known = listed
                    .into_iter()
                    .flatten()
                    .filter(|value| dimension.has(value, moment));
                Ok(known.cloned().collect())
            }
        }
    }

    /// The downstream dimension that drives this rule, and those of its values that may read
    /// `value`; `None` when all of them do.
    fn readers(
        &self,
        dimension: &Dimension,
        down: &Partitioning,
        value: &PartitionValue,
    ) -> Result<Option<(usize, Vec<PartitionValue>)>, PartitioningError> {
        match self {
            Rule::All | Rule::Latest(_) => Ok(None),
            Rule::Same { down } => Ok(Some((*down, vec![value.clone()]))),
            Rule::Table { down, entries } => {
                let reads = entries
                    .iter()
                    .filter(|(_, upstream)| upstream.contains(value));
                let mut readers: Vec<PartitionValue> =
                    reads.map(|(reader, _)| reader.clone()).collect();
                readers.sort_unstable();
                Ok(Some((*down, readers)))
            }
            Rule::Window {
                down: index,
                start,
                end,
            } => {
                let reader = &down.dimensions()[*index];
                let (Values::Time(up_grid), Values::Time(grid)) =
                    (&dimension.values, &reader.values)
                else {
                    return Ok(Some((*index, Vec::new())));
                };
                let readers = window_readers(up_grid, reader, grid, value, *start, *end)?;
                Ok(Some((*index, readers)))
            }
        }
    }
}

/// The upstream places that a downstream period reads.
fn window(
    up: &TimeGrid,
    driver: &Dimension,
    value: &PartitionValue,
    start: i64,
    end: i64,
) -> Range<i64> {
    let Values::Time(down) = &driver.values else {
        return 0..0;
    };
    let span = down.place(value).ok().and_then(|place| down.span(place));
    let Some(span) = span else { return 0..0 };
    let overlap = up.overlapping(&span);
    let moved = up.clamp(overlap.start.saturating_add(start)..overlap.end.saturating_add(end));
    if moved.start < moved.end { moved } else { 0..0 }
}

/// The downstream periods whose window contains an upstream period: tries the periods near it one
/// by one.
fn window_readers(
    up: &TimeGrid,
    reader: &Dimension,
    down: &TimeGrid,
    value: &PartitionValue,
    start: i64,
    end: i64,
) -> Result<Vec<PartitionValue>, PartitioningError> {
    let Ok(place) = up.place(value) else {
        return Ok(Vec::new());
    };
    let (earliest, latest) = (place - start.max(end), place - start.min(end));
    let (Some(first), Some(last)) = (up.span(earliest), up.span(latest)) else {
        return Ok(Vec::new());
    };
    let near = down.overlapping(&(first.start..last.end));
    let candidates = reader.periods(down, down.clamp(near))?;
    let reads =
        |candidate: &PartitionValue| window(up, reader, candidate, start, end).contains(&place);
    Ok(candidates.into_iter().filter(reads).collect())
}

/// Counts the keys before creating them, because a small manifest can produce a hundred million.
fn product(
    partitioning: &Partitioning,
    lists: Vec<Vec<PartitionValue>>,
) -> Result<Vec<PartitionKey>, PartitioningError> {
    let product = Product::of(partitioning, lists);
    if product.len() > INPUT_KEYS_PER_PLAN_MAX as u64 {
        let count = product.len();
        return Err(PartitioningError::TooMany(format!(
            "an input would name {count} partitions; at most {INPUT_KEYS_PER_PLAN_MAX} are allowed in a plan, so map fewer"
        )));
    }
    let keys: Result<Vec<_>, _> = product.keys().collect();
    keys.map_err(|error| PartitioningError::Invalid(error.to_string()))
}
