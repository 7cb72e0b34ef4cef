//! Deployments in memory: parsed once, found by digest, bounded by weight.
//!
//! A digest is the content's own name, so workspaces with equal manifests share one graph. Which digest a caller may
//! see is decided by the rows that name it, never here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use servo_model::Digest;

use crate::core::deployed::Deployed;

/// Encoded manifests that are kept parsed; a graph in memory takes a few times as much.
const WEIGHT_MAX: usize = 8 * 1024 * 1024;
/// Small ones weigh more than their manifests.
const WEIGHT_MIN: usize = 4 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Graphs {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    graphs: HashMap<Digest, (Arc<Deployed>, u64)>,
    weight: usize,
    uses: u64,
}

impl Graphs {
    pub(crate) fn find(&self, digest: &Digest) -> Option<Arc<Deployed>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let now = kept.uses;
        let (graph, used) = kept.graphs.get_mut(digest)?;
        *used = now;
        Some(graph.clone())
    }

    /// Keeps a graph, and drops those that were used longest ago when it gets too much.
    pub(crate) fn keep(&self, graph: Arc<Deployed>) -> Arc<Deployed> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let now = kept.uses;
        if let Some((before, _)) = kept.graphs.insert(graph.digest, (graph.clone(), now)) {
            kept.weight -= weight(&before);
        }
        kept.weight += weight(&graph);
        while kept.weight > WEIGHT_MAX && kept.graphs.len() > 1 {
            kept.drop_oldest();
        }
        graph
    }
}

impl Kept {
    fn drop_oldest(&mut self) {
        let oldest = self.graphs.iter().min_by_key(|(_, (_, used))| *used).map(|(digest, _)| *digest);
        if let Some((graph, _)) = oldest.and_then(|digest| self.graphs.remove(&digest)) {
            self.weight -= weight(&graph);
        }
    }
}

fn weight(graph: &Deployed) -> usize {
    graph.weight().max(WEIGHT_MIN)
}

#[cfg(test)]
mod tests {
    use servo_proto::v1::{AssetDefinition, Manifest};

    use super::*;

    fn graph(name: &str, bytes: usize) -> Arc<Deployed> {
        let asset = |n: usize| AssetDefinition {
            key: format!("n/a{n}"),
            source: true,
            description: "x".repeat(16 * 1024),
            ..Default::default()
        };
        let assets = (0..bytes / (16 * 1024)).map(asset).collect();
        let manifest = Manifest { format: 1, code_version: name.to_owned(), assets, ..Default::default() };
        Arc::new(Deployed::new(manifest).unwrap())
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let graphs = Graphs::default();
        let all: Vec<_> = (0..3).map(|n| graph(&n.to_string(), WEIGHT_MAX * 2 / 5)).collect();
        graphs.keep(all[0].clone());
        graphs.keep(all[1].clone());
        assert!(graphs.find(&all[0].digest).is_some());
        graphs.keep(all[2].clone());
        let kept: Vec<bool> = all.iter().map(|graph| graphs.find(&graph.digest).is_some()).collect();
        assert_eq!(kept, [true, false, true]);
        let large = graphs.keep(graph("large", WEIGHT_MAX * 2));
        assert!(graphs.find(&large.digest).is_some());
        assert!(graphs.find(&all[2].digest).is_none());
    }
}
