//! Checks and events that AddDynamicPartitions and RemoveDynamicPartitions share.

use servo_mesh::Error;
use servo_model::idempotency::IdempotencyKey;
use servo_model::limits::PARTITION_KEYS_PER_CALL_MAX;
use servo_model::{EventType, PartitionKey, PartitionValue};
use servo_proto::v1::{DynamicPartitionsChanged, event};
use servo_store::{EVENT_PAYLOAD_BYTES_MAX, NewEvent};

use super::events::catalog_event;
use super::parse::check_request_id;
use crate::store::Scope;

const SET_NAME_BYTES_MAX: usize = 128;
/// Bytes of values in one event; the rest of the payload is left for the other fields.
const EVENT_VALUES_BYTES_MAX: usize = EVENT_PAYLOAD_BYTES_MAX * 3 / 4;

/// Checks the fields of a request that adds or removes values.
pub(crate) fn check_change(request_id: &str, set: &str, values: &[String]) -> Result<(), Error> {
    check_request_id(request_id)?;
    check_set_name(set)?;
    if values.is_empty() || values.len() > PARTITION_KEYS_PER_CALL_MAX {
        let sentence = format!(
            "has {} entries; 1 to {PARTITION_KEYS_PER_CALL_MAX} are allowed",
            values.len()
        );
        return Err(Error::bad_field("values", sentence));
    }
    for (index, value) in values.iter().enumerate() {
        // Building a key proves that the value is valid in one.
        let key = PartitionKey::new([("d".to_owned(), PartitionValue::Text(value.clone()))]);
        if value.is_empty() || value.contains('\0') || key.is_err() {
            let sentence = "is empty, holds a NUL or is too long for a partition key";
            return Err(Error::bad_field(format!("values[{index}]"), sentence));
        }
    }
    Ok(())
}

pub(crate) fn check_set_name(set: &str) -> Result<(), Error> {
    match set.len() {
        1..=SET_NAME_BYTES_MAX if !set.contains(char::is_control) => Ok(()),
        length => Err(Error::bad_field(
            "set",
            format!(
                "has {length} bytes or a control character; 1 to {SET_NAME_BYTES_MAX} plain ones are allowed"
            ),
        )),
    }
}

/// Splits a change into as many events as it needs, because the payload of an event is limited.
/// Each event is a version of the set.
pub(crate) fn change_events(
    scope: &Scope,
    version: i64,
    values: Vec<String>,
    change: impl Fn(Vec<String>, i64) -> DynamicPartitionsChanged,
) -> Vec<NewEvent> {
    let mut parts: Vec<Vec<String>> = Vec::new();
    let mut bytes = usize::MAX;
    for value in values {
        bytes = bytes.saturating_add(value.len() + 8);
        if bytes > EVENT_VALUES_BYTES_MAX {
            parts.push(Vec::new());
            bytes = value.len() + 8;
        }
        parts.last_mut().expect("one was pushed above").push(value);
    }
    let event = |(part, version): (Vec<String>, i64)| {
        let change = change(part, version);
        let key = IdempotencyKey::dynamic_partitions_changed(&change.set, change.version);
        let body = event::Body::DynamicPartitionsChanged(change);
        catalog_event(
            scope,
            EventType::DynamicPartitionsChanged,
            key.as_str(),
            body,
        )
    };
    parts.into_iter().zip(version + 1..).map(event).collect()
}
