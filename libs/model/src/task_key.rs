//! The key of a task: `namespace/name[partition]:operation`.
//!
//! The key identifies the task within a run and across runs. It contains nothing generated, so that
//! planning twice gives the same plan.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use crate::asset::{AssetKey, AssetKeyError};
use crate::hash::Digest;
use crate::ids::TaskId;
use crate::partition::{
    MAP_DIMENSION, PartitionKey, PartitionKeyError, PartitionValue, parse_dimensions,
    write_dimensions,
};
use crate::text::{excerpt, written_as_text};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Produces the asset's data.
    Materialize,
    /// Runs the asset's checks.
    Check,
    /// Polls a sensor.
    Evaluate,
}

/// Equality, order and hash are those of the text. The content is shared, because a plan repeats a
/// key on every edge.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskKey(Arc<Parts>);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Parts {
    // Declared first, because comparing the text decides the whole comparison.
    text: String,
    asset: AssetKey,
    partition: Option<PartitionKey>,
    map_index: Option<u32>,
    operation: Operation,
}

impl TaskKey {
    pub fn new(asset: AssetKey, partition: Option<PartitionKey>, operation: Operation) -> TaskKey {
        TaskKey::build(asset, partition, None, operation)
    }

    /// The key of the mapped task for one item, if this is the key of its mapped parent.
    pub fn child(&self, index: u32) -> TaskKey {
        TaskKey::build(
            self.0.asset.clone(),
            self.0.partition.clone(),
            Some(index),
            self.0.operation,
        )
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    pub fn asset(&self) -> &AssetKey {
        &self.0.asset
    }

    pub fn partition(&self) -> Option<&PartitionKey> {
        self.0.partition.as_ref()
    }

    /// The index of the item, if the task is a mapped task.
    pub fn map_index(&self) -> Option<u32> {
        self.0.map_index
    }

    pub fn operation(&self) -> Operation {
        self.0.operation
    }

    pub fn id(&self) -> TaskId {
        TaskId::of(self)
    }

    fn build(
        asset: AssetKey,
        partition: Option<PartitionKey>,
        map_index: Option<u32>,
        operation: Operation,
    ) -> TaskKey {
        let text = format!(
            "{}{}:{operation}",
            asset.canonical(),
            brackets(partition.as_ref(), map_index)
        );
        TaskKey(Arc::new(Parts {
            text,
            asset,
            partition,
            map_index,
            operation,
        }))
    }
}

impl TaskId {
    pub fn of(key: &TaskKey) -> TaskId {
        TaskId::from_prefix(Digest::of(key.as_str()).base32_prefix())
    }
}

/// The partition text of a mapped task: the partition's dimensions and the reserved dimension that
/// numbers the task. It is not a partition key, because it names a part of a partition.
pub fn child_partition(partition: Option<&PartitionKey>, index: u32) -> String {
    dimensions(partition, Some(index))
}

fn brackets(partition: Option<&PartitionKey>, map_index: Option<u32>) -> String {
    match dimensions(partition, map_index) {
        none if none.is_empty() => none,
        text => format!("[{text}]"),
    }
}

fn dimensions(partition: Option<&PartitionKey>, map_index: Option<u32>) -> String {
    let mut dimensions = partition
        .map(|key| key.as_dimensions().clone())
        .unwrap_or_default();
    dimensions.extend(map_index.map(|index| {
        (
            MAP_DIMENSION.to_owned(),
            PartitionValue::Integer(index.into()),
        )
    }));
    let mut text = String::new();
    write_dimensions(&mut text, &dimensions).expect("writing to a string cannot fail");
    text
}

impl FromStr for TaskKey {
    type Err = TaskKeyError;

