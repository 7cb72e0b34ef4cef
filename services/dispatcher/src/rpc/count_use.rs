//! CountUse: what a tenant uses of its limits on tasks, from the memory of whoever admits them.

use servo_mesh::{Caller, Error, Reason};
use servo_proto::v1 as pb;

use super::hop::answered;
use super::{Dispatcher, tenant_of};
use crate::core::{Admission, Live, Used};
use crate::wire;

/// How many holders of a pool are told.
const HOLDERS_TOLD_MAX: usize = 100;

impl Dispatcher {
    pub(super) async fn use_of(
        &self,
        caller: &Caller,
        request: pb::CountUseRequest,
    ) -> Result<pb::CountUseResponse, Error> {
        let tenant = tenant_of(&request.tenant)?;
        if let Some(mut holder) = self.holder_elsewhere(&tenant, caller).await? {
            return answered(holder.count_use(request).await);
        }
        let counted = self.engine.ask(move |admission, _| {
            let holders = admission.holders(&tenant, &request.pool);
            let told = holders
                .into_iter()
                .take(HOLDERS_TOLD_MAX)
                .map(|live| holder(admission, live));
            admission
                .used(&tenant)
                .map(|used| counted(used, told.collect()))
        });
        let unknown =
            "some shards of runs have not told what is live, so that it cannot be counted";
        counted
            .await?
            .ok_or_else(|| Error::new(Reason::NotReady, unknown))
    }
}

fn counted(used: Used, holders: Vec<pb::SlotHolder>) -> pb::CountUseResponse {
    pb::CountUseResponse {
        live_attempts: used.live,
        queued_attempts: used.queued,
        pool_slots: used
            .pools
            .into_iter()
            .map(|(pool, slots)| (pool.to_string(), slots))
            .collect(),
        holders,
    }
}

fn holder(admission: &Admission, live: &Live) -> pb::SlotHolder {
    let key = admission.task_key(&live.plan, live.task);
    pb::SlotHolder {
        workspace: live.plan.workspace.to_string(),
        run_id: live.run.to_string(),
        task_id: key.map(|key| key.id().to_string()).unwrap_or_default(),
        attempt_id: live.attempt_id.to_string(),
        since_time: Some(wire::timestamp(live.since)),
    }
}
