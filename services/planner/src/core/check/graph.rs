//! Dependencies that run in a circle. Assets that are made together count as one.

use std::collections::BTreeMap;

use servo_model::graph::{Graph, GraphError};
use servo_proto::v1::Manifest;

use super::{Faults, Names};

/// More circles than these are told after the first ones are gone.
const CYCLES_TOLD_MAX: usize = 8;

pub(super) fn check(manifest: &Manifest, names: &Names<'_>, faults: &mut Faults) {
    let mut upstream = tasks(manifest, names, faults);
    for _ in 0..CYCLES_TOLD_MAX {
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
        faults.add_cycle(place_of(manifest, names, first, last), error.to_string());
        // Without this edge the next circle shows itself.
        if let Some(list) = upstream.get_mut(first) {
            list.retain(|node| node != last);
        }
    }
}

/// What each task waits for, by the keys of the assets that have one.
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
        // Of a key that stands twice only the first counts.
        let Some(task) =
            task_of(&asset.key).filter(|_| names.get(asset.key.as_str()) == Some(&index))
        else {
            continue;
        };
        upstream.entry(task).or_default();
        for (place, dependency) in asset.dependencies.iter().enumerate() {
            let Some(before) = task_of(&dependency.upstream) else {
                continue;
            };
            if before == task && dependency.upstream != asset.key {
                let path = format!("assets[{index}].dependencies[{place}].upstream");
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

/// The dependency that closes the circle.
fn place_of(manifest: &Manifest, names: &Names<'_>, node: &str, upstream: &str) -> String {
    let made_here = |key: &str, task: &str| {
        key == task
            || names
                .get(key)
                .is_some_and(|index| manifest.assets[*index].made_by == task)
    };
    let places = manifest
        .assets
        .iter()
        .enumerate()
        .filter(|(_, asset)| made_here(&asset.key, node));
    let found = places.flat_map(|(index, asset)| {
        let upstreams = asset.dependencies.iter().enumerate();
        let fits = upstreams.filter(|(_, dependency)| made_here(&dependency.upstream, upstream));
        fits.map(move |(place, _)| format!("assets[{index}].dependencies[{place}].upstream"))
            .collect::<Vec<_>>()
    });
    found
        .into_iter()
        .next()
        .unwrap_or_else(|| "assets".to_owned())
}
