//! Entries of the push queue.

use servo_store::{StoreError, TenantTx, query};

/// Returns name, queue, state and number of pushes of the entries that exist.
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
