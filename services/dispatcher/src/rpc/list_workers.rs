//! ListWorkers: the registered workers and their attempts.

use std::collections::HashMap;

use servo_mesh::Error;
use servo_mesh::filter::{self, Operator, Term};
use servo_model::{TenantId, WorkerId};
use servo_proto::v1 as pb;

use super::Dispatcher;
use super::support::pages::Pages;
use super::support::rows::listed_worker;
use crate::core::{ALL_TENANTS, Worker};
use crate::store;
use servo_service::errors;

/// Rows that one statement reads and that are then filtered.
const ROWS_PER_STATEMENT: usize = 1_000;
const FIELDS: [&str; 4] = ["state", "name", "workspaces", "capabilities"];

pub(super) async fn list_workers(
    dispatcher: &Dispatcher,
    request: pb::ListWorkersRequest,
) -> Result<pb::ListWorkersResponse, Error> {
    let terms = filter::parse(&request.filter, &FIELDS)?;
    let pages = Pages {
        tokens: &dispatcher.page_tokens,
        list: "workers",
        tenant: &request.tenant,
        filter: &request.filter,
    };
    let (after, size) = pages.begin(request.page_size, &request.page_token)?;
    let (mut workers, more) =
        matching_workers(dispatcher, &request.tenant, &terms, after, size).await?;
    let last = workers.last().filter(|_| more);
    let next_page_token = last
        .map(|last| pages.write(&position(last)))
        .unwrap_or_default();
    add_active_attempts(dispatcher, &request.tenant, &mut workers).await?;
    Ok(pb::ListWorkersResponse {
        workers,
        next_page_token,
    })
}

/// Returns up to `size` workers after a position that match, and whether there are more.
async fn matching_workers(
    dispatcher: &Dispatcher,
    tenant: &str,
    terms: &[Term],
    after: Option<String>,
    size: usize,
) -> Result<(Vec<pb::Worker>, bool), Error> {
    let mut tx = dispatcher
        .store
        .requests()
        .begin(tenant)
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
        found.extend(
            seen.into_iter()
                .filter(|worker| terms.iter().all(|term| matches(worker, term))),
        );
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
    tenant: &str,
    workers: &mut [pb::Worker],
) -> Result<(), Error> {
    let tenant = tenant.to_owned();
    let active: HashMap<WorkerId, u32> = dispatcher
        .engine
        .query(move |admission, _| {
            let own = |worker: &&Worker| {
                worker.tenant.as_ref().map_or(ALL_TENANTS, TenantId::as_str) == tenant
            };
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

fn matches(worker: &pb::Worker, term: &Term) -> bool {
    let info = worker.info.clone().unwrap_or_default();
    let among = |list: &[String]| {
        let found = list.contains(&term.value);
        found != (term.operator == Operator::IsNot)
    };
    match term.field.as_str() {
        "state" => {
            let name = worker.state().as_str_name();
            term.operator.holds(
                name.strip_prefix("WORKER_STATE_").unwrap_or(name),
                term.value.as_str(),
            )
        }
        "name" => term.operator.holds(info.name.as_str(), term.value.as_str()),
        "workspaces" => among(&info.workspaces),
        _ => among(&info.capabilities),
    }
}
