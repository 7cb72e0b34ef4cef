//! How an asset is divided into partitions: the product of typed dimensions.
//!
//! The definition never changes. The partitions that exist depend on the [`Moment`]: periods end,
//! and dynamic sets grow and shrink.

mod numbering;
mod product;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use jiff::Timestamp;

pub use numbering::Numbering;
pub use product::Product;

use crate::asset::is_name;
use crate::grid::{GridMismatch, TimeGrid};
use crate::limits::{PARTITION_DIMENSIONS_MAX, PARTITION_VALUES_MAX};
use crate::partition::{MAP_DIMENSION, PartitionKey, PartitionValue, ValueKind};

/// At least one dimension, sorted by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitioning {
    dimensions: Vec<Dimension>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimension {
    pub name: String,
    pub values: Values,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    Time(TimeGrid),
    Fixed(ValueList),
    /// Strings, added and removed while the deployment is active.
    Dynamic {
        set: String,
    },
}

/// Distinct values in their order, with a fast lookup.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValueList {
    values: Vec<PartitionValue>,
    known: HashSet<PartitionValue>,
}

/// The inputs, besides the definition, that determine which partitions exist.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    pub now: Timestamp,
    /// By the name of the set; a set that is missing here is empty.
    pub sets: BTreeMap<String, ValueList>,
}

