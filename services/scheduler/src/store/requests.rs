//! Request ids of calls that record no event. Their answers are empty, so only the ids are kept.

use std::time::Duration;

use servo_model::Digest;
use servo_store::{LoopStore, StoreError, Tx, query};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestIdUse {
    New,
    /// The same call was made before.
    Repeated,
    /// Another call used this request id.
    Conflicting,
}

/// Records a request id within the transaction of the call, and tells whether it was used before.
pub(crate) async fn record(
    tx: &mut Tx,
    request_id: &str,
    body: &Digest,
) -> Result<RequestIdUse, StoreError> {
    let body = body.as_bytes().as_slice();
    let record = query(include_str!("record_request.sql"))
        .bind(request_id)
        .bind(body);
    if tx.execute(record).await? == 1 {
        return Ok(RequestIdUse::New);
    }
    let (first,): (Vec<u8>,) = tx
        .one(query(include_str!("find_request.sql")).bind(request_id))
        .await?;
    Ok(if first == body {
        RequestIdUse::Repeated
    } else {
        RequestIdUse::Conflicting
    })
}

/// Deletes up to `limit` request ids of this age, and returns how many.
pub(crate) async fn delete_expired(
    loops: &LoopStore,
    age: Duration,
    limit: i64,
) -> Result<u64, StoreError> {
    let seconds = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
    let delete = query(include_str!("delete_expired_requests.sql"))
        .bind(seconds)
        .bind(limit);
    loops.execute(delete).await
}
