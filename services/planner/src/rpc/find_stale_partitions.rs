//! FindStalePartitions: partitions whose data is not from what is current, a page at a time.

use std::sync::Arc;

use servo_mesh::Error;
use servo_mesh::paging::page_size;
use servo_model::Digest;
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_model::partitioning::Moment;
use servo_proto::v1::{
    FindStalePartitionsRequest, FindStalePartitionsResponse, PartitionStaleness, StalePartition,
    StaleReason,
};

use super::context::{Planner, scope, working};
use super::staleness::{judged, staleness};
use super::survey::survey;
use crate::core::deployed::Deployed;
use crate::core::survey::Order;
use crate::store::Scope;

pub(super) async fn find_stale_partitions(
    planner: &Planner,
    request: FindStalePartitionsRequest,
) -> Result<FindStalePartitionsResponse, Error> {
    let scope = scope(&request)?;
    let size = page_size(request.page_size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?;
    let reason = StaleReason::try_from(request.reason)
        .map_err(|_| Error::bad_field("reason", format!("{} is no reason", request.reason)))?;
    let question = Digest::of(format!(
        "{}\n{}",
        request.reason,
        request.selection.join("\n")
    ))
    .to_string();
    let list = ["stale", &scope.tenant, &scope.workspace, &question];
    let cursor = planner.pages.read(&list, &request.page_token)?;
    // Behind this partition of this asset, whatever became of either meanwhile.
    let after = cursor
        .as_deref()
        .map(|cursor| cursor.split_once(' ').unwrap_or((cursor, "")));
    let mut tx = planner.begin(&scope).await?;
    let graph = planner.deployment(&mut tx, &scope, "").await?.graph;
    let moment = Arc::new(planner.moment(&mut tx, &scope, &graph).await?);
    drop(tx);
    let selected = match request.selection.is_empty() {
        true => (0..).take(graph.keys.len()).collect(),
        false => graph.select("selection", &request.selection)?,
    };
    let (mut page, mut total) = (Vec::new(), 0);
    // What has no task is made from nothing here.
    for asset in selected
        .into_iter()
        .filter(|asset| !graph.is_source(*asset))
    {
        let stale = Stale::of(planner, &scope, &graph, &moment, asset, reason).await?;
        total += stale.places.len() as u64;
        page.extend(
            stale
                .after(after)
                .take((size + 1).saturating_sub(page.len())),
        );
    }
    let more = page.len() > size;
    page.truncate(size);
    let last = page
        .last()
        .filter(|_| more)
        .map(|(asset, key)| format!("{} {key}", graph.name(*asset)));
    Ok(FindStalePartitionsResponse {
        partitions: explained(planner, &scope, &graph, &moment, page).await?,
        next_page_token: last
            .map(|cursor| planner.pages.write(&list, &cursor))
            .unwrap_or_default(),
        total,
    })
}

/// The stale partitions of one asset.
struct Stale {
    asset: u32,
    name: String,
    order: Order,
    places: Vec<u64>,
}

impl Stale {
    async fn of(
        planner: &Planner,
        scope: &Scope,
        graph: &Arc<Deployed>,
        moment: &Arc<Moment>,
        asset: u32,
        reason: StaleReason,
    ) -> Result<Stale, Error> {
        let mut survey = survey(planner, scope, graph, moment, asset).await?;
        let name = graph.name(asset).to_owned();
        working(move || Stale {
            asset,
            name,
            places: survey.stale(reason),
            order: survey.order,
        })
        .await
    }

    /// Those behind where the page before ended.
    fn after(&self, cursor: Option<(&str, &str)>) -> impl Iterator<Item = (u32, String)> {
        let first = match cursor {
            Some((asset, _)) if self.name.as_str() < asset => self.places.len(),
            Some((asset, key)) if self.name == asset => {
                let last = self.order.place(key);
                last.map_or(0, |last| {
                    self.places.partition_point(|place| *place <= last)
                })
            }
            _ => 0,
        };
        self.places[first..]
            .iter()
            .map(|place| (self.asset, self.order.key(*place)))
    }
}

async fn explained(
    planner: &Planner,
    scope: &Scope,
    graph: &Arc<Deployed>,
    moment: &Arc<Moment>,
    page: Vec<(u32, String)>,
) -> Result<Vec<StalePartition>, Error> {
    let mut all = Vec::with_capacity(page.len());
    for (asset, key) in &page {
        all.extend(judged(graph, *asset, std::slice::from_ref(key), moment)?);
    }
    let mut tx = planner.begin(scope).await?;
    let found = staleness(&mut tx, scope, &all).await?;
    let show = |((asset, key), staleness): ((u32, String), PartitionStaleness)| StalePartition {
        asset_key: graph.name(asset).to_owned(),
        partition_key: key,
        staleness: Some(staleness),
    };
    Ok(page.into_iter().zip(found).map(show).collect())
}
