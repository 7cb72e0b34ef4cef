//! Calls that leave no event behind and name themselves. Their answers say nothing, so none is kept.

use std::time::Duration;

use servo_model::Digest;
use servo_store::{LoopStore, StoreError, Tx, query};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Never,
    /// The same call.
    Before,
    /// Another call under the same name.
    Otherwise,
}

/// Notes a call together with what the transaction does. Whether it was made before.
pub(crate) async fn note(tx: &mut Tx, request_id: &str, body: &Digest) -> Result<Seen, StoreError> {
    let body = body.as_bytes().as_slice();
    let note = query(include_str!("note_request.sql"))
        .bind(request_id)
        .bind(body);
    if tx.execute(note).await? == 1 {
        return Ok(Seen::Never);
    }
    let (first,): (Vec<u8>,) = tx
        .one(query(include_str!("find_request.sql")).bind(request_id))
        .await?;
    Ok(if first == body {
        Seen::Before
    } else {
        Seen::Otherwise
    })
}

/// Answers how many were forgotten.
pub(crate) async fn expire(
    loops: &LoopStore,
    age: Duration,
    count: i64,
) -> Result<u64, StoreError> {
    let seconds = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
    loops
        .execute(
            query(include_str!("expire_requests.sql"))
                .bind(seconds)
                .bind(count),
        )
        .await
}
