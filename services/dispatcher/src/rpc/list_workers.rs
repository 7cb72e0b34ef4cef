//! ListWorkers: the registered workers and their attempts.

use std::collections::HashMap;

use servo_mesh::filter::{Field, Filter};
use servo_mesh::{Caller, Error};
use servo_model::{TenantScope, WorkerId};
use servo_proto::v1 as pb;

use super::Dispatcher;
use super::support::pages::Pages;
use super::support::rows::listed_worker;
use super::support::workspaces::visible_to;
use crate::core::Worker;
use crate::store;
use servo_service::errors;
use servo_service::request::tenant_scope;

/// Rows that one statement reads and that are then filtered.
const ROWS_PER_STATEMENT: usize = 1_000;

static FIELDS: [Field<pb::Worker>; 5] = [
    Field::named(
        "state",
        "WORKER_STATE_",
        |name| pb::WorkerState::from_str_name(name).map(i32::from),
        |worker| worker.state,
    ),
    Field::text("name", |worker| {
        worker.info.as_ref().map_or("", |info| &info.name)
    }),
    Field::list("workspaces", |worker| {
        worker.info.as_ref().map_or(&[], |info| &info.workspaces)
    }),
    Field::list("capabilities", |worker| {
        worker.info.as_ref().map_or(&[], |info| &info.capabilities)
    }),
    Field::time("seen_time", |worker| worker.seen_time),
];

pub(super) async fn list_workers(
    dispatcher: &Dispatcher,
    caller: &Caller,
    request: pb::ListWorkersRequest,
) -> Result<pb::ListWorkersResponse, Error> {
    let filter = Filter::parse(&request.filter, &FIELDS)?;
    let tenant = tenant_scope(&request.tenant)?;
    let pages = Pages {
        tokens: &dispatcher.page_tokens,
        list: "workers",
        tenant: &request.tenant,
        filter: &request.filter,
    };
    let (after, size) = pages.begin(request.page_size, &request.page_token)?;
    let (mut workers, more) =
        matching_workers(dispatcher, &tenant, caller, &filter, after, size).await?;
    let last = workers.last().filter(|_| more);
    let next_page_token = last
        .map(|last| pages.write(&position(last)))
        .unwrap_or_default();
    add_active_attempts(dispatcher, tenant, &mut workers).await?;
    Ok(pb::ListWorkersResponse {
        workers,
        next_page_token,
    })
}

/// Returns up to `size` workers after a position that match, and whether there are more.
async fn matching_workers(
    dispatcher: &Dispatcher,
    tenant: &TenantScope,
    caller: &Caller,
    filter: &Filter<pb::Worker>,
    after: Option<String>,
    size: usize,
) -> Result<(Vec<pb::Worker>, bool), Error> {
    let mut tx = dispatcher
        .store
        .requests()
        .begin_in(tenant)
        .await
        .map_err(errors::store)?;
    let (mut found, mut after) = (Vec::new(), after.as_deref().and_then(parse_position));
    loop {
        let rows = store::page_workers(&mut tx, tenant, after, ROWS_PER_STATEMENT)
            .await
            .map_err(errors::store)?;
        let seen: Vec<pb::Worker> = rows.iter().map(listed_worker).collect();
        after = seen
            .last()
            .map(position)
            .as_deref()
            .and_then(parse_position);
        let visible = seen
            .into_iter()
            .filter_map(|worker| visible_to(caller, worker));
        found.extend(visible.filter(|worker| filter.matches(worker)));
        if found.len() > size || rows.len() < ROWS_PER_STATEMENT {
            let more = found.len() > size;
            found.truncate(size);
            return Ok((found, more));
        }
    }
}

/// Replaces the recorded number of attempts with the exact one, for workers that are connected
/// here.
async fn add_active_attempts(
    dispatcher: &Dispatcher,
    tenant: TenantScope,
    workers: &mut [pb::Worker],
) -> Result<(), Error> {
    let active: HashMap<WorkerId, u32> = dispatcher
        .engine
        .query(move |admission, _| {
            let own = |worker: &&Worker| worker.tenant == tenant;
            let active = admission.active_attempts();
            let count = |worker: &Worker| active.get(&worker.key()).copied().unwrap_or_default();
            admission
                .workers()
                .filter(own)
                .map(|worker| (worker.id, count(worker)))
                .collect()
        })
        .await?;
    for worker in workers {
        let known = worker
            .worker_id
            .parse::<WorkerId>()
            .ok()
            .and_then(|id| active.get(&id));
        worker.active_attempts = known.copied().unwrap_or(worker.active_attempts);
    }
    Ok(())
}

/// The position of a worker in the list: its name and id.
fn position(worker: &pb::Worker) -> String {
    format!(
        "{}\n{}",
        worker.info.as_ref().map_or("", |info| &info.name),
        worker.worker_id
    )
}

fn parse_position(position: &str) -> Option<(String, WorkerId)> {
    let (name, id) = position.rsplit_once('\n')?;
    Some((name.to_owned(), id.parse().ok()?))
}
