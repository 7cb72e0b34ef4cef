//! AddDynamicPartitions: new values of a set, which is made by its first one.

use prost::Message;
use servo_mesh::{Caller, Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::limits::{PARTITION_KEYS_PER_CALL_MAX, PARTITION_VALUES_MAX};
use servo_model::{Digest, EventType, PartitionKey, PartitionValue};
use servo_proto::v1::{
    AddDynamicPartitionsRequest, AddDynamicPartitionsResponse, DynamicPartitionsChanged, event,
};
use servo_store::{EVENT_PAYLOAD_BYTES_MAX, NewEvent};

use super::context::{
    Planner, actor, appended, catalog_event, check_request_id, event_id, scope, stored,
};
use super::deploy::Once;
use crate::store::sets::Set;
use crate::store::{Scope, requests, sets};

const SET_NAME_BYTES_MAX: usize = 128;
/// Of values in one event; the rest is for what stands around them.
const EVENT_VALUES_BYTES_MAX: usize = EVENT_PAYLOAD_BYTES_MAX * 3 / 4;

pub(super) async fn add_dynamic_partitions(
    planner: &Planner,
    caller: &Caller,
    request: AddDynamicPartitionsRequest,
) -> Result<AddDynamicPartitionsResponse, Error> {
    let scope = scope(&request)?;
    let once = Once {
        body: Digest::of([b"AddDynamicPartitions", request.encode_to_vec().as_slice()].concat()),
        request_id: request.request_id,
    };
    check(&once.request_id, &request.set, &request.values)?;
    let mut tx = planner.begin(&scope).await?;
    let set = sets::lock(&mut tx, &scope, &request.set)
        .await
        .map_err(stored)?;
    if let Some(answer) = once.first_answer(&mut tx, &scope).await? {
        return Ok(answer);
    }
    let values = distinct(request.values);
    let added = sets::add(&mut tx, &scope, &request.set, &values, set.last_ordinal)
        .await
        .map_err(stored)?;
    let added: Vec<String> = in_order(values, &added);
    let count = i64::try_from(added.len()).unwrap_or(i64::MAX);
    check_room(&request.set, set.value_count + count)?;
    let change = |values: Vec<String>, version: i64| DynamicPartitionsChanged {
        set: request.set.clone(),
        version: version.unsigned_abs(),
        added: values,
        removed: Vec::new(),
        changed_by: Some(actor(caller, "")),
    };
    let events = events(&scope, set.version, added, change);
    let changed = Set {
        version: set.version + i64::try_from(events.len()).unwrap_or(0),
        last_ordinal: set.last_ordinal + count,
        value_count: set.value_count + count,
    };
    sets::change(&mut tx, &scope, &request.set, changed)
        .await
        .map_err(stored)?;
    let answer = AddDynamicPartitionsResponse {
        added: u32::try_from(count).unwrap_or(u32::MAX),
        accepted_event_id: events.last().map(event_id).unwrap_or_default(),
    };
    keep_answer(&mut tx, &scope, &once, &answer).await?;
    tx.append(&events).await.map_err(appended)?;
    tx.commit().await.map_err(stored)?;
    Ok(answer)
}

/// What both changes of a set ask of their request.
pub(super) fn check(request_id: &str, set: &str, values: &[String]) -> Result<(), Error> {
    check_request_id(request_id)?;
    check_set(set)?;
    if values.is_empty() || values.len() > PARTITION_KEYS_PER_CALL_MAX {
        let sentence = format!(
            "has {} entries; 1 to {PARTITION_KEYS_PER_CALL_MAX} are allowed",
            values.len()
        );
        return Err(Error::bad_field("values", sentence));
    }
    for (index, value) in values.iter().enumerate() {
        // That a value can stand in a key is proven by making one.
        let key = PartitionKey::new([("d".to_owned(), PartitionValue::Text(value.clone()))]);
        if value.is_empty() || value.contains('\0') || key.is_err() {
            let sentence = "is empty, holds a NUL or is too long for a partition key";
            return Err(Error::bad_field(format!("values[{index}]"), sentence));
        }
    }
    Ok(())
}

pub(super) fn check_set(set: &str) -> Result<(), Error> {
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

fn check_room(set: &str, count: i64) -> Result<(), Error> {
    match count <= PARTITION_VALUES_MAX {
        true => Ok(()),
        false => {
            let sentence = format!("would have {count} values, more than {PARTITION_VALUES_MAX}");
            Err(
                Error::new(Reason::QuotaExceeded, format!("the set `{set}` {sentence}"))
                    .over_quota(format!("set:{set}"), sentence),
            )
        }
    }
}

fn distinct(values: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    values
        .into_iter()
        .filter(|value| seen.insert(value.clone()))
        .collect()
}

/// Those of `values` that are among `some`, in their order.
fn in_order(values: Vec<String>, some: &[String]) -> Vec<String> {
    let some: std::collections::HashSet<&String> = some.iter().collect();
    values
        .into_iter()
        .filter(|value| some.contains(value))
        .collect()
}

/// The change in as many events as it takes, each a version of the set.
pub(super) fn events(
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

pub(super) async fn keep_answer(
    tx: &mut servo_store::Tx,
    scope: &Scope,
    once: &Once,
    answer: &impl Message,
) -> Result<(), Error> {
    let kept = requests::keep(
        tx,
        scope,
        &once.request_id,
        &once.body,
        &answer.encode_to_vec(),
    )
    .await;
    match kept.map_err(stored)? {
        true => Ok(()),
        false => Err(Error::new(
            Reason::RequestIdReused,
            "request_id was used for another call meanwhile",
        )),
    }
}
