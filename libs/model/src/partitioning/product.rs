//! Every combination of some values per dimension, counted and indexed without being materialized.

use super::{Numbering, Partitioning};
use crate::partition::{PartitionKey, PartitionKeyError, PartitionValue};

/// The last dimension changes fastest.
#[derive(Debug, Clone)]
pub struct Product {
    pub(super) names: Vec<String>,
    pub(super) lists: Vec<Vec<PartitionValue>>,
}

impl Product {
    pub(super) fn new(names: Vec<String>, lists: Vec<Vec<PartitionValue>>) -> Product {
        Product { names, lists }
    }

    /// `lists` is in the order of the partitioning's dimensions.
    pub(crate) fn of(partitioning: &Partitioning, lists: Vec<Vec<PartitionValue>>) -> Product {
        Product::new(partitioning.names().map(str::to_owned).collect(), lists)
    }

    pub fn len(&self) -> u64 {
        let lengths = self.lists.iter().map(|list| list.len() as u64);
        lengths.fold(1, u64::saturating_mul)
    }

    /// How many values each dimension has.
    pub fn lengths(&self) -> Vec<u64> {
        self.lists.iter().map(|list| list.len() as u64).collect()
    }

    pub fn numbering(&self) -> Numbering {
        Numbering::of(self)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `None` beyond the end.
    pub fn get(&self, index: u64) -> Option<Result<PartitionKey, PartitionKeyError>> {
        if index >= self.len() {
            return None;
        }
        let mut rest = index;
        let mut dimensions = Vec::with_capacity(self.lists.len());
        for (name, list) in self.names.iter().zip(&self.lists).rev() {
            let length = list.len() as u64;
            let at = usize::try_from(rest % length).ok()?;
            dimensions.push((name.clone(), list[at].clone()));
            rest /= length;
        }
        Some(PartitionKey::new(dimensions))
    }

    pub fn keys(&self) -> impl Iterator<Item = Result<PartitionKey, PartitionKeyError>> {
        (0..self.len()).map_while(|index| self.get(index))
    }
}
