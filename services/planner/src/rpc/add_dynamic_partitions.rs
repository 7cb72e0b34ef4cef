//! AddDynamicPartitions: adds values to a set and creates the set with its first value.

use prost::Message;
use servo_mesh::{Caller, Error, Reason};
use servo_model::Digest;
use servo_model::limits::PARTITION_VALUES_MAX;
use servo_proto::v1::{
    AddDynamicPartitionsRequest, AddDynamicPartitionsResponse, DynamicPartitionsChanged,
};

use super::Planner;
use super::support::dynamic_sets::{change_events, check_change};
use super::support::errors::{append_error, store_error};
use super::support::events::{actor, event_id};
use super::support::idempotency::RequestKey;
use super::support::parse::scope;
use crate::store::sets;
use crate::store::sets::Set;

pub(super) async fn add_dynamic_partitions(
    planner: &Planner,
    caller: &Caller,
    request: AddDynamicPartitionsRequest,
) -> Result<AddDynamicPartitionsResponse, Error> {
    let scope = scope(&request)?;
    let request_key = RequestKey {
        body: Digest::of([b"AddDynamicPartitions", request.encode_to_vec().as_slice()].concat()),
        request_id: request.request_id,
    };
    check_change(&request_key.request_id, &request.set, &request.values)?;
    let mut tx = planner.begin(&scope).await?;
    let set = sets::lock(&mut tx, &scope, &request.set)
        .await
        .map_err(store_error)?;
    if let Some(answer) = request_key.first_answer(&mut tx, &scope).await? {
        return Ok(answer);
    }
    let values = distinct(request.values);
    let added = sets::add(&mut tx, &scope, &request.set, &values, set.last_ordinal)
        .await
        .map_err(store_error)?;
    let added: Vec<String> = in_order(values, &added);
    let count = i64::try_from(added.len()).unwrap_or(i64::MAX);
    check_size(&request.set, set.value_count + count)?;
    let change = |values: Vec<String>, version: i64| DynamicPartitionsChanged {
        set: request.set.clone(),
        version: version.unsigned_abs(),
        added: values,
        removed: Vec::new(),
        changed_by: Some(actor(caller, "")),
    };
    let events = change_events(&scope, set.version, added, change);
    let changed = Set {
        version: set.version + i64::try_from(events.len()).unwrap_or(0),
        last_ordinal: set.last_ordinal + count,
        value_count: set.value_count + count,
    };
    sets::update(&mut tx, &scope, &request.set, changed)
        .await
        .map_err(store_error)?;
    let answer = AddDynamicPartitionsResponse {
        added: u32::try_from(count).unwrap_or(u32::MAX),
        accepted_event_id: events.last().map(event_id).unwrap_or_default(),
    };
    request_key.store_answer(&mut tx, &scope, &answer).await?;
    tx.append(&events).await.map_err(append_error)?;
    tx.commit().await.map_err(store_error)?;
    Ok(answer)
}

fn check_size(set: &str, count: i64) -> Result<(), Error> {
    if count <= PARTITION_VALUES_MAX {
        Ok(())
    } else {
        let sentence = format!("would have {count} values, more than {PARTITION_VALUES_MAX}");
        Err(
            Error::new(Reason::QuotaExceeded, format!("the set `{set}` {sentence}"))
                .over_quota(format!("set:{set}"), sentence),
        )
    }
}

fn distinct(values: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    values
        .into_iter()
        .filter(|value| seen.insert(value.clone()))
        .collect()
}

/// Returns the entries of `values` that are in `some`, in the order of `values`.
fn in_order(values: Vec<String>, some: &[String]) -> Vec<String> {
    let some: std::collections::HashSet<&String> = some.iter().collect();
    values
        .into_iter()
        .filter(|value| some.contains(value))
        .collect()
}
