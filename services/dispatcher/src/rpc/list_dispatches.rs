//! ListDispatches: the live attempts of a workspace, from the memory of the instance that admits
//! them.
//!
//! The gateway may call any instance. Only the gateway may call ListDispatches, so an instance
//! forwards the call to the holder as ListHeldDispatches, after the tenant was checked.

use servo_mesh::filter::{Field, Filter};
use servo_mesh::{Caller, Error, Peer};
use servo_model::{DispatchId, QueueId, TenantId};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::dispatcher_mesh_service_client::DispatcherMeshServiceClient;
use servo_proto::{proto_time, v1 as pb};

use super::Dispatcher;
use super::support::forward::{holder_elsewhere, unwrap_response};
use super::support::pages::Pages;
use crate::core::{Admission, LiveAttempt};
use crate::engine::{queue_names, queue_of};
use crate::{store, wire};
use servo_service::errors;
use servo_service::request::tenant;

static FIELDS: [Field<pb::Dispatch>; 5] = [
    Field::run_id("run_id", |dispatch| &dispatch.run_id),
    Field::text("worker_id", |dispatch| &dispatch.worker_id),
    Field::text("pool", |dispatch| &dispatch.pool),
    Field::named(
        "mode",
        "DISPATCH_MODE_",
        |name| pb::DispatchMode::from_str_name(name).map(i32::from),
        |dispatch| dispatch.mode,
    ),
    Field::time("dispatch_time", |dispatch| dispatch.dispatch_time),
];

pub(super) async fn list_dispatches(
    dispatcher: &Dispatcher,
    caller: &Caller,
    request: pb::ListDispatchesRequest,
) -> Result<pb::ListDispatchesResponse, Error> {
    let filter = Filter::parse(&request.filter, &FIELDS)?;
    let tenant = tenant(&request.tenant)?;
    if let Some(holder) = holder_elsewhere(dispatcher, &tenant, caller).await? {
        return forward_to(holder, request).await;
    }
    let workspace = request.workspace.clone();
    let queried = tenant.clone();
    let all = dispatcher.engine.query(move |admission, _| {
        let live = admission.live_of(&queried);
        let mine = live.filter(|live| live.plan.workspace.as_str() == workspace);
        mine.map(|live| dispatch(admission, live))
            .collect::<Vec<_>>()
    });
    let mut all = all.await?;
    all.retain(|dispatch| filter.matches(dispatch));
    let scope = format!("{}/{}", request.tenant, request.workspace);
    let pages = Pages {
        tokens: &dispatcher.page_tokens,
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
        pages.select(all, key, request.page_size, &request.page_token)?;
    add_queue_entries(dispatcher, &tenant, &mut dispatches).await?;
    Ok(pb::ListDispatchesResponse {
        dispatches,
        next_page_token,
    })
}

async fn forward_to(
    mut holder: DispatcherMeshServiceClient<Peer>,
    request: pb::ListDispatchesRequest,
) -> Result<pb::ListDispatchesResponse, Error> {
    let pb::ListDispatchesRequest {
        tenant,
        workspace,
        page_size,
        page_token,
        filter,
    } = request;
    let forwarded = mesh_pb::ListHeldDispatchesRequest {
        tenant,
        workspace,
        page_size,
        page_token,
        filter,
    };
    let mesh_pb::ListHeldDispatchesResponse {
        dispatches,
        next_page_token,
    } = unwrap_response(holder.list_held_dispatches(forwarded).await)?;
    Ok(pb::ListDispatchesResponse {
        dispatches,
        next_page_token,
    })
}

/// Adds the state of the queue entries of pushed attempts.
async fn add_queue_entries(
    dispatcher: &Dispatcher,
    tenant: &TenantId,
    dispatches: &mut [pb::Dispatch],
) -> Result<(), Error> {
    let queues = queue_names(dispatcher.mesh.config().dispatcher.push.queues);
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
    let mut tx = dispatcher
        .store
        .requests()
        .begin(tenant)
        .await
        .map_err(errors::store)?;
    for (name, queue, state, tries) in store::entries_of(&mut tx, of, names)
        .await
        .map_err(errors::store)?
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

fn dispatch(admission: &Admission, live: &LiveAttempt) -> pb::Dispatch {
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
        mode: wire::dispatch_mode(live.pushed).into(),
        // Replaced by `add_queue_entries` if the queue has the entry.
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
        dispatch_time: Some(proto_time(live.since)),
        deliveries: 0,
    }
}
