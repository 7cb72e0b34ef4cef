//! The artifacts of a workspace.

use servo_model::Digest;
use servo_store::{StoreError, Tx};

use super::{Scope, scoped};

/// Returns false when the artifact already existed.
pub(crate) async fn insert(
    tx: &mut Tx,
    scope: &Scope,
    digest: &Digest,
    kind: i16,
    byte_size: i64,
) -> Result<bool, StoreError> {
    let statement = scoped!("insert_artifact", scope)
        .bind(digest.as_bytes().as_slice())
        .bind(kind)
        .bind(byte_size);
    Ok(tx.execute(statement).await? == 1)
}

/// Returns the kind and size of an artifact.
pub(crate) async fn find(
    tx: &mut Tx,
    scope: &Scope,
    digest: &Digest,
) -> Result<Option<(i16, i64)>, StoreError> {
    tx.optional(scoped!("find_artifact", scope).bind(digest.as_bytes().as_slice()))
        .await
}
