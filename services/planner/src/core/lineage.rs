//! Assets as the API shows them, and the graph between some of them.

use std::collections::BTreeSet;

use servo_model::partitioning::Moment;
use servo_proto::v1::{Asset, LineageEdge};

use crate::core::deployed::Deployed;

/// One asset with its neighbours.
pub(crate) fn asset(
    deployed: &Deployed,
    deployment_id: &str,
    asset: u32,
    moment: &Moment,
) -> Asset {
    let keys = |numbers: &[u32]| {
        numbers
            .iter()
            .map(|number| deployed.name(*number).to_owned())
            .collect()
    };
    Asset {
        asset_key: deployed.name(asset).to_owned(),
        definition: Some(deployed.manifest.assets[asset as usize].clone()),
        deployment_id: deployment_id.to_owned(),
        upstream_keys: keys(&deployed.upstream[asset as usize]),
        downstream_keys: keys(&deployed.downstream[asset as usize]),
        partition_count: deployed
            .partitioning(asset)
            .map_or(1, |partitioning| partitioning.count(moment)),
    }
}

/// The first assets of a selection, nearest to its beginnings first, ascending.
pub(crate) fn nearest(deployed: &Deployed, selected: &[u32], count: usize) -> Vec<u32> {
    if selected.len() <= count {
        return selected.to_vec();
    }
    let inside: BTreeSet<u32> = selected.iter().copied().collect();
    let is_beginning = |asset: &&u32| {
        !deployed.upstream[**asset as usize]
            .iter()
            .any(|up| inside.contains(up))
    };
    let mut found: BTreeSet<u32> = BTreeSet::new();
    let mut level: Vec<u32> = selected.iter().filter(is_beginning).copied().collect();
    while found.len() < count && !level.is_empty() {
        let room = count - found.len();
        found.extend(level.iter().copied().take(room));
        let next = level
            .iter()
            .flat_map(|asset| &deployed.downstream[*asset as usize])
            .copied();
        let next: BTreeSet<u32> = next
            .filter(|asset| inside.contains(asset) && !found.contains(asset))
            .collect();
        level = next.into_iter().collect();
    }
    found.into_iter().collect()
}

/// The dependencies between these assets.
pub(crate) fn edges(deployed: &Deployed, assets: &[u32]) -> Vec<LineageEdge> {
    let inside: BTreeSet<u32> = assets.iter().copied().collect();
    let mut edges = Vec::new();
    for asset in assets {
        let own = &deployed.links[*asset as usize];
        let links = if own.is_empty() {
            &deployed.links[deployed.maker(*asset) as usize]
        } else {
            own
        };
        for link in links.iter().filter(|link| inside.contains(&link.upstream)) {
            edges.push(LineageEdge {
                upstream_key: deployed.name(link.upstream).to_owned(),
                downstream_key: deployed.name(*asset).to_owned(),
                mapped: link.mapped,
                optional: link.optional,
            });
        }
    }
    edges
}
