//! ListEvents: the events of a workspace, shard by shard.

use std::collections::HashMap;
use std::sync::Arc;

use servo_mesh::Error;
use servo_proto::v1 as pb;
use servo_store::{Event, TenantTx};
use uuid::Uuid;

use super::Scheduler;
use super::support::{errors, pages};
use crate::core::Plan;
use crate::reads::Reads;
use crate::reads::event_filter::EventQuery;
use crate::store::{events, runs};
use crate::wire;

/// How many positions a page examines, because events of other workspaces lie in between.
const EXAMINED_MAX: i64 = 20_000;

pub(super) async fn list_events(
    scheduler: &Scheduler,
    request: pb::ListEventsRequest,
) -> Result<pb::ListEventsResponse, Error> {
    let query = EventQuery::parse(&request.filter)?;
    let size = pages::size(request.page_size)?;
    let list = [
        "events",
        &request.tenant,
        &request.workspace,
        &request.filter,
    ];
    let mut cursor = match scheduler.tokens.read(&list, &request.page_token)? {
        None => Cursor {
            shard: query.shards().start,
            position: 0,
        },
        Some(cursor) => Cursor::parse(&cursor)?,
    };
    let reads = &scheduler.reads;
    let mut tx = reads
        .store
        .requests()
        .begin(&request.tenant)
        .await
        .map_err(errors::store)?;
    let found = search(&mut tx, &request.workspace, &query, &mut cursor, size).await?;
    tx.commit().await.map_err(errors::store)?;
    let plans = plans_by_run(reads, &request.tenant, &found).await?;
    let to_proto = |(shard, event): &(i16, Event)| {
        let plan = event.correlation_id.and_then(|run| plans.get(&run));
        wire::event_record(query.filter.stream, *shard, event, plan.map(Arc::as_ref))
    };
    let more = query.shards().contains(&cursor.shard);
    Ok(pb::ListEventsResponse {
        events: found.iter().map(to_proto).collect(),
        next_page_token: if more {
            scheduler.tokens.write(&list, &cursor.to_string())
        } else {
            String::new()
        },
    })
}

/// Collects up to `size` events after the cursor and moves it past them.
async fn search(
    tx: &mut TenantTx,
    workspace: &str,
    query: &EventQuery,
    cursor: &mut Cursor,
    size: usize,
) -> Result<Vec<(i16, Event)>, Error> {
    let mut found: Vec<(i16, Event)> = Vec::new();
    let mut budget = EXAMINED_MAX;
    while query.shards().contains(&cursor.shard) && found.len() < size && budget > 0 {
        let head = events::head(tx, query.filter.stream, cursor.shard)
            .await
            .map_err(errors::store)?;
        let until = head.min(cursor.position.saturating_add(budget));
        let range = (cursor.position, until);
        let missing = size - found.len();
        let events = events::list(tx, workspace, &query.filter, cursor.shard, range, missing)
            .await
            .map_err(errors::store)?;
        let is_full = events.len() >= missing;
        let reached = events
            .last()
            .filter(|_| is_full)
            .map_or(until, |last| last.position);
        budget -= reached - cursor.position;
        found.extend(events.into_iter().map(|event| (cursor.shard, event)));
        if reached >= head {
            cursor.shard += 1;
            cursor.position = 0;
        } else {
            cursor.position = reached;
        }
    }
    Ok(found)
}

/// The plans of the events' runs, which provide the task keys.
async fn plans_by_run(
    reads: &Reads,
    tenant: &str,
    found: &[(i16, Event)],
) -> Result<HashMap<Uuid, Arc<Plan>>, Error> {
    let mut ids: Vec<(&str, Uuid)> = found
        .iter()
        .filter_map(|(_, event)| Some((tenant, event.correlation_id?)))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    let loops = reads.store.loops();
    let mut plans = HashMap::new();
    for run in runs::find_many(loops, &ids).await.map_err(errors::store)? {
        let Some(plan_id) = run.plan_id() else {
            continue;
        };
        let plan = reads
            .plans
            .find(loops, tenant, &run.workspace, plan_id)
            .await
            .map_err(errors::store)?;
        plans.extend(plan.map(|plan| (run.run_id, plan)));
    }
    Ok(plans)
}

/// The position after which a page begins.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    shard: i16,
    position: i64,
}

impl Cursor {
    fn parse(text: &str) -> Result<Cursor, Error> {
        let parsed = text.split_once('.').and_then(|(shard, position)| {
            Some(Cursor {
                shard: shard.parse().ok()?,
                position: position.parse().ok()?,
            })
        });
        parsed.ok_or_else(|| errors::bad_page_token("ListEvents"))
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.shard, self.position)
    }
}
