//! GetPartitionSummary and ListStalePartitions: the planner judges all partitions at once, the scheduler adds what only
//! its rows say.

use servo_mesh::Error;
use servo_proto::v1;
use tonic::Status;

use super::list_partitions::{asset_key, asset_not_found};
use super::show_partitions::{Named, show};
use super::{Scheduler, live_partitions, wait};

const STRETCHES_DEFAULT: u32 = 200;
const STRETCHES_MAX: u32 = 2_000;

pub(super) async fn get_partition_summary(
    scheduler: &Scheduler,
    asked: v1::GetPartitionSummaryRequest,
) -> Result<v1::GetPartitionSummaryResponse, Status> {
    let asset = asset_key(&asked.namespace, &asked.name)?;
    let max_stretches = match asked.max_stretches {
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
    wait::for_event(scheduler, &asked.wait_for_event_id).await?;
    let live = live_partitions::find(scheduler, &asked.tenant, &asked.workspace).await?;
    let in_progress = live
        .into_iter()
        .filter(|(of, _)| *of == asset)
        .map(|(_, key)| key)
        .collect();
    let question = v1::SummarizePartitionsRequest {
        tenant: asked.tenant,
        workspace: asked.workspace,
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
    let v1::SummarizePartitionsResponse {
        total,
        counts,
        stretches,
    } = answer.into_inner();
    Ok(v1::GetPartitionSummaryResponse {
        total,
        counts,
        stretches,
    })
}

pub(super) async fn list_stale_partitions(
    scheduler: &Scheduler,
    asked: v1::ListStalePartitionsRequest,
) -> Result<v1::ListStalePartitionsResponse, Status> {
    let question = v1::FindStalePartitionsRequest {
        tenant: asked.tenant.clone(),
        workspace: asked.workspace.clone(),
        selection: asked.selection,
        page_size: asked.page_size,
        page_token: asked.page_token,
        reason: asked.reason,
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
    let live = live_partitions::find(scheduler, &asked.tenant, &asked.workspace).await?;
    Ok(v1::ListStalePartitionsResponse {
        partitions: show(
            scheduler,
            (&asked.tenant, &asked.workspace),
            &live,
            named.collect(),
        )
        .await?,
        next_page_token: found.next_page_token,
        total: found.total,
    })
}
