//! SummarizePartitions: how many partitions of an asset are in each state, and stretches of neighbours.

use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_model::AssetKey;
use servo_proto::v1::{SummarizePartitionsRequest, SummarizePartitionsResponse};

use super::context::{Planner, scope, working};
use super::survey::survey;
use crate::core::survey::summary;

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
        let offer = graph.did_you_mean(&request.asset_key);
        Error::new(
            Reason::AssetNotFound,
            format!("the deployment has no asset `{}`{offer}", request.asset_key),
        )
    })?;
    let moment = Arc::new(planner.moment(&mut tx, &scope, &graph).await?);
    drop(tx);
    let mut survey = survey(planner, &scope, &graph, &moment, asset).await?;
    working(move || {
        let known = survey.states();
        let live: Vec<u64> = request
            .in_progress
            .iter()
            .filter_map(|key| survey.order.place(key))
            .collect();
        summary(
            &survey.order,
            known,
            &live,
            request.max_stretches.max(1) as usize,
        )
    })
    .await
}
