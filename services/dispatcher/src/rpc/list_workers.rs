//! ListWorkers: who is registered, and what they do.

use std::collections::HashMap;

use prost::Message as _;
use servo_mesh::Error;
use servo_mesh::filter::{self, Operator, Term};
use servo_model::{TenantId, WorkerId};
use servo_proto::v1 as pb;

use super::page::Pages;
use super::{Dispatcher, EVERYBODY, unavailable};
use crate::core::Worker;
use crate::store::{self, WorkerRow};
use crate::wire;

/// Rows that are read by one statement, and looked through.
const ROWS_AT_ONCE: usize = 1_000;
const FIELDS: [&str; 4] = ["state", "name", "workspaces", "capabilities"];

impl Dispatcher {
    pub(super) async fn workers(
        &self,
        request: pb::ListWorkersRequest,
    ) -> Result<pb::ListWorkersResponse, Error> {
        let terms = filter::parse(&request.filter, &FIELDS)?;
        let pages = Pages {
            secret: self.page_secret(),
            list: "workers",
            tenant: &request.tenant,
            filter: &request.filter,
        };
        let (after, size) = pages.begin(request.page_size, &request.page_token)?;
        let (mut workers, more) = self.fitting(&request.tenant, &terms, after, size).await?;
        let last = workers.last().filter(|_| more);
        let next_page_token = last
            .map(|last| pages.write(&place(last)))
            .unwrap_or_default();
        self.note_active(&request.tenant, &mut workers).await?;
        Ok(pb::ListWorkersResponse {
            workers,
            next_page_token,
        })
    }

    /// Up to `size` workers that fit behind a place, and whether there are more.
    async fn fitting(
        &self,
        tenant: &str,
        terms: &[Term],
        after: Option<String>,
        size: usize,
    ) -> Result<(Vec<pb::Worker>, bool), Error> {
        let mut tx = self
            .store
            .requests()
            .begin(tenant)
            .await
            .map_err(unavailable)?;
        let (mut fitting, mut after) = (Vec::new(), after.as_deref().and_then(parse_place));
        loop {
            let rows = store::page_workers(&mut tx, tenant, after, ROWS_AT_ONCE)
                .await
                .map_err(unavailable)?;
            let seen: Vec<pb::Worker> = rows.iter().map(worker).collect();
            after = seen.last().map(place).as_deref().and_then(parse_place);
            fitting.extend(
                seen.into_iter()
                    .filter(|worker| terms.iter().all(|term| fits(worker, term))),
            );
            if fitting.len() > size || rows.len() < ROWS_AT_ONCE {
                let more = fitting.len() > size;
                fitting.truncate(size);
                return Ok((fitting, more));
            }
        }
    }

    /// Signs page tokens. Without any key they are only good against mistakes.
    pub(super) fn page_secret(&self) -> &[u8] {
        &self.signer.envelope_secret
    }

    /// For workers that are connected here it is known exactly what they have.
    async fn note_active(&self, tenant: &str, workers: &mut [pb::Worker]) -> Result<(), Error> {
        let tenant = tenant.to_owned();
        let active: HashMap<WorkerId, u32> = self
            .engine
            .ask(move |admission, _| {
                let own = |worker: &&Worker| {
                    worker.tenant.as_ref().map_or(EVERYBODY, TenantId::as_str) == tenant
                };
                let active = admission.active_attempts();
                let count =
                    |worker: &Worker| active.get(&worker.key()).copied().unwrap_or_default();
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
}

/// Where a worker stands in the list: its name and its id.
fn place(worker: &pb::Worker) -> String {
    format!(
        "{}\n{}",
        worker.info.as_ref().map_or("", |info| &info.name),
        worker.worker_id
    )
}

fn parse_place(place: &str) -> Option<(String, WorkerId)> {
    let (name, id) = place.rsplit_once('\n')?;
    Some((name.to_owned(), id.parse().ok()?))
}

pub(super) fn worker(row: &WorkerRow) -> pb::Worker {
    pb::Worker {
        worker_id: WorkerId::from_bytes(*row.worker_id.as_bytes()).to_string(),
        info: pb::WorkerInfo::decode(&*row.info).ok(),
        state: row.state.into(),
        active_attempts: row.active_attempts.unsigned_abs(),
        seen_time: Some(wire::stored_time(row.seen_at)),
        register_time: Some(wire::stored_time(row.registered_at)),
        last_command: row.command.into(),
        version: row.version.unsigned_abs(),
    }
}

fn fits(worker: &pb::Worker, term: &Term) -> bool {
    let info = worker.info.clone().unwrap_or_default();
    let among = |list: &[String]| {
        let found = list.contains(&term.value);
        if term.operator == Operator::IsNot {
            !found
        } else {
            found
        }
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
