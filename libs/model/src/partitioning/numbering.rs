//! From the text of a key to its place in the order of a product, without reading its values.

use std::collections::HashMap;

use super::Product;

/// For looking up many keys.
#[derive(Debug)]
pub struct Numbering {
    /// Per dimension, how each value stands in keys, and its place.
    dimensions: Vec<HashMap<String, u64>>,
}

impl Numbering {
    pub(super) fn of(product: &Product) -> Numbering {
        let dimension = |(name, list): (&String, &Vec<_>)| {
            list.iter()
                .map(|value| format!("{name}={value}"))
                .zip(0..)
                .collect()
        };
        Numbering {
            dimensions: product
                .names
                .iter()
                .zip(&product.lists)
                .map(dimension)
                .collect(),
        }
    }

    /// `None` for a key that is none of the product's.
    pub fn place(&self, key: &str) -> Option<u64> {
        let mut parts = key.split(',');
        let mut place = 0;
        for values in &self.dimensions {
            place = place * values.len() as u64 + values.get(parts.next()?)?;
        }
        parts.next().is_none().then_some(place)
    }
}
