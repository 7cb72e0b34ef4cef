//! Reduces a plan to a page of its tasks and the assets of those tasks.

use std::collections::BTreeMap;
use std::ops::Range;

use servo_proto::v1::{Plan, PlannedAsset};

/// Keeps these tasks. Ordinals and upstreams still refer to the whole plan; asset indexes refer to
/// the page's own list.
pub(crate) fn keep(plan: &mut Plan, tasks: Range<usize>) {
    let end = tasks.end.min(plan.tasks.len());
    plan.tasks.truncate(end);
    plan.tasks.drain(..tasks.start.min(end));
    let mut assets: BTreeMap<u32, PlannedAsset> = BTreeMap::new();
    for task in &plan.tasks {
        if let Some(asset) = plan.assets.get(task.asset as usize) {
            assets.entry(task.asset).or_insert_with(|| asset.clone());
        }
    }
    let indexes: BTreeMap<u32, u32> = assets.keys().copied().zip(0..).collect();
    for task in &mut plan.tasks {
        task.asset = indexes.get(&task.asset).copied().unwrap_or(task.asset);
    }
    plan.assets = assets.into_values().collect();
}

#[cfg(test)]
mod tests {
    use servo_proto::v1::PlannedTask;

    use super::*;

    #[test]
    fn a_page_contains_the_assets_of_its_tasks() {
        let asset = |key: &str| PlannedAsset {
            asset_key: key.to_owned(),
            ..Default::default()
        };
        let task = |asset: u32| PlannedTask {
            asset,
            ..Default::default()
        };
        let whole = Plan {
            assets: vec![asset("a"), asset("b"), asset("c")],
            tasks: vec![task(0), task(2), task(1), task(2)],
            ..Default::default()
        };
        let part = |tasks: Range<usize>| {
            let mut part = whole.clone();
            keep(&mut part, tasks);
            let key = |task: &PlannedTask| part.assets[task.asset as usize].asset_key.clone();
            (
                part.tasks.iter().map(key).collect::<String>(),
                part.assets.len(),
            )
        };
        assert_eq!(part(0..9), ("acbc".to_owned(), 3));
        assert_eq!(part(1..3), ("cb".to_owned(), 2));
        assert_eq!(part(3..4), ("c".to_owned(), 1));
        assert_eq!(part(7..9), (String::new(), 0));
    }
}
