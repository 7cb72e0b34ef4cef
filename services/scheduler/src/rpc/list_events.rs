//! ListEvents: the events of a workspace, shard by shard.

use std::collections::HashMap;
use std::sync::Arc;

use servo_mesh::Error;
use servo_model::{Position, ShardId, Stream, TenantId};
use servo_proto::v1 as pb;
use servo_store::{Event, TenantTx};
use uuid::Uuid;

use super::Scheduler;
use super::support::{errors, pages, parse};
use crate::core::Plan;
use crate::reads::Reads;
use crate::reads::event_filter::EventQuery;
use crate::store::{events, runs};
use crate::wire;

/// How many positions a page examines, because events of other workspaces lie in between.
const EXAMINED_MAX: u32 = 20_000;

pub(super) async fn list_events(
    scheduler: &Scheduler,
    request: pb::ListEventsRequest,
) -> Result<pb::ListEventsResponse, Error> {
    let tenant = parse::tenant(&request.tenant)?;
    let query = EventQuery::parse(&request.filter)?;
    let size = pages::size(request.page_size)?;
    let list = [
        "events",
        &request.tenant,
        &request.workspace,
        &request.filter,
    ];
    let cursor = match scheduler.tokens.read(&list, &request.page_token)? {
        None => None,
        Some(cursor) => Some(Cursor::parse(&cursor, query.filter.stream)?),
    };
    let reads = &scheduler.reads;
    let mut tx = reads
        .store
        .requests()
        .begin(&tenant)
        .await
        .map_err(errors::store)?;
    let (found, next) = search(&mut tx, &request.workspace, &query, cursor, size).await?;
    tx.commit().await.map_err(errors::store)?;
    let plans = plans_by_run(reads, &tenant, &found).await?;
    let to_proto = |(shard, event): &(ShardId, Event)| {
        let plan = event.correlation_id.and_then(|run| plans.get(&run));
        wire::event_record(query.filter.stream, *shard, event, plan.map(Arc::as_ref))
    };
    Ok(pb::ListEventsResponse {
        events: found.iter().map(to_proto).collect(),
        next_page_token: next.map_or_else(String::new, |next| {
            scheduler.tokens.write(&list, &next.to_string())
        }),
    })
}

/// Returns up to `size` events after the cursor, and the cursor of the next page.
async fn search(
    tx: &mut TenantTx,
    workspace: &str,
    query: &EventQuery,
    cursor: Option<Cursor>,
    size: usize,
) -> Result<(Vec<(ShardId, Event)>, Option<Cursor>), Error> {
    let mut found: Vec<(ShardId, Event)> = Vec::new();
    let mut budget = EXAMINED_MAX;
    let mut after = cursor.map_or(Position::START, |cursor| cursor.position);
    let is_read = |shard: &ShardId| cursor.is_some_and(|cursor| *shard < cursor.shard);
    for shard in query.shards().into_iter().skip_while(is_read) {
        if found.len() == size || budget == 0 {
            let position = after;
            return Ok((found, Some(Cursor { shard, position })));
        }
        let head = events::head(tx, query.filter.stream, shard)
            .await
            .map_err(errors::store)?;
        let until = head.min(after.plus(budget));
        let missing = size - found.len();
        let events = events::list(tx, workspace, &query.filter, shard, (after, until), missing)
            .await
            .map_err(errors::store)?;
        let is_full = events.len() >= missing;
        let reached = events
            .last()
            .filter(|_| is_full)
            .map_or(until, |last| last.position);
        let examined = u32::try_from(reached.events_since(after)).unwrap_or(u32::MAX);
        budget = budget.saturating_sub(examined);
        found.extend(events.into_iter().map(|event| (shard, event)));
        if reached < head {
            let position = reached;
            return Ok((found, Some(Cursor { shard, position })));
        }
        after = Position::START;
    }
    Ok((found, None))
}

/// The plans of the events' runs, which provide the task keys.
async fn plans_by_run(
    reads: &Reads,
    tenant: &TenantId,
    found: &[(ShardId, Event)],
) -> Result<HashMap<Uuid, Arc<Plan>>, Error> {
    let mut ids: Vec<(Option<&TenantId>, Uuid)> = found
        .iter()
        .filter_map(|(_, event)| Some((Some(tenant), event.correlation_id?)))
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
    shard: ShardId,
    position: Position,
}

impl Cursor {
    fn parse(text: &str, stream: Stream) -> Result<Cursor, Error> {
        let parsed = text.split_once('.').and_then(|(shard, position)| {
            Some(Cursor {
                shard: stream.shard(shard.parse().ok()?)?,
                position: Position::new(position.parse().ok()?)?,
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