    fn from_str(text: &str) -> Result<Self, TaskKeyError> {
        let (subject, operation) = text
            .rsplit_once(':')
            .ok_or_else(|| TaskKeyError::Shape(excerpt(text)))?;
        let operation = operation.parse()?;
        let Some((asset, rest)) = subject.split_once('[') else {
            return Ok(TaskKey::new(
                AssetKey::parse_canonical(subject)?,
                None,
                operation,
            ));
        };
        let inner = rest
            .strip_suffix(']')
            .ok_or_else(|| TaskKeyError::Shape(excerpt(text)))?;
        let (partition, map_index) = parse_brackets(inner)?;
        Ok(TaskKey::build(
            AssetKey::parse_canonical(asset)?,
            partition,
            map_index,
            operation,
        ))
    }
}

fn parse_brackets(text: &str) -> Result<(Option<PartitionKey>, Option<u32>), TaskKeyError> {
    let mut dimensions = parse_dimensions(text)?;
    let map_index = match dimensions.remove(MAP_DIMENSION) {
        None => None,
        Some(PartitionValue::Integer(index)) => {
            Some(u32::try_from(index).map_err(|_| TaskKeyError::MapIndex)?)
        }
        Some(_) => return Err(TaskKeyError::MapIndex),
    };
    let partition = if dimensions.is_empty() {
        None
    } else {
        Some(PartitionKey::from_dimensions(dimensions)?)
    };
    Ok((partition, map_index))
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

written_as_text!(TaskKey);

impl Hash for TaskKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Materialize => "materialize",
            Operation::Check => "check",
            Operation::Evaluate => "evaluate",
        })
    }
}

impl FromStr for Operation {
    type Err = TaskKeyError;

    fn from_str(text: &str) -> Result<Self, TaskKeyError> {
        match text {
            "materialize" => Ok(Operation::Materialize),
            "check" => Ok(Operation::Check),
            "evaluate" => Ok(Operation::Evaluate),
            "backfill" => Err(TaskKeyError::BackfillReserved),
            _ => Err(TaskKeyError::UnknownOperation(excerpt(text))),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskKeyError {
    #[error("`{0}` is not a task key: write namespace/name[partition]:operation")]
    Shape(String),
    #[error("the operation `backfill` is reserved; a backfill runs `materialize`")]
    BackfillReserved,
    #[error("`{0}` is not an operation; the operations are materialize, check and evaluate")]
    UnknownOperation(String),
    #[error(
        "the dimension `_map` numbers the children of a mapped parent: write _map=i:0 to _map=i:{}",
        u32::MAX
    )]
    MapIndex,
    #[error(transparent)]
    Asset(#[from] AssetKeyError),
    #[error(transparent)]
    Partition(#[from] PartitionKeyError),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::partition::tests::any_partition;

    #[test]
    fn child_keys_contain_the_map_index() {
        let parent: TaskKey = "raw/files[_a=b:true,day=d:2025-01-01]:check"
            .parse()
            .unwrap();
        let child = parent.child(3);
        assert_eq!(
            child.as_str(),
            "raw/files[_a=b:true,_map=i:3,day=d:2025-01-01]:check"
        );
        assert_eq!(
            (child.map_index(), child.partition()),
            (Some(3), parent.partition())
        );
        assert_eq!(
            "raw/files[_map=i:0]:materialize"
                .parse::<TaskKey>()
                .unwrap()
                .partition(),
            None
        );
    }

    #[test]
    fn invalid_texts_are_rejected() {
        assert_eq!(
            "raw/events:backfill".parse::<TaskKey>(),
            Err(TaskKeyError::BackfillReserved)
        );
        for text in [
            "raw/events",
            "raw/events:",
            "raw/events:Check",
            "raw.events:check",
            "raw/events[]:check",
            "raw/events[a=i:1:check",
            "raw/eventsa=i:1]:check",
            "raw/events[a=i:1]x:check",
            "raw/events[_map=s:1]:check",
            "raw/events[_map=i:-1]:check",
            "raw/events[_map=i:4294967296]:check",
            "raw/events[b=i:1,a=i:1]:check",
            "",
        ] {
            assert!(text.parse::<TaskKey>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_form_round_trips(
            partition in prop::option::of(any_partition()),
            index in prop::option::of(any::<u32>()),
            operation in prop::sample::select(&[Operation::Materialize, Operation::Check, Operation::Evaluate][..]),
        ) {
            let asset = AssetKey::new("raw", "events").unwrap();
            let key = TaskKey::build(asset, partition, index, operation);
            prop_assert_eq!(key.to_string().parse(), Ok(key));
        }

        #[test]
        fn order_equals_text_order(a in "[a-c1_]{1,2}", b in "[a-c1_]{1,2}") {
            let key = |name: &str| format!("ns/_{name}:check").parse::<TaskKey>().unwrap();
            let (a, b) = (key(&a), key(&b));
            prop_assert_eq!(a.cmp(&b), a.as_str().cmp(b.as_str()));
        }
    }
}
