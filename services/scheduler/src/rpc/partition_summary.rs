//! GetPartitionSummary and ListStalePartitions: the planner judges all partitions at once, the scheduler adds what only
//! its rows say.

use servo_mesh::Error;
use servo_proto::v1 as pb;
use tonic::Status;

use super::list_partitions::{asset_key, asset_not_found};
use super::show_partitions::{Named, show};
use super::{Scheduler, live_partitions, wait};

const STRETCHES_DEFAULT: u32 = 200;
const STRETCHES_MAX: u32 = 2_000;

pub(super) async fn get_partition_summary(
    scheduler: &Scheduler,
    request: pb::GetPartitionSummaryRequest,
) -> Result<pb::GetPartitionSummaryResponse, Status> {
    let asset = asset_key(&request.namespace, &request.name)?;
    let max_stretches = match request.max_stretches {
        0 => STRETCHES_DEFAULT,
        n if n <= STRETCHES_MAX => n,
        n => {
            return Err(Error::bad_field(
                "max_stretches",
                format!("is {n}; at most {STRETCHES_MAX}"),
            )
            .into());
        }
    };
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let live = live_partitions::find(scheduler, &request.tenant, &request.workspace).await?;
    let in_progress = live
        .into_iter()
        .filter(|(of, _)| *of == asset)
        .map(|(_, key)| key)
        .collect();
    let question = pb::SummarizePartitionsRequest {
        tenant: request.tenant,
        workspace: request.workspace,
        asset_key: asset,
        max_stretches,
        in_progress,
    };
    let answer = scheduler
        .planner
        .clone()
        .summarize_partitions(question)
        .await
        .map_err(asset_not_found)?;
    let pb::SummarizePartitionsResponse {
        total,
        counts,
        stretches,
    } = answer.into_inner();
    Ok(pb::GetPartitionSummaryResponse {
        total,
        counts,
        stretches,
    })
}

pub(super) async fn list_stale_partitions(
    scheduler: &Scheduler,
    request: pb::ListStalePartitionsRequest,
) -> Result<pb::ListStalePartitionsResponse, Status> {
    let question = pb::FindStalePartitionsRequest {
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
        .find_stale_partitions(question)
        .await?
        .into_inner();
    let named = found.partitions.into_iter().map(|stale| Named {
        asset_key: stale.asset_key,
        partition_key: stale.partition_key,
        staleness: stale.staleness.unwrap_or_default(),
    });
    let live = live_partitions::find(scheduler, &request.tenant, &request.workspace).await?;
    Ok(pb::ListStalePartitionsResponse {
        partitions: show(
            scheduler,
            (&request.tenant, &request.workspace),
            &live,
            named.collect(),
        )
        .await?,
        next_page_token: found.next_page_token,
        total: found.total,
    })
}
