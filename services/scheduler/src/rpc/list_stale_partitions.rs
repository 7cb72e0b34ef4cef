//! ListStalePartitions: the planner finds stale partitions; the scheduler adds the facts of its
//! rows.

use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;
use tonic::Status;

use super::Scheduler;
use super::support::parse;
use crate::reads::live_partitions;
use crate::reads::partitions::{self, NamedPartition};

pub(super) async fn list_stale_partitions(
    scheduler: &Scheduler,
    request: pb::ListStalePartitionsRequest,
) -> Result<pb::ListStalePartitionsResponse, Status> {
    let tenant = parse::tenant(&request.tenant)?;
    let search = mesh_pb::FindStalePartitionsRequest {
        tenant: request.tenant.clone(),
        workspace: request.workspace.clone(),
        selection: request.selection,
        page_size: request.page_size,
        page_token: request.page_token,
        reason: request.reason,
    };
    let found = scheduler
        .planner
        .clone()
        .find_stale_partitions(search)
        .await?
        .into_inner();
    let named = found.partitions.into_iter().map(|stale| NamedPartition {
        asset_key: stale.asset_key,
        partition_key: stale.partition_key,
        staleness: stale.staleness.unwrap_or_default(),
    });
    let live = live_partitions::find(&scheduler.reads, &tenant, &request.workspace).await?;
    Ok(pb::ListStalePartitionsResponse {
        partitions: partitions::show(
            &scheduler.reads,
            (&tenant, &request.workspace),
            &live,
            named.collect(),
        )
        .await?,
        next_page_token: found.next_page_token,
        total: found.total,
    })
}
