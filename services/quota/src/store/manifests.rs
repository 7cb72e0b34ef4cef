//! The current manifests, read from the planner's tables by grant.

use servo_model::TenantId;
use servo_proto::v1::Manifest;
use servo_store::{StoreError, Tx};

use super::{decode, scoped};

/// Returns the current manifest of each of a tenant's workspaces.
pub(crate) async fn current(
    tx: &mut Tx,
    tenant: &TenantId,
) -> Result<Vec<(String, Manifest)>, StoreError> {
    let rows: Vec<(String, Vec<u8>)> = tx.all(scoped!("current_manifests", tenant)).await?;
    rows.into_iter()
        .map(|(workspace, manifest)| Ok((workspace, decode(&manifest)?)))
        .collect()
}
