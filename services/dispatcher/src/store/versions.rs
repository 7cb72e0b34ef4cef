//! Versions of partitions, which the scheduler writes.

use servo_model::TenantId;
use servo_store::{LoopStore, StoreError, query};
use uuid::Uuid;

/// A partition to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputPartition {
    pub(crate) tenant: TenantId,
    pub(crate) workspace: String,
    pub(crate) asset_key: String,
    pub(crate) partition_key: String,
    /// The version that a retry takes over.
    pub(crate) pinned: Option<Uuid>,
}

/// The number of the partition in the request, counted from 1, and a version of it: attempt,
/// encoded output, and the index of the mapped task that produced it. The last is -1 for a task
/// that is not mapped and -2 for the version of a mapped parent, which stands for all its mapped
/// tasks.
pub(crate) type VersionRow = (i64, Option<Uuid>, Option<Vec<u8>>, i32);

/// Returns the versions of these partitions. A mapped asset has several per partition.
pub(crate) async fn latest_versions(
    loops: &LoopStore,
    partitions: &[InputPartition],
) -> Result<Vec<VersionRow>, StoreError> {
    let column =
        |field: fn(&InputPartition) -> &str| partitions.iter().map(field).collect::<Vec<_>>();
    let select = query(include_str!("latest_versions.sql"))
        .bind(column(|partition| partition.tenant.as_str()))
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
