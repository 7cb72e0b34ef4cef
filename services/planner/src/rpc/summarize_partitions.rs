//! SummarizePartitions: counts an asset's partitions by state and returns ranges of neighbouring
//! partitions.

use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_model::AssetKey;
use servo_proto::mesh::v1::{SummarizePartitionsRequest, SummarizePartitionsResponse};

use super::Planner;
use super::support::asset_partitions::load_asset_partitions;
use super::support::blocking::run_blocking;
use super::support::parse::scope;
use crate::core::asset_partitions::summarize;

pub(super) async fn summarize_partitions(
    planner: &Planner,
    request: SummarizePartitionsRequest,
) -> Result<SummarizePartitionsResponse, Error> {
    let scope = scope(&request)?;
    let key = AssetKey::parse_canonical(&request.asset_key)
        .map_err(|error| Error::new(Reason::AssetNotFound, error.to_string()))?;
    let mut tx = planner.begin(&scope).await?;
    let graph = planner.deployment(&mut tx, &scope, "").await?.graph;
    let asset = graph.find(&key).ok_or_else(|| {
        let suggestion = graph.did_you_mean(&request.asset_key);
        Error::new(
            Reason::AssetNotFound,
            format!(
                "the deployment has no asset `{}`{suggestion}",
                request.asset_key
            ),
        )
    })?;
    let moment = Arc::new(planner.moment(&mut tx, &scope, &graph).await?);
    drop(tx);
    let mut partitions = load_asset_partitions(planner, &scope, &graph, &moment, asset).await?;
    run_blocking(move || {
        let known = partitions.states();
        let live: Vec<u64> = request
            .in_progress
            .iter()
            .filter_map(|key| partitions.order.index_of(key))
            .collect();
        summarize(
            &partitions.order,
            known,
            &live,
            request.max_stretches.max(1) as usize,
        )
    })
    .await
}
