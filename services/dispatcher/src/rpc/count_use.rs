//! CountUse: how much of its task limits a tenant uses, from the memory of the instance that admits
//! its tasks.

use servo_mesh::{Caller, Error, Reason};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::{proto_time, v1 as pb};
use servo_service::request::tenant;

use super::Dispatcher;
use super::support::forward::{holder_elsewhere, unwrap_response};
use crate::core::{Admission, LimitCounts, LiveAttempt};

/// How many attempts that hold slots of the pool are listed.
const HOLDERS_LISTED_MAX: usize = 100;

pub(super) async fn count_use(
    dispatcher: &Dispatcher,
    caller: &Caller,
    request: mesh_pb::CountUseRequest,
) -> Result<mesh_pb::CountUseResponse, Error> {
    let tenant = tenant(&request.tenant)?;
    if let Some(mut holder) = holder_elsewhere(dispatcher, &tenant, caller).await? {
        return unwrap_response(holder.count_use(request).await);
    }
    let counted = dispatcher.engine.query(move |admission, _| {
        let holders = admission.pool_holders(&tenant, &request.pool);
        let listed = holders
            .into_iter()
            .take(HOLDERS_LISTED_MAX)
            .map(|live| slot_holder(admission, live));
        admission
            .limit_counts(&tenant)
            .map(|counts| response(counts, listed.collect()))
    });
    let unknown = "some execution shards have not reported their live attempts yet; retry";
    counted
        .await?
        .ok_or_else(|| Error::new(Reason::NotReady, unknown))
}

fn response(counts: LimitCounts, holders: Vec<pb::SlotHolder>) -> mesh_pb::CountUseResponse {
    mesh_pb::CountUseResponse {
        live_attempts: counts.live,
        queued_attempts: counts.queued,
        pool_slots: counts
            .pools
            .into_iter()
            .map(|(pool, slots)| (pool.to_string(), slots))
            .collect(),
        holders,
    }
}

fn slot_holder(admission: &Admission, live: &LiveAttempt) -> pb::SlotHolder {
    let key = admission.task_key(&live.plan, live.task);
    pb::SlotHolder {
        workspace: live.plan.workspace.to_string(),
        run_id: live.run.to_string(),
        task_id: key.map(|key| key.id().to_string()).unwrap_or_default(),
        attempt_id: live.attempt_id.to_string(),
        since_time: Some(proto_time(live.since)),
    }
}
