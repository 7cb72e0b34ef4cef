//! First answers to mutations, by request id.

use std::time::Duration;

use servo_model::{Digest, TenantScope};
use servo_store::{LoopStore, StoreError, Tx, query};

use super::scoped;

/// The first answer to a request_id and the hash of its request.
pub(crate) struct FirstAnswer {
    pub(crate) body: Vec<u8>,
    pub(crate) answer: Vec<u8>,
}

pub(crate) async fn find(
    tx: &mut Tx,
    tenant: &TenantScope,
    request_id: &str,
) -> Result<Option<FirstAnswer>, StoreError> {
    let row: Option<(Vec<u8>, Vec<u8>)> = tx
        .optional(scoped!("find_request", tenant).bind(request_id))
        .await?;
    Ok(row.map(|(body, answer)| FirstAnswer { body, answer }))
}

pub(crate) async fn insert(
    tx: &mut Tx,
    tenant: &TenantScope,
    request_id: &str,
    body: &Digest,
    answer: &[u8],
) -> Result<(), StoreError> {
    let statement = scoped!("insert_request", tenant)
        .bind(request_id)
        .bind(body.as_bytes().as_slice())
        .bind(answer);
    tx.execute(statement).await.map(drop)
}

/// Returns the number of deleted rows.
pub(crate) async fn expire(
    store: &LoopStore,
    age: Duration,
    count: i64,
) -> Result<u64, StoreError> {
    let seconds = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
    store
        .execute(
            query(include_str!("sql/expire_requests.sql"))
                .bind(seconds)
                .bind(count),
        )
        .await
}
