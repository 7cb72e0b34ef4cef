//! What the planner says is deployed now.

use servo_proto::v1::Manifest;
use servo_store::{StoreError, Tx};

use super::{decoded, scoped};

/// The manifests of a tenant's workspaces.
pub(crate) async fn manifests(
    tx: &mut Tx,
    tenant: &str,
) -> Result<Vec<(String, Manifest)>, StoreError> {
    let rows: Vec<(String, Vec<u8>)> = tx.all(scoped!("current_manifests", tenant)).await?;
    rows.into_iter()
        .map(|(workspace, manifest)| Ok((workspace, decoded(&manifest)?)))
        .collect()
}
