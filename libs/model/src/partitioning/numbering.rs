//! Finds the place of a key in a product from its text, without parsing its values.

use std::collections::HashMap;

use super::Product;

/// An index for looking up many keys.
#[derive(Debug)]
pub struct Numbering {
    /// Per dimension: the text of each value as it appears in keys, and its place.
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

    /// `None` for a key that does not belong to the product.
    pub fn place(&self, key: &str) -> Option<u64> {
        let mut parts = key.split(',');
        let mut place = 0;
        for values in &self.dimensions {
            place = place * values.len() as u64 + values.get(parts.next()?)?;
        }
        parts.next().is_none().then_some(place)
    }
}
