//! Explain, for a run that has not started: the limit in its way, and who holds the places.

use servo_mesh::Error;
use servo_model::RunId;
use servo_model::states::RunState;
use servo_proto::v1 as pb;
use servo_store::{TenantTx, query};
use uuid::Uuid;

use super::{Scheduler, answer, explain};
use crate::shards::all_shards;
use crate::wire::RunRecord;

/// How many holders an explanation names.
const HOLDERS_MAX: i64 = 10;

pub(super) async fn of_run(
    scheduler: &Scheduler,
    mut tx: TenantTx,
    request: &pb::ExplainRequest,
    state: RunState,
    row: &RunRecord,
) -> Result<pb::Explanation, Error> {
    let tenant = answer::tenant(&request.tenant)?;
    if state != RunState::Pending {
        return Ok(explain::of_run(state));
    }
    let Some(limits) = scheduler.limits_of(&tenant) else {
        return Ok(waits(
            "the limits of the tenant are not known yet; the quota service has not answered"
                .to_owned(),
        ));
    };
    let Some(max) = limits.max_concurrent_runs else {
        return Ok(explain::of_run(state));
    };
    let count = query(include_str!("../store/places.sql"))
        .bind(tenant.as_str())
        .bind(all_shards())
        .bind(row.run_number)
        .bind(HOLDERS_MAX);
    let (under_way, before, holders): (i64, i64, Vec<Uuid>) =
        tx.one(count).await.map_err(answer::store)?;
    tx.commit().await.map_err(answer::store)?;
    if under_way + before < i64::from(max) {
        return Ok(explain::of_run(state));
    }
    let blocker = |holder: &Uuid| pb::Blocker {
        kind: "run".to_owned(),
        id: RunId::from_bytes(holder.into_bytes()).to_string(),
        detail: "is under way".to_owned(),
    };
    let blockers = holders.iter().map(blocker).collect();
    let message = format!(
        "max_concurrent_runs is {max}: {under_way} runs are under way and {before} wait before this one; it starts \
         when they have ended, or when the limit is raised"
    );
    let used = u64::try_from(under_way).unwrap_or(0);
    Ok(pb::Explanation {
        blockers,
        limit: max.into(),
        used,
        ..waits(message)
    })
}

fn waits(message: String) -> pb::Explanation {
    pb::Explanation {
        reason: pb::WaitReason::RunLimit.into(),
        message,
        ..Default::default()
    }
}
