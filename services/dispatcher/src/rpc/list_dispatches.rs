//! ListDispatches: the live attempts of a workspace, from the memory of whoever admits them.
//!
//! The gateway may ask any instance. Only the gateway may call ListDispatches, so the holder is asked by a method of
//! its own, ListHeldDispatches; who asks for which tenant was checked by then.

use servo_mesh::filter::{self, Term};
use servo_mesh::{Caller, Error};
use servo_model::{DispatchId, QueueId};
use servo_proto::v1 as pb;

use super::hop::answered;
use super::page::Pages;
use super::{Dispatcher, tenant_of, unavailable};
use crate::core::{Admission, Live};
use crate::loops::pushes::{queue_names, queue_of};
use crate::{store, wire};

const FIELDS: [&str; 4] = ["run_id", "worker_id", "pool", "mode"];

impl Dispatcher {
    pub(super) async fn dispatches(
        &self,
        caller: &Caller,
        request: pb::ListDispatchesRequest,
    ) -> Result<pb::ListDispatchesResponse, Error> {
        let terms = filter::parse(&request.filter, &FIELDS)?;
        let tenant = tenant_of(&request.tenant)?;
        if let Some(mut holder) = self.holder_elsewhere(&tenant, caller).await? {
            let pb::ListDispatchesRequest {
                tenant,
                workspace,
                page_size,
                page_token,
                filter,
            } = request;
            let asked = pb::ListHeldDispatchesRequest {
                tenant,
                workspace,
                page_size,
                page_token,
                filter,
            };
            let pb::ListHeldDispatchesResponse {
                dispatches,
                next_page_token,
            } = answered(holder.list_held_dispatches(asked).await)?;
            return Ok(pb::ListDispatchesResponse {
                dispatches,
                next_page_token,
            });
        }
        let workspace = request.workspace.clone();
        let all = self.engine.ask(move |admission, _| {
            let live = admission.live_of(&tenant);
            let mine = live.filter(|live| live.plan.workspace.as_str() == workspace);
            mine.map(|live| dispatch(admission, live))
                .collect::<Vec<_>>()
        });
        let mut all = all.await?;
        all.retain(|dispatch| terms.iter().all(|term| fits(dispatch, term)));
        let scope = format!("{}/{}", request.tenant, request.workspace);
        let pages = Pages {
            secret: self.page_secret(),
            list: "dispatches",
            tenant: &scope,
            filter: &request.filter,
        };
        let key = |dispatch: &pb::Dispatch| {
            let time = dispatch.dispatch_time.unwrap_or_default();
            format!(
                "{:020}.{:09} {}",
                time.seconds, time.nanos, dispatch.attempt_id
            )
        };
        all.sort_by_key(key);
        let (mut dispatches, next_page_token) =
            pages.cut(all, key, request.page_size, &request.page_token)?;
        self.add_entries(&request.tenant, &mut dispatches).await?;
        Ok(pb::ListDispatchesResponse {
            dispatches,
            next_page_token,
        })
    }

    /// Where pushed ones stand in their queues.
    async fn add_entries(
        &self,
        tenant: &str,
        dispatches: &mut [pb::Dispatch],
    ) -> Result<(), Error> {
        let queues = queue_names(self.mesh.config().dispatcher.push.queues);
        let pushed = dispatches
            .iter()
            .filter(|dispatch| dispatch.mode() == pb::DispatchMode::Push);
        let ids: Vec<QueueId> = pushed
            .filter_map(|dispatch| dispatch.dispatch_id.parse().ok())
            .collect();
        if ids.is_empty() {
            return Ok(());
        }
        let of = ids
            .iter()
            .map(|id| queue_of(&queues, id).to_string())
            .collect();
        let names = ids.iter().map(QueueId::to_string).collect();
        let mut tx = self
            .store
            .requests()
            .begin(tenant)
            .await
            .map_err(unavailable)?;
        for (name, queue, state, tries) in store::entries_of(&mut tx, of, names)
            .await
            .map_err(unavailable)?
        {
            for dispatch in dispatches
                .iter_mut()
                .filter(|dispatch| dispatch.dispatch_id == name)
            {
                dispatch.state = i32::from(state);
                dispatch.queue.clone_from(&queue);
                dispatch.deliveries = tries.unsigned_abs();
            }
        }
        Ok(())
    }
}

fn dispatch(admission: &Admission, live: &Live) -> pb::Dispatch {
    let key = admission.task_key(&live.plan, live.task);
    let dispatch_id = key.as_ref().map(|key| {
        DispatchId::new(&live.run, key, live.attempt)
            .queue_id()
            .to_string()
    });
    pb::Dispatch {
        dispatch_id: dispatch_id.unwrap_or_default(),
        attempt_id: live.attempt_id.to_string(),
        attempt: live.attempt,
        run_id: live.run.to_string(),
        task_id: key
            .as_ref()
            .map(|key| key.id().to_string())
            .unwrap_or_default(),
        task_key: key.map(|key| key.to_string()).unwrap_or_default(),
        mode: if live.pushed {
            pb::DispatchMode::Push
        } else {
            pb::DispatchMode::Pull
        }
        .into(),
        // Until the queue is asked.
        state: if live.pushed {
            pb::QueueEntryState::Pending
        } else {
            pb::QueueEntryState::Unspecified
        }
        .into(),
        queue: String::new(),
        worker_id: live
            .worker
            .map(|worker| worker.to_string())
            .unwrap_or_default(),
        pool: live.pool.name().to_owned(),
        dispatch_time: Some(wire::timestamp(live.since)),
        deliveries: 0,
    }
}

fn fits(dispatch: &pb::Dispatch, term: &Term) -> bool {
    let mode = dispatch.mode().as_str_name();
    let value = match term.field.as_str() {
        "run_id" => dispatch.run_id.as_str(),
        "worker_id" => dispatch.worker_id.as_str(),
        "pool" => dispatch.pool.as_str(),
        _ => mode.strip_prefix("DISPATCH_MODE_").unwrap_or(mode),
    };
    term.operator.holds(value, term.value.as_str())
}
