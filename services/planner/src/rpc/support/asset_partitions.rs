//! Loads the attempted partitions of an asset from the scheduler's rows.

use std::sync::Arc;

use servo_mesh::Error;
use servo_model::partitioning::Moment;

use super::blocking::run_blocking;
use super::errors::store_error;
use crate::core::asset_partitions::{AssetPartitions, AttemptedPartition, PartitionOrder, Reads};
use crate::core::deployment_graph::DeploymentGraph;
use crate::core::refusal::Refusal;
use crate::rpc::Planner;
use crate::store::{Scope, statuses};

pub(crate) async fn load_asset_partitions(
    planner: &Planner,
    scope: &Scope,
    graph: &Arc<DeploymentGraph>,
    moment: &Arc<Moment>,
    asset: u32,
) -> Result<AssetPartitions, Error> {
    let (shared_graph, shared_moment) = (graph.clone(), moment.clone());
    let (order, mut reads) =
        run_blocking(move || order_and_reads(&shared_graph, asset, &shared_moment)).await??;
    // Uses a transaction of its own, because computing between two assets may take longer than a
    // transaction may stay idle.
    let mut tx = planner.begin(scope).await?;
    for reads in &mut reads {
        let upstream = graph.name(reads.upstream);
        let note = |key: &str, partition: AttemptedPartition| {
            partition
                .promoted
                .into_iter()
                .for_each(|version| reads.note(key, version.readable_at));
        };
        statuses::of_asset(&mut tx, scope, upstream, "", note)
            .await
            .map_err(store_error)?;
    }
    let mut attempted = Vec::new();
    let add =
        |key: &str, status| attempted.extend(order.index_of(key).map(|index| (index, status)));
    statuses::of_asset(
        &mut tx,
        scope,
        graph.name(asset),
        graph.code_version(asset),
        add,
    )
    .await
    .map_err(store_error)?;
    attempted.sort_unstable_by_key(|(index, _)| *index);
    Ok(AssetPartitions {
        order,
        attempted,
        reads,
    })
}

fn order_and_reads(
    graph: &DeploymentGraph,
    asset: u32,
    moment: &Moment,
) -> Result<(PartitionOrder, Vec<Reads>), Refusal> {
    let maker = graph.maker(asset);
    let links = graph.task_links(maker);
    let reads: Result<Vec<Reads>, Refusal> = links
        .map(|link| Reads::of(graph, maker, link, moment))
        .collect();
    Ok((PartitionOrder::of(graph, asset, moment)?, reads?))
}
