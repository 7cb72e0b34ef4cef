//! Versions of partitions, which the scheduler stores.

use servo_store::{LoopStore, StoreError, query};
use uuid::Uuid;

/// A partition to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputPartition {
    pub(crate) tenant: String,
    pub(crate) workspace: String,
    pub(crate) asset_key: String,
    pub(crate) partition_key: String,
    /// The version that a retry takes over.
    pub(crate) pinned: Option<Uuid>,
}

/// A place among those wanted, counted from 1, with a version found there: its attempt, the encoded output, and which mapped
/// child made it, -1 for none.
pub(crate) type VersionRow = (i64, Option<Uuid>, Option<Vec<u8>>, i32);

/// What is found of these; of a mapped asset several in one place.
pub(crate) async fn latest_versions(
    loops: &LoopStore,
    partitions: &[InputPartition],
) -> Result<Vec<VersionRow>, StoreError> {
    let column =
        |field: fn(&InputPartition) -> &str| partitions.iter().map(field).collect::<Vec<_>>();
    let select = query(include_str!("latest_versions.sql"))
        .bind(column(|partition| &partition.tenant))
        .bind(column(|partition| &partition.workspace))
        .bind(column(|partition| &partition.asset_key))
        .bind(column(|partition| &partition.partition_key))
        .bind(
            partitions
                .iter()
                .map(|partition| partition.pinned)
                .collect::<Vec<_>>(),
        );
    loops.all(select).await
}
