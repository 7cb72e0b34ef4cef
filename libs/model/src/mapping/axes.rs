//! The reads of all partitions of a downstream asset, per dimension instead of per key, because a
//! million partitions may have only a thousand values per dimension.

use std::collections::HashMap;

use super::{Mapping, Rule};
use crate::partition::{PartitionKey, PartitionValue};
use crate::partitioning::{Dimension, Moment, Partitioning, PartitioningError};

/// How one upstream dimension is read. Places count the values that exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Axis {
    /// Reads the value at the same place as this downstream dimension, which has the same values.
    Same(usize),
    /// Reads these places, given by the place of the value of this downstream dimension.
    By(usize, Vec<Vec<u64>>),
    /// Every partition reads these places.
    Fixed(Vec<u64>),
}

impl Mapping {
    /// One axis per upstream dimension, in their order. `down` is `None` for an asset without
    /// partitions.
    pub fn axes(
        &self,
        up: &Partitioning,
        down: Option<&Partitioning>,
        moment: &Moment,
    ) -> Result<Vec<Axis>, PartitioningError> {
        let rules = self.rules.iter().zip(up.dimensions());
        rules
            .map(|(rule, dimension)| rule.axis(dimension, down, moment))
            .collect()
    }
}

impl Rule {
    fn axis(
        &self,
        up: &Dimension,
        down: Option<&Partitioning>,
        moment: &Moment,
    ) -> Result<Axis, PartitioningError> {
        let driver = match self {
            Rule::All | Rule::Latest(_) => None,
            Rule::Same { down } | Rule::Window { down, .. } | Rule::Table { down, .. } => {
                Some(*down)
            }
        };
        let driver = driver.and_then(|index| Some((index, down?)));
        if let (Rule::Same { .. }, Some((index, partitioning))) = (self, driver)
            && partitioning.dimensions()[index].values == up.values
        {
            return Ok(Axis::Same(index));
        }
        let known: HashMap<PartitionValue, u64> =
            up.existing(moment)?.into_iter().zip(0..).collect();
        let places = |read: Vec<PartitionValue>| {
            let mut places: Vec<u64> = read
                .iter()
                .filter_map(|value| known.get(value).copied())
                .collect();
            places.sort_unstable();
            places
        };
        let Some((index, partitioning)) = driver else {
            return Ok(Axis::Fixed(places(self.read(up, None, moment)?)));
        };
        let dimension = &partitioning.dimensions()[index];
        let of_value = |value: PartitionValue| {
            let key = PartitionKey::new([(dimension.name.clone(), value)])
                .map_err(|error| PartitioningError::Invalid(error.to_string()))?;
            Ok(places(self.read(up, Some((partitioning, &key)), moment)?))
        };
        let lists: Result<Vec<_>, PartitioningError> = dimension
            .existing(moment)?
            .into_iter()
            .map(of_value)
            .collect();
        Ok(Axis::By(index, lists?))
    }
}
