//! Entries of the push queue.

use servo_store::{StoreError, TenantTx, query};

/// Name, queue, state and pushes of those of these entries that there are.
pub(crate) async fn entries_of(
    tx: &mut TenantTx,
    queues: Vec<String>,
    names: Vec<String>,
) -> Result<Vec<(String, String, i16, i32)>, StoreError> {
    tx.all(
        query(include_str!("entries_of.sql"))
            .bind(queues)
            .bind(names),
    )
    .await
}
