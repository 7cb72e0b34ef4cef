//! ListProjections: which tables are folded from the ledger, and how far.

use servo_mesh::Error;
use servo_mesh::paging::page_size;
use servo_model::Stream;
use servo_proto::v1 as pb;
use servo_store::query;

use super::{Scheduler, answer};

/// What the fold writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Projection {
    CheckResults,
    Materializations,
    Partitions,
    RunKeyConflicts,
    Runs,
    Tasks,
}

impl Projection {
    /// By name.
    pub(super) const ALL: [Projection; 6] = [
        Projection::CheckResults,
        Projection::Materializations,
        Projection::Partitions,
        Projection::RunKeyConflicts,
        Projection::Runs,
        Projection::Tasks,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Projection::CheckResults => "scheduler.check_results",
            Projection::Materializations => "scheduler.materializations",
            Projection::Partitions => "scheduler.partitions",
            Projection::RunKeyConflicts => "scheduler.run_key_conflicts",
            Projection::Runs => "scheduler.runs",
            Projection::Tasks => "scheduler.tasks",
        }
    }
}

pub(super) async fn list_projections(
    scheduler: &Scheduler,
    request: pb::ListProjectionsRequest,
) -> Result<pb::ListProjectionsResponse, Error> {
    let size = page_size(request.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let list = ["projections"];
    let after = scheduler
        .tokens
        .read(&list, &request.page_token)?
        .unwrap_or_default();
    let rows: Vec<(i16, i64, i64, Option<String>, i64)> = scheduler
        .store
        .loops()
        .all(query(include_str!("../store/shards.sql")))
        .await
        .map_err(answer::store)?;
    let shards: Vec<pb::ShardStatus> = rows
        .into_iter()
        .map(|(shard, head, watermark, holder, epoch)| pb::ShardStatus {
            shard: u32::from(shard.unsigned_abs()),
            head: head.unsigned_abs(),
            watermark: watermark.unsigned_abs(),
            holder: holder.unwrap_or_default(),
            epoch: epoch.unsigned_abs(),
            fault: if scheduler.shards.is_unreadable(shard) {
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
    let show = |name: &str| pb::Projection {
        projection: name.to_owned(),
        stream: Stream::Execution.name().to_owned(),
        shards: shards.clone(),
        ..Default::default()
    };
    Ok(pb::ListProjectionsResponse {
        projections: page.into_iter().map(show).collect(),
        next_page_token,
    })
}

const UNREADABLE: &str =
    "it holds an event that this version does not know; a newer one must take it";
