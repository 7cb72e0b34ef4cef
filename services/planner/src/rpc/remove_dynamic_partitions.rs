//! RemoveDynamicPartitions: removes values from a set; their materializations stay.

use prost::Message;
use servo_mesh::{Caller, Error};
use servo_model::Digest;
use servo_proto::v1::{
    DynamicPartitionsChanged, RemoveDynamicPartitionsRequest, RemoveDynamicPartitionsResponse,
};

use super::Planner;
use super::support::dynamic_sets::{change_events, check_change};
use super::support::errors::{append_error, store_error};
use super::support::events::{actor, event_id};
use super::support::idempotency::RequestKey;
use super::support::parse::scope;
use crate::store::sets;
use crate::store::sets::Set;

pub(super) async fn remove_dynamic_partitions(
    planner: &Planner,
    caller: &Caller,
    request: RemoveDynamicPartitionsRequest,
) -> Result<RemoveDynamicPartitionsResponse, Error> {
    let scope = scope(&request)?;
    let request_key = RequestKey {
        body: Digest::of(
            [
                b"RemoveDynamicPartitions",
                request.encode_to_vec().as_slice(),
            ]
            .concat(),
        ),
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
    let mut removed = sets::remove(&mut tx, &scope, &request.set, &request.values)
        .await
        .map_err(store_error)?;
    removed.sort_unstable();
    let count = i64::try_from(removed.len()).unwrap_or(i64::MAX);
    let change = |values: Vec<String>, version: i64| DynamicPartitionsChanged {
        set: request.set.clone(),
        version: version.unsigned_abs(),
        added: Vec::new(),
        removed: values,
        changed_by: Some(actor(caller, "")),
    };
    let events = change_events(&scope, set.version, removed, change);
    let version = set.version + i64::try_from(events.len()).unwrap_or(0);
    let changed = Set {
        version,
        value_count: set.value_count - count,
        ..set
    };
    sets::update(&mut tx, &scope, &request.set, changed)
        .await
        .map_err(store_error)?;
    let answer = RemoveDynamicPartitionsResponse {
        removed: u32::try_from(count).unwrap_or(u32::MAX),
        accepted_event_id: events.last().map(event_id).unwrap_or_default(),
    };
    request_key.store_answer(&mut tx, &scope, &answer).await?;
    tx.append(&events).await.map_err(append_error)?;
    tx.commit().await.map_err(store_error)?;
    Ok(answer)
}
