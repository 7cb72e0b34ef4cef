//! GetRun: one run from its rows, with its history on request.

use servo_mesh::Error;
use servo_proto::v1 as pb;

use super::Scheduler;
use super::support::{errors, parse, wait};
use crate::reads::{run_history, runs};

pub(super) async fn get_run(
    scheduler: &Scheduler,
    request: pb::GetRunRequest,
) -> Result<pb::GetRunResponse, Error> {
    let tenant = parse::tenant(&request.tenant)?;
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let reads = &scheduler.reads;
    let mut tx = reads
        .store
        .requests()
        .begin(&tenant)
        .await
        .map_err(errors::store)?;
    let record = runs::find_record(&mut tx, &request.workspace, &request.run_id).await?;
    let run = runs::to_proto(&mut tx, &record).await?;
    let history = if request.include_history {
        let plan = runs::find_plan(reads, &tenant, &request.workspace, &record).await?;
        run_history::read(&mut tx, &record, plan.as_ref(), None)
            .await?
            .run
    } else {
        Vec::new()
    };
    tx.commit().await.map_err(errors::store)?;
    Ok(pb::GetRunResponse {
        run: Some(run),
        history,
    })
}
