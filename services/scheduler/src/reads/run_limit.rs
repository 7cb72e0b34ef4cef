//! Why a run has not started: the limit it waits for, and the runs that use it up.

use std::sync::Arc;

use servo_mesh::Error;
use servo_model::states::RunState;
use servo_model::{RunId, TenantId};
use servo_proto::v1 as pb;
use servo_store::TenantTx;
use uuid::Uuid;

use super::{errors, explain};
use crate::core::RunLimits;
use crate::store::limits;
use crate::store::runs::RunRecord;

/// How many runs an explanation names.
const HOLDERS_MAX: i64 = 10;

/// Explains a run without a plan. `limits` are those of its tenant, if they are known.
pub(crate) async fn explain_queued_run(
    mut tx: TenantTx,
    tenant: &TenantId,
    limits: Option<Arc<RunLimits>>,
    state: RunState,
    run: &RunRecord,
) -> Result<pb::Explanation, Error> {
    if state != RunState::Pending {
        return Ok(explain::of_run(state));
    }
    let Some(limits) = limits else {
        return Ok(waits(
            "the limits of the tenant are not known yet; the quota service has not answered"
                .to_owned(),
        ));
    };
    let Some(max) = limits.max_concurrent_runs else {
        return Ok(explain::of_run(state));
    };
    let ahead = limits::runs_ahead(&mut tx, tenant, run.run_number, HOLDERS_MAX)
        .await
        .map_err(errors::store)?;
    tx.commit().await.map_err(errors::store)?;
    if ahead.started + ahead.waiting < i64::from(max) {
        return Ok(explain::of_run(state));
    }
    let blocker = |holder: &Uuid| pb::Blocker {
        kind: "run".to_owned(),
        id: RunId::from_bytes(holder.into_bytes()).to_string(),
        detail: "is running".to_owned(),
    };
    let blockers = ahead.started_runs.iter().map(blocker).collect();
    let message = format!(
        "max_concurrent_runs is {max}: {} runs are running and {} wait before this one; it starts \
         when they have ended, or when the limit is raised",
        ahead.started, ahead.waiting
    );
    Ok(pb::Explanation {
        blockers,
        limit: max.into(),
        used: u64::try_from(ahead.started).unwrap_or(0),
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
