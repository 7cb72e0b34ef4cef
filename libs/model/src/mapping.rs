//! Which partitions of an upstream asset one partition of a downstream asset reads.
//!
//! Without a rule for it, an upstream dimension follows the downstream one of the same name and type; times follow
//! the only other time; anything else is read whole.

mod axes;
mod wanted;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;

pub use axes::Axis;
pub use wanted::{MappingFault, Wanted, WantedRule};

use crate::grid::TimeGrid;
use crate::limits::INPUT_KEYS_PER_PLAN_MAX;
use crate::partition::{PartitionKey, PartitionValue};
use crate::partitioning::{Dimension, Moment, Partitioning, PartitioningError, Product, Values};

/// One rule per upstream dimension, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    rules: Vec<Rule>,
}

/// `down` is the place of a dimension in the downstream cut.
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
    /// Checks the rules that were asked for and fills in the rest. `down` is `None` for an asset in one piece.
    pub fn new(
        up: &Partitioning,
        down: Option<&Partitioning>,
        wanted: &[WantedRule],
    ) -> Result<Mapping, Vec<MappingFault>> {
        wanted::resolve(up, down, wanted).map(|rules| Mapping { rules })
    }

    /// Whether every partition of the downstream asset goes with one of the upstream asset, by the definitions alone: it
    /// may not exist.
    pub fn is_one_to_one(&self, up: &Partitioning, down: Option<&Partitioning>) -> bool {
        let decider =
            |place: usize| down.map(|partitioning| &partitioning.dimensions()[place].values);
        self.rules
            .iter()
            .zip(up.dimensions())
            .all(|(rule, dimension)| match rule {
                Rule::Same { .. } => true,
                Rule::Window {
                    down,
                    start: 0,
                    end: 0,
                } => match (&dimension.values, decider(*down)) {
                    (Values::Time(upstream), Some(Values::Time(own))) => {
                        upstream.is_in_step_with(own)
                    }
                    _ => false,
                },
                Rule::Window { .. } | Rule::All | Rule::Latest(_) | Rule::Table { .. } => false,
            })
    }

    /// What one partition of the downstream asset reads. Values that the upstream cut does not have are left out.
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

    /// The partitions of the downstream asset that read this one; `None` when every one does.
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
            if let Some((place, readers)) = rule.readers(dimension, down, value)? {
                let narrowed = match lists[place].take() {
                    Some(before) => before
                        .into_iter()
                        .filter(|value| readers.contains(value))
                        .collect(),
                    None => readers,
                };
                lists[place] = Some(narrowed);
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
        let decider = |place: usize| {
            let (partitioning, key) = down?;
            let decider = &partitioning.dimensions()[place];
            Some((decider, key.get(&decider.name)?))
        };
        match self {
            Rule::All => dimension.existing(moment),
            Rule::Latest(count) => dimension.newest(*count, moment),
            Rule::Same { down } => {
                let value = decider(*down).map(|(_, value)| value.clone());
                Ok(value
                    .filter(|value| dimension.has(value, moment))
                    .into_iter()
                    .collect())
            }
            Rule::Window { down, start, end } => {
                let (Values::Time(grid), Some((decider, value))) =
                    (&dimension.values, decider(*down))
                else {
                    return Ok(Vec::new());
                };
                dimension.periods(grid, window(grid, decider, value, *start, *end))
            }
            Rule::Table { down, entries } => {
                let listed = decider(*down).and_then(|(_, value)| entries.get(value));
                let known = listed
                    .into_iter()
                    .flatten()
                    .filter(|value| dimension.has(value, moment));
                Ok(known.cloned().collect())
            }
        }
    }

    /// The downstream dimension that decides, and its values that may read `value`; none when all do.
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
                down: place,
                start,
                end,
            } => {
                let reader = &down.dimensions()[*place];
                let (Values::Time(up_grid), Values::Time(grid)) =
                    (&dimension.values, &reader.values)
                else {
                    return Ok(Some((*place, Vec::new())));
                };
                let readers = window_readers(up_grid, reader, grid, value, *start, *end)?;
                Ok(Some((*place, readers)))
            }
        }
    }
}

/// The upstream places that a downstream period reads.
fn window(
    up: &TimeGrid,
    decider: &Dimension,
    value: &PartitionValue,
    start: i64,
    end: i64,
) -> Range<i64> {
    let Values::Time(down) = &decider.values else {
        return 0..0;
    };
    let span = down.place(value).ok().and_then(|place| down.span(place));
    let Some(span) = span else { return 0..0 };
    let overlap = up.overlapping(&span);
    let moved = up.clip(overlap.start.saturating_add(start)..overlap.end.saturating_add(end));
    if moved.start < moved.end { moved } else { 0..0 }
}

/// The downstream periods whose window holds an upstream one: those near it, tried one by one.
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
    let candidates = reader.periods(down, down.clip(near))?;
    let reads =
        |candidate: &PartitionValue| window(up, reader, candidate, start, end).contains(&place);
    Ok(candidates.into_iter().filter(reads).collect())
}

/// Counted before it is made: a small manifest can mean a hundred million keys.
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
