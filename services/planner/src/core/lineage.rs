//! Assets as the API returns them, and the dependencies between a set of assets.

use std::collections::BTreeSet;

use servo_model::partitioning::Moment;
use servo_proto::v1::{Asset, LineageEdge};

use crate::core::deployment_graph::DeploymentGraph;

/// Returns one asset with the keys of its direct neighbours.
pub(crate) fn asset(
    graph: &DeploymentGraph,
    deployment_id: &str,
    asset: u32,
    moment: &Moment,
) -> Asset {
    let keys = |numbers: &[u32]| {
        numbers
            .iter()
            .map(|number| graph.name(*number).to_owned())
            .collect()
    };
    Asset {
        asset_key: graph.name(asset).to_owned(),
        definition: Some(graph.manifest.assets[asset as usize].clone()),
        deployment_id: deployment_id.to_owned(),
        upstream_keys: keys(&graph.upstream[asset as usize]),
        downstream_keys: keys(&graph.downstream[asset as usize]),
        partition_count: graph
            .partitioning(asset)
            .map_or(1, |partitioning| partitioning.count(moment)),
    }
}

/// Returns at most `count` of the selected assets in ascending order, preferring those closest to
/// the roots of the selection.
pub(crate) fn nearest(graph: &DeploymentGraph, selected: &[u32], count: usize) -> Vec<u32> {
    if selected.len() <= count {
        return selected.to_vec();
    }
    let inside: BTreeSet<u32> = selected.iter().copied().collect();
    let is_root = |asset: &&u32| {
        !graph.upstream[**asset as usize]
            .iter()
            .any(|up| inside.contains(up))
    };
    let mut found: BTreeSet<u32> = BTreeSet::new();
    let mut level: Vec<u32> = selected.iter().filter(is_root).copied().collect();
    while found.len() < count && !level.is_empty() {
        let remaining = count - found.len();
        found.extend(level.iter().copied().take(remaining));
        let next = level
            .iter()
            .flat_map(|asset| &graph.downstream[*asset as usize])
            .copied();
        let next: BTreeSet<u32> = next
            .filter(|asset| inside.contains(asset) && !found.contains(asset))
            .collect();
        level = next.into_iter().collect();
    }
    found.into_iter().collect()
}

/// Returns the dependencies between these assets.
pub(crate) fn edges(graph: &DeploymentGraph, assets: &[u32]) -> Vec<LineageEdge> {
    let inside: BTreeSet<u32> = assets.iter().copied().collect();
    let mut edges = Vec::new();
    for asset in assets {
        let own = &graph.links[*asset as usize];
        let links = if own.is_empty() {
            &graph.links[graph.maker(*asset) as usize]
        } else {
            own
        };
        for link in links.iter().filter(|link| inside.contains(&link.upstream)) {
            edges.push(LineageEdge {
                upstream_key: graph.name(link.upstream).to_owned(),
                downstream_key: graph.name(*asset).to_owned(),
                mapped: link.mapped,
                optional: link.optional,
            });
        }
    }
    edges
}
