//! ListProjections: the tables that are folded from the ledger, and how far.

use servo_mesh::Error;
use servo_model::Stream;
use servo_proto::v1 as pb;

use super::Scheduler;
use super::support::{errors, pages};
use crate::reads::projection::Projection;
use crate::store::shards;

pub(super) async fn list_projections(
    scheduler: &Scheduler,
    request: pb::ListProjectionsRequest,
) -> Result<pb::ListProjectionsResponse, Error> {
    let size = pages::size(request.page_size)?;
    let list = ["projections"];
    let after = scheduler
        .tokens
        .read(&list, &request.page_token)?
        .unwrap_or_default();
    let rows = shards::list(scheduler.reads.store.loops())
        .await
        .map_err(errors::store)?;
    let shards: Vec<pb::ShardStatus> = rows
        .into_iter()
        .map(|row| pb::ShardStatus {
            shard: row.shard.into(),
            head: row.head.into(),
            watermark: row.watermark.into(),
            holder: row.holder.unwrap_or_default(),
            epoch: row.epoch.get(),
            fault: if scheduler.shards.is_unreadable(row.shard) {
                UNREADABLE.to_owned()
            } else {
                String::new()
            },
        })
        .collect();
    let mut names = Projection::ALL
        .map(Projection::name)
        .into_iter()
        .filter(|name| **name > *after);
    let page: Vec<&str> = names.by_ref().take(size).collect();
    let next = page.last().filter(|_| names.next().is_some());
    let next_page_token = next.map_or_else(String::new, |last| scheduler.tokens.write(&list, last));
    let to_proto = |name: &str| pb::Projection {
        projection: name.to_owned(),
        stream: Stream::Execution.name().to_owned(),
        shards: shards.clone(),
        ..Default::default()
    };
    Ok(pb::ListProjectionsResponse {
        projections: page.into_iter().map(to_proto).collect(),
        next_page_token,
    })
}

const UNREADABLE: &str = "the shard contains an event or a state that this version does not know; a newer version must hold it";
