//! The only identity of a partition: typed dimensions, written `name=tag:value` and joined by `,`.
//!
//! One partition has one text. Parsing accepts that text and no other, so that a key from a URL, a
//! worker or a row can be compared byte by byte.

mod error;
mod percent;
mod value;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use error::{PartitionKeyError, ValueFault};
pub use value::{PartitionValue, ValueKind};

use crate::asset::is_name;
use crate::limits::{PARTITION_DIMENSIONS_MAX, PARTITION_KEY_BYTES_MAX};
use crate::text::{excerpt, written_as_text};

/// The dimension that numbers the children of a mapped parent. It occurs in task keys only, never
/// in a partition key.
pub(crate) const MAP_DIMENSION: &str = "_map";

pub(crate) type Dimensions = BTreeMap<String, PartitionValue>;

/// Sorts by value (numbers and dates in their natural order), which differs from the order of the
/// texts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionKey(Dimensions);

impl PartitionKey {
    pub fn new(
        dimensions: impl IntoIterator<Item = (String, PartitionValue)>,
    ) -> Result<PartitionKey, PartitionKeyError> {
        let mut checked = Dimensions::new();
        for (name, value) in dimensions {
            value.check().map_err(|fault| PartitionKeyError::BadValue {
                name: name.clone(),
                fault,
            })?;
            if checked.contains_key(&name) {
                return Err(PartitionKeyError::Repeated(name));
            }
            checked.insert(checked_name(&name)?, value);
        }
        PartitionKey::from_dimensions(checked)
    }

    pub fn dimensions(&self) -> impl Iterator<Item = (&str, &PartitionValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub fn get(&self, dimension: &str) -> Option<&PartitionValue> {
        self.0.get(dimension)
    }

    /// Checks the dimensions together; each dimension was checked before.
    pub(crate) fn from_dimensions(
        dimensions: Dimensions,
    ) -> Result<PartitionKey, PartitionKeyError> {
        if dimensions.is_empty() {
            return Err(PartitionKeyError::Empty);
        }
        if dimensions.contains_key(MAP_DIMENSION) {
            return Err(PartitionKeyError::Reserved);
        }
        let key = PartitionKey(dimensions);
        if key.0.len() > PARTITION_DIMENSIONS_MAX || key.to_string().len() > PARTITION_KEY_BYTES_MAX
        {
            return Err(PartitionKeyError::TooLarge);
        }
        Ok(key)
    }

    pub(crate) fn as_dimensions(&self) -> &Dimensions {
        &self.0
    }
}

impl fmt::Display for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_dimensions(f, &self.0)
    }
}

impl FromStr for PartitionKey {
    type Err = PartitionKeyError;

    fn from_str(text: &str) -> Result<Self, PartitionKeyError> {
        PartitionKey::from_dimensions(parse_dimensions(text)?)
    }
}

written_as_text!(PartitionKey);

pub(crate) fn write_dimensions(f: &mut impl fmt::Write, dimensions: &Dimensions) -> fmt::Result {
    for (index, (name, value)) in dimensions.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        write!(f, "{comma}{name}={value}")?;
    }
    Ok(())
}

pub(crate) fn parse_dimensions(text: &str) -> Result<Dimensions, PartitionKeyError> {
    if text.is_empty() {
        return Err(PartitionKeyError::Empty);
    }
    let mut dimensions = Dimensions::new();
    for dimension in text.split(',') {
        let (name, value) = parse_dimension(dimension)?;
        check_order(&dimensions, &name)?;
        dimensions.insert(name, value);
    }
    Ok(dimensions)
}

fn parse_dimension(text: &str) -> Result<(String, PartitionValue), PartitionKeyError> {
    let parts = text
        .split_once('=')
        .and_then(|(name, rest)| Some((name, rest.split_once(':')?)));
    let (name, (tag, value)) =
        parts.ok_or_else(|| PartitionKeyError::NotADimension(excerpt(text)))?;
    let name = checked_name(name)?;
    match PartitionValue::parse(tag, value) {
        Ok(value) => Ok((name, value)),
        Err(fault) => Err(PartitionKeyError::BadValue { name, fault }),
    }
}

fn check_order(before: &Dimensions, name: &str) -> Result<(), PartitionKeyError> {
    match before.last_key_value() {
        Some((last, _)) if last == name => Err(PartitionKeyError::Repeated(name.to_owned())),
        Some((last, _)) if last.as_str() > name => Err(PartitionKeyError::Unsorted {
            first: last.clone(),
            second: name.to_owned(),
        }),
        _ => Ok(()),
    }
}

fn checked_name(name: &str) -> Result<String, PartitionKeyError> {
    if is_name(name) {
        Ok(name.to_owned())
    } else {
        Err(PartitionKeyError::BadName(excerpt(name)))
    }
}
