//! GetPartitionSummary: the planner summarizes the partitions of an asset; the scheduler adds those
//! with an attempt in flight.

use servo_mesh::Error;
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;
use tonic::Status;

use super::Scheduler;
use super::list_partitions::{asset_key, asset_not_found};
use super::support::{parse, wait};
use crate::reads::live_partitions;

const STRETCHES_DEFAULT: u32 = 200;
const STRETCHES_MAX: u32 = 2_000;

pub(super) async fn get_partition_summary(
    scheduler: &Scheduler,
    request: pb::GetPartitionSummaryRequest,
) -> Result<pb::GetPartitionSummaryResponse, Status> {
    let tenant = parse::tenant(&request.tenant)?;
    let asset = asset_key(&request.namespace, &request.name)?;
    let max_stretches = match request.max_stretches {
        0 => STRETCHES_DEFAULT,
        n if n <= STRETCHES_MAX => n,
        n => {
            return Err(Error::bad_field(
                "max_stretches",
                format!("is {n}; at most {STRETCHES_MAX} are allowed"),
            )
            .into());
        }
    };
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let live = live_partitions::find(&scheduler.reads, &tenant, &request.workspace).await?;
    let in_progress = live
        .into_iter()
        .filter(|(of, _)| *of == asset)
        .map(|(_, key)| key)
        .collect();
    let summary = mesh_pb::SummarizePartitionsRequest {
        tenant: request.tenant,
        workspace: request.workspace,
        asset_key: asset,
        max_stretches,
        in_progress,
    };
    let answer = scheduler
        .planner
        .clone()
        .summarize_partitions(summary)
        .await
        .map_err(asset_not_found)?;
    let mesh_pb::SummarizePartitionsResponse {
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
