//! RemoveDynamicPartitions: values leave a set; what was made of them stays.

use prost::Message;
use servo_mesh::{Caller, Error};
use servo_model::Digest;
use servo_proto::v1::{
    DynamicPartitionsChanged, RemoveDynamicPartitionsRequest, RemoveDynamicPartitionsResponse,
};

use super::add_dynamic_partitions::{check, events, keep_answer};
use super::context::{Planner, actor, appended, event_id, scope, stored};
use super::deploy::Once;
use crate::store::sets;
use crate::store::sets::Set;

pub(super) async fn remove_dynamic_partitions(
    planner: &Planner,
    caller: &Caller,
    request: RemoveDynamicPartitionsRequest,
) -> Result<RemoveDynamicPartitionsResponse, Error> {
    let scope = scope(&request)?;
    let once = Once {
        body: Digest::of(
            [
                b"RemoveDynamicPartitions",
                request.encode_to_vec().as_slice(),
            ]
            .concat(),
        ),
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
    let mut removed = sets::remove(&mut tx, &scope, &request.set, &request.values)
        .await
        .map_err(stored)?;
    removed.sort_unstable();
    let count = i64::try_from(removed.len()).unwrap_or(i64::MAX);
    let change = |values: Vec<String>, version: i64| DynamicPartitionsChanged {
        set: request.set.clone(),
        version: version.unsigned_abs(),
        added: Vec::new(),
        removed: values,
        changed_by: Some(actor(caller, "")),
    };
    let events = events(&scope, set.version, removed, change);
    let version = set.version + i64::try_from(events.len()).unwrap_or(0);
    let changed = Set {
        version,
        value_count: set.value_count - count,
        ..set
    };
    sets::change(&mut tx, &scope, &request.set, changed)
        .await
        .map_err(stored)?;
    let answer = RemoveDynamicPartitionsResponse {
        removed: u32::try_from(count).unwrap_or(u32::MAX),
        accepted_event_id: events.last().map(event_id).unwrap_or_default(),
    };
    keep_answer(&mut tx, &scope, &once, &answer).await?;
    tx.append(&events).await.map_err(appended)?;
    tx.commit().await.map_err(stored)?;
    Ok(answer)
}
