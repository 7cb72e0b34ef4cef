//! First answers of mutations.

use std::time::Duration;

use servo_model::Digest;
use servo_store::{LoopStore, StoreError, Tx, query};

use super::scoped;

/// What was answered to a request_id.
pub(crate) struct FirstAnswer {
    pub(crate) body: Vec<u8>,
    pub(crate) answer: Vec<u8>,
}

pub(crate) async fn find(
    tx: &mut Tx,
    tenant: &str,
    request_id: &str,
) -> Result<Option<FirstAnswer>, StoreError> {
    let row: Option<(Vec<u8>, Vec<u8>)> = tx
        .optional(scoped!("find_request", tenant).bind(request_id))
        .await?;
    Ok(row.map(|(body, answer)| FirstAnswer { body, answer }))
}

pub(crate) async fn keep(
    tx: &mut Tx,
    tenant: &str,
    request_id: &str,
    body: &Digest,
    answer: &[u8],
) -> Result<(), StoreError> {
    let statement = scoped!("keep_request", tenant)
        .bind(request_id)
        .bind(body.as_bytes().as_slice())
        .bind(answer);
    tx.execute(statement).await.map(drop)
}

/// Answers how many were forgotten.
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
