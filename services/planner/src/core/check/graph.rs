//! Finds cycles of dependencies. Assets that one task makes count as one node.

use std::collections::BTreeMap;

use servo_model::graph::{Graph, GraphError};
use servo_proto::v1::Manifest;

use super::{Faults, Names};

/// Further cycles are reported once the first ones are removed.
const CYCLES_REPORTED_MAX: usize = 8;

pub(super) fn check(manifest: &Manifest, names: &Names<'_>, faults: &mut Faults) {
    let mut upstream = tasks(manifest, names, faults);
    for _ in 0..CYCLES_REPORTED_MAX {
        let graph = Graph::new(
            upstream
                .iter()
                .map(|(node, upstream)| (*node, upstream.clone())),
        );
        let Err(GraphError::Cycle(path)) = graph.and_then(|graph| graph.order()) else {
            return;
        };
        let [.., last, first] = path.as_slice() else {
            return;
        };
        let error = GraphError::Cycle(path.clone());
        faults.add_cycle(path_of(manifest, names, first, last), error.to_string());
        // Removing this edge lets the next pass find another cycle.
        if let Some(list) = upstream.get_mut(first) {
            list.retain(|node| node != last);
        }
    }
}

/// Returns the upstream tasks of each task, by the keys of the assets that have one.
fn tasks<'a>(
    manifest: &'a Manifest,
    names: &Names<'a>,
    faults: &mut Faults,
) -> BTreeMap<&'a str, Vec<&'a str>> {
    let task_of = |key: &'a str| {
        let asset = names.get(key).map(|index| &manifest.assets[*index])?;
        let maker = Some(asset.made_by.as_str()).filter(|maker| names.contains_key(maker));
        Some(maker.unwrap_or(key))
    };
    let mut upstream: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (index, asset) in manifest.assets.iter().enumerate() {
        // Of a repeated key, only the first asset counts.
        let Some(task) =
            task_of(&asset.key).filter(|_| names.get(asset.key.as_str()) == Some(&index))
        else {
            continue;
        };
        upstream.entry(task).or_default();
        for (position, dependency) in asset.dependencies.iter().enumerate() {
            let Some(before) = task_of(&dependency.upstream) else {
                continue;
            };
            if before == task && dependency.upstream != asset.key {
                let path = format!("assets[{index}].dependencies[{position}].upstream");
                faults.add(
                    path,
                    format!(
                        "`{}` is made by the same task; drop the dependency",
                        dependency.upstream
                    ),
                );
            } else {
                upstream.entry(task).or_default().push(before);
            }
        }
    }
    upstream
}

/// Returns the path of the dependency that closes the cycle.
fn path_of(manifest: &Manifest, names: &Names<'_>, node: &str, upstream: &str) -> String {
    let is_made_by = |key: &str, task: &str| {
        key == task
            || names
                .get(key)
                .is_some_and(|index| manifest.assets[*index].made_by == task)
    };
    let places = manifest
        .assets
        .iter()
        .enumerate()
        .filter(|(_, asset)| is_made_by(&asset.key, node));
    let found = places.flat_map(|(index, asset)| {
        let upstreams = asset.dependencies.iter().enumerate();
        let fits = upstreams.filter(|(_, dependency)| is_made_by(&dependency.upstream, upstream));
        fits.map(move |(position, _)| format!("assets[{index}].dependencies[{position}].upstream"))
            .collect::<Vec<_>>()
    });
    found
        .into_iter()
        .next()
        .unwrap_or_else(|| "assets".to_owned())
}