/// Some values of one dimension, as a caller selects them: one by one, or as a range.
#[derive(Debug, Clone, Copy)]
pub enum ValueSelection<'a> {
    Values(&'a [String]),
    /// Both bounds are included; an empty text leaves that side open.
    Between(&'a str, &'a str),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartitioningError {
    /// The key or selection does not fit the definition.
    #[error("{0}")]
    Invalid(String),
    /// It fits, but lies before the start, after the end or in the future.
    #[error("{0}")]
    OutOfRange(String),
    /// It selects more partitions than one call may name.
    #[error("{0}")]
    TooMany(String),
}

impl Partitioning {
    /// The order of the dimensions makes no difference.
    pub fn new(mut dimensions: Vec<Dimension>) -> Result<Partitioning, PartitioningError> {
        dimensions.sort_by(|a, b| a.name.cmp(&b.name));
        if dimensions.is_empty() || dimensions.len() > PARTITION_DIMENSIONS_MAX {
            let count = dimensions.len();
            return Err(PartitioningError::Invalid(format!(
                "has {count} dimensions; 1 to {PARTITION_DIMENSIONS_MAX} are allowed"
            )));
        }
        if let Some(pair) = dimensions
            .windows(2)
            .find(|pair| pair[0].name == pair[1].name)
        {
            return Err(PartitioningError::Invalid(format!(
                "the dimension `{}` appears twice; keep one",
                pair[0].name
            )));
        }
        Ok(Partitioning { dimensions })
    }

    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    pub fn position(&self, name: &str) -> Option<usize> {
        self.dimensions
            .binary_search_by(|dimension| dimension.name.as_str().cmp(name))
            .ok()
    }

    /// Whether the key names exactly these dimensions, whatever their values are.
    pub fn has_dimensions_of(&self, key: &PartitionKey) -> bool {
        self.names().eq(key.dimensions().map(|(name, _)| name))
    }

    /// Fails unless the key names one partition that exists.
    pub fn check(&self, key: &PartitionKey, moment: &Moment) -> Result<(), PartitioningError> {
        if !self.has_dimensions_of(key) {
            let names: Vec<&str> = self.names().collect();
            return Err(PartitioningError::Invalid(format!(
                "`{key}` does not name the dimensions {}, each once",
                names.join(", ")
            )));
        }
        let values = key.dimensions().map(|(_, value)| value);
        self.dimensions
            .iter()
            .zip(values)
            .try_for_each(|(dimension, value)| dimension.check(value, moment))
    }

    /// The number of partitions that exist. It includes days that the time zone skipped.
    pub fn count(&self, moment: &Moment) -> u64 {
        let count = |dimension: &Dimension| match &dimension.values {
            Values::Time(grid) => u64::try_from(grid.ended(moment.now).end).unwrap_or(0),
            Values::Fixed(list) => list.values.len() as u64,
            Values::Dynamic { set } => moment
                .sets
                .get(set)
                .map_or(0, |list| list.values.len() as u64),
        };
        self.dimensions
            .iter()
            .map(count)
            .fold(1, u64::saturating_mul)
    }

    /// Every partition that exists.
    pub fn all(&self, moment: &Moment) -> Result<Product, PartitioningError> {
        self.product(|dimension| dimension.existing(moment))
    }

    /// The newest periods with every value of the other dimensions.
    pub fn latest(&self, count: u32, moment: &Moment) -> Result<Product, PartitioningError> {
        let is_time = |dimension: &&Dimension| matches!(dimension.values, Values::Time(_));
        if self.dimensions.iter().filter(is_time).count() != 1 {
            return Err(PartitioningError::Invalid(
                "the latest partitions need exactly one dimension of time".to_owned(),
            ));
        }
        self.product(|dimension| match dimension.values {
            Values::Time(_) => dimension.newest(count, moment),
            _ => dimension.existing(moment),
        })
    }

    /// The product of the selected values; a dimension without a selection contributes all its
    /// values.
    pub fn slices(
        &self,
        selections: &[(&str, ValueSelection<'_>)],
        moment: &Moment,
    ) -> Result<Product, PartitioningError> {
        for (at, (name, _)) in selections.iter().enumerate() {
            if self.position(name).is_none() {
                let names: Vec<&str> = self.names().collect();
                return Err(PartitioningError::Invalid(format!(
                    "there is no dimension `{name}`; there are {}",
                    names.join(", ")
                )));
            }
            if selections[..at].iter().any(|(before, _)| before == name) {
                return Err(PartitioningError::Invalid(format!(
                    "the dimension `{name}` appears twice; keep one"
                )));
            }
        }
        self.product(|dimension| {
            let selection = selections.iter().find(|(name, _)| *name == dimension.name);
            selection.map_or_else(
                || dimension.existing(moment),
                |(_, selection)| dimension.select(*selection, moment),
            )
        })
    }

    fn product(
        &self,
        values: impl Fn(&Dimension) -> Result<Vec<PartitionValue>, PartitioningError>,
    ) -> Result<Product, PartitioningError> {
        let lists: Result<Vec<_>, _> = self.dimensions.iter().map(values).collect();
        Ok(Product::new(
            self.names().map(str::to_owned).collect(),
            lists?,
        ))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.dimensions
            .iter()
            .map(|dimension| dimension.name.as_str())
    }
}

impl Dimension {
    pub fn new(name: &str, values: Values) -> Result<Dimension, PartitioningError> {
        if is_name(name) && name != MAP_DIMENSION {
            Ok(Dimension {
                name: name.to_owned(),
                values,
            })
        } else {
            Err(PartitioningError::Invalid(
                "is not a dimension name: write lower-case letters, digits and `_`, not beginning with a digit, and not \
                 `_map`"
                    .to_owned(),
            ))
        }
    }

    /// The type of its values.
    pub fn kind(&self) -> ValueKind {
        match &self.values {
            Values::Time(grid) => grid.kind(),
            Values::Fixed(list) => list
                .values
                .first()
                .map_or(ValueKind::Text, PartitionValue::kind),
            Values::Dynamic { .. } => ValueKind::Text,
        }
    }

    /// Whether the definition has this value, even if its period has not ended yet.
    pub fn has(&self, value: &PartitionValue, moment: &Moment) -> bool {
        match &self.values {
            Values::Time(grid) => grid.place(value).is_ok(),
            Values::Fixed(list) => list.contains(value),
            Values::Dynamic { set } => moment
                .sets
                .get(set)
                .is_some_and(|list| list.contains(value)),
        }
    }

    /// Fails unless the value exists now.
    pub fn check(&self, value: &PartitionValue, moment: &Moment) -> Result<(), PartitioningError> {
        match &self.values {
            Values::Time(grid) => self.place(grid, value, moment).map(drop),
            Values::Fixed(_) if self.has(value, moment) => Ok(()),
            Values::Fixed(_) => Err(PartitioningError::Invalid(format!(
                "`{}` has no value `{value}`",
                self.name
            ))),
            Values::Dynamic { .. } if self.has(value, moment) => Ok(()),
            Values::Dynamic { set } => Err(PartitioningError::Invalid(format!(
                "`{}` has no value `{value}`; add it to the dynamic partition set `{set}` first",
                self.name
            ))),
        }
    }

    /// Every value that exists, oldest first.
    pub fn existing(&self, moment: &Moment) -> Result<Vec<PartitionValue>, PartitioningError> {
        match &self.values {
            Values::Time(grid) => self.periods(grid, grid.ended(moment.now)),
            Values::Fixed(list) => Ok(list.values.clone()),
            Values::Dynamic { set } => Ok(moment
                .sets
                .get(set)
                .map_or_else(Vec::new, |list| list.values.clone())),
        }
    }

    /// The last `count` values that exist.
    pub fn newest(
        &self,
        count: u32,
        moment: &Moment,
    ) -> Result<Vec<PartitionValue>, PartitioningError> {
        let count = count as usize;
        if let Values::Time(grid) = &self.values {
            let ended = grid.ended(moment.now);
            // Looks at twice as many periods, because the time zone may have skipped a day among
            // them.
            let reach = i64::try_from(count.saturating_mul(2)).unwrap_or(i64::MAX);
            let mut values =
                self.periods(grid, ended.end.saturating_sub(reach).max(0)..ended.end)?;
            return Ok(values.split_off(values.len().saturating_sub(count)));
        }
        let mut values = self.existing(moment)?;
        Ok(values.split_off(values.len().saturating_sub(count)))
    }

    /// The values at these places.
    pub(crate) fn periods(
        &self,
        grid: &TimeGrid,
        places: Range<i64>,
    ) -> Result<Vec<PartitionValue>, PartitioningError> {
        let count = places.end.saturating_sub(places.start);
        if count > PARTITION_VALUES_MAX {
            return Err(PartitioningError::OutOfRange(format!(
                "`{}` has {count} periods there, more than the {PARTITION_VALUES_MAX} that one call may name; ask \
                 for fewer",
                self.name
            )));
        }
        Ok(places
            .filter(|place| grid.exists_in_zone(*place))
            .filter_map(|place| grid.value(place))
            .collect())
    }

    fn select(
        &self,
        selection: ValueSelection<'_>,
        moment: &Moment,
    ) -> Result<Vec<PartitionValue>, PartitioningError> {
        match selection {
            ValueSelection::Values(texts) => {
                let mut values: Vec<_> = texts
                    .iter()
                    .map(|text| self.parse_existing(text, moment))
                    .collect::<Result<_, _>>()?;
                let mut seen = HashSet::new();
                values.retain(|value| seen.insert(value.clone()));
                Ok(values)
            }
            ValueSelection::Between(start, end) => self.between(start, end, moment),
        }
    }

    fn between(
        &self,
        start: &str,
        end: &str,
        moment: &Moment,
    ) -> Result<Vec<PartitionValue>, PartitioningError> {
        let bound = |text: &str| {
            if text.is_empty() {
                Ok(None)
            } else {
                self.parse_existing(text, moment).map(Some)
            }
        };
        let (first, last) = (bound(start)?, bound(end)?);
        let values = match &self.values {
            Values::Time(grid) => {
                let place = |value: PartitionValue| grid.place(&value).ok();
                let first = first.and_then(place).unwrap_or(0);
                let after = last
                    .and_then(place)
                    .map_or(grid.ended(moment.now).end, |last| last + 1);
                self.periods(grid, first..after)?
            }
            Values::Fixed(_) | Values::Dynamic { .. } => {
                let values = self.existing(moment)?;
                let place = |value: PartitionValue| values.iter().position(|known| *known == value);
                let first = first.and_then(place).unwrap_or(0);
                let after = last.and_then(place).map_or(values.len(), |last| last + 1);
                values
                    .get(first..after)
                    .map(<[_]>::to_vec)
                    .unwrap_or_default()
            }
        };
        // Both bounds exist, so an empty result means that they are in the wrong order.
        if values.is_empty() && !start.is_empty() {
            Err(PartitioningError::Invalid(format!(
                "`{}` goes from {start} back to {end}; swap them",
                self.name
            )))
        } else {
            Ok(values)
        }
    }

    /// Parses a value as users write it and checks that it exists.
    fn parse_existing(
        &self,
        text: &str,
        moment: &Moment,
    ) -> Result<PartitionValue, PartitioningError> {
        let value = PartitionValue::from_text(self.kind(), text).map_err(|fault| {
            PartitioningError::Invalid(format!("the value of `{}` is refused: {fault}", self.name))
        })?;
        self.check(&value, moment).map(|()| value)
    }

    fn place(
        &self,
        grid: &TimeGrid,
        value: &PartitionValue,
        moment: &Moment,
    ) -> Result<i64, PartitioningError> {
        let name = &self.name;
        let place = grid.place(value).map_err(|mismatch| match mismatch {
            GridMismatch::NotABeginning => PartitioningError::Invalid(format!(
                "`{name}={value}` is not the beginning of a period of grain {}",
                grid.grain()
            )),
            GridMismatch::BeforeStart => PartitioningError::OutOfRange(format!(
                "`{name}={value}` lies before the first partition"
            )),
            GridMismatch::AfterEnd => PartitioningError::OutOfRange(format!(
                "`{name}={value}` lies after the last partition"
            )),
            GridMismatch::SkippedByZone => PartitioningError::OutOfRange(format!(
                "`{name}={value}` is a day that its zone skipped"
            )),
        })?;
        if place < grid.ended(moment.now).end {
            Ok(place)
        } else {
            Err(PartitioningError::OutOfRange(format!(
                "`{name}={value}` is not over yet; a period exists once it has ended"
            )))
        }
    }
}

impl ValueList {
    /// Drops repeated values.
    pub fn new(values: impl IntoIterator<Item = PartitionValue>) -> ValueList {
        let mut known = HashSet::new();
        let values = values
            .into_iter()
            .filter(|value| known.insert(value.clone()))
            .collect();
        ValueList { values, known }
    }

    pub fn contains(&self, value: &PartitionValue) -> bool {
        self.known.contains(value)
    }

    pub fn values(&self) -> &[PartitionValue] {
        &self.values
    }
}
