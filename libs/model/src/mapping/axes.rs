//! What all partitions of a downstream asset read, dimension by dimension instead of key by key: a million partitions
//! may have a thousand values per dimension.

use std::collections::HashMap;

use super::{Mapping, Rule};
use crate::partition::{PartitionKey, PartitionValue};
use crate::partitioning::{Dimension, Moment, Partitioning, PartitioningError};

/// How one upstream dimension is read. Places count the values that exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Axis {
    /// The value at the same place of this downstream dimension, which is cut alike.
    Same(usize),
    /// By the place of the value of this downstream dimension.
    By(usize, Vec<Vec<u64>>),
    /// Every partition reads these.
    Fixed(Vec<u64>),
}

impl Mapping {
    /// One per upstream dimension, in their order. `down` is `None` for an asset in one piece.
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
        let decider = match self {
            Rule::All | Rule::Latest(_) => None,
            Rule::Same { down } | Rule::Window { down, .. } | Rule::Table { down, .. } => {
                Some(*down)
            }
        };
        let decider = decider.and_then(|place| Some((place, down?)));
        if let (Rule::Same { .. }, Some((place, partitioning))) = (self, decider)
            && partitioning.dimensions()[place].values == up.values
        {
            return Ok(Axis::Same(place));
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
        let Some((place, partitioning)) = decider else {
            return Ok(Axis::Fixed(places(self.read(up, None, moment)?)));
        };
        let dimension = &partitioning.dimensions()[place];
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
        Ok(Axis::By(place, lists?))
    }
}
