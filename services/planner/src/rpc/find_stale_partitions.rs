//! FindStalePartitions: lists partitions that are older than their inputs or made by other code, a
//! page at a time.

use std::sync::Arc;

use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_model::Digest;
use servo_model::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use servo_model::partitioning::Moment;
use servo_proto::mesh::v1::{
    FindStalePartitionsRequest, FindStalePartitionsResponse, PartitionStaleness, StalePartition,
};
use servo_proto::v1::StaleReason;

use super::Planner;
use super::support::asset_partitions::load_asset_partitions;
use super::support::blocking::run_blocking;
use super::support::parse::scope;
use super::support::staleness::{staleness, staleness_inputs};
use crate::core::asset_partitions::PartitionOrder;
use crate::core::deployment_graph::DeploymentGraph;
use crate::store::Scope;

pub(super) async fn find_stale_partitions(
    planner: &Planner,
    request: FindStalePartitionsRequest,
) -> Result<FindStalePartitionsResponse, Error> {
    let scope = scope(&request)?;
    let size = page_size(request.page_size, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)?;
    let reason = StaleReason::try_from(request.reason)
        .map_err(|_| Error::bad_field("reason", format!("{} is not a reason", request.reason)))?;
    check_served(reason)?;
    let request_digest = Digest::of(format!(
        "{}\n{}",
        request.reason,
        request.selection.join("\n")
    ))
    .to_string();
    let list = [
        "stale",
        scope.tenant.as_str(),
        scope.workspace.as_str(),
        &request_digest,
    ];
    let cursor = planner.pages.read(&list, &request.page_token)?;
    // The page begins behind this partition of this asset, even if either no longer exists.
    let after = cursor
        .as_deref()
        .map(|cursor| cursor.split_once(' ').unwrap_or((cursor, "")));
    let mut tx = planner.begin(&scope).await?;
    let graph = planner.deployment(&mut tx, &scope, "").await?.graph;
    let moment = Arc::new(planner.moment(&mut tx, &scope, &graph).await?);
    drop(tx);
    let selected = if request.selection.is_empty() {
        (0..).take(graph.keys.len()).collect()
    } else {
        graph.select("selection", &request.selection)?
    };
    let (mut page, mut total) = (Vec::new(), 0);
    // Sources have no task and no inputs, so they are never stale.
    for asset in selected
        .into_iter()
        .filter(|asset| !graph.is_source(*asset))
    {
        let stale = StalePartitions::of(planner, &scope, &graph, &moment, asset, reason).await?;
        total += stale.indexes.len() as u64;
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
        partitions: with_staleness(planner, &scope, &graph, &moment, page).await?,
        next_page_token: last
            .map(|cursor| planner.pages.write(&list, &cursor))
            .unwrap_or_default(),
        total,
    })
}

/// Refuses reasons that are not computed yet, because an empty answer would mean that no data is
/// stale for them.
fn check_served(reason: StaleReason) -> Result<(), Error> {
    match reason {
        StaleReason::Unspecified | StaleReason::UpstreamChanged | StaleReason::CodeChanged => {
            Ok(())
        }
        StaleReason::UpstreamStale | StaleReason::TooOld => {
            let name = reason.as_str_name();
            let sentence = format!(
                "{name} is not served yet; ask for UPSTREAM_CHANGED or CODE_CHANGED, or leave it out"
            );
            let message = format!("reason: {sentence}");
            Err(Error::new(Reason::NotImplemented, message).and_bad_field("reason", sentence))
        }
    }
}

/// The stale partitions of one asset.
struct StalePartitions {
    asset: u32,
    name: String,
    order: PartitionOrder,
    indexes: Vec<u64>,
}

impl StalePartitions {
    async fn of(
        planner: &Planner,
        scope: &Scope,
        graph: &Arc<DeploymentGraph>,
        moment: &Arc<Moment>,
        asset: u32,
        reason: StaleReason,
    ) -> Result<StalePartitions, Error> {
        let mut partitions = load_asset_partitions(planner, scope, graph, moment, asset).await?;
        let name = graph.name(asset).to_owned();
        run_blocking(move || StalePartitions {
            asset,
            name,
            indexes: partitions.stale_indexes(reason),
            order: partitions.order,
        })
        .await
    }

    /// Returns the partitions behind the end of the previous page.
    fn after(&self, cursor: Option<(&str, &str)>) -> impl Iterator<Item = (u32, String)> {
        let first = match cursor {
            Some((asset, _)) if self.name.as_str() < asset => self.indexes.len(),
            Some((asset, key)) if self.name == asset => {
                let last = self.order.index_of(key);
                last.map_or(0, |last| {
                    self.indexes.partition_point(|index| *index <= last)
                })
            }
            _ => 0,
        };
        self.indexes[first..]
            .iter()
            .map(|index| (self.asset, self.order.key(*index)))
    }
}

async fn with_staleness(
    planner: &Planner,
    scope: &Scope,
    graph: &Arc<DeploymentGraph>,
    moment: &Arc<Moment>,
    page: Vec<(u32, String)>,
) -> Result<Vec<StalePartition>, Error> {
    let mut all = Vec::with_capacity(page.len());
    for (asset, key) in &page {
        all.extend(staleness_inputs(
            graph,
            *asset,
            std::slice::from_ref(key),
            moment,
        )?);
    }
    let mut tx = planner.begin(scope).await?;
    let found = staleness(&mut tx, scope, &all).await?;
    let to_proto =
        |((asset, key), staleness): ((u32, String), PartitionStaleness)| StalePartition {
            asset_key: graph.name(asset).to_owned(),
            partition_key: key,
            staleness: Some(staleness),
        };
    Ok(page.into_iter().zip(found).map(to_proto).collect())
}
