//! Deployments in memory: parsed once, found by digest, bounded by weight.
//!
//! A digest is the content's own name, so workspaces with equal manifests share one graph. Which digest a caller may
//! see is decided by the rows that name it, never here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use servo_model::Digest;

use crate::core::deployed::Deployed;

/// What all graphs together may weigh, in bytes.
const WEIGHT_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Graphs {
    kept: Mutex<Kept>,
    weight_max: usize,
}

impl Default for Graphs {
    fn default() -> Graphs {
        Graphs {
            kept: Mutex::default(),
            weight_max: WEIGHT_MAX,
        }
    }
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
            kept.weight -= before.weight();
        }
        kept.weight += graph.weight();
        while kept.weight > self.weight_max && kept.graphs.len() > 1 {
            kept.drop_oldest();
        }
        graph
    }
}

impl Kept {
    fn drop_oldest(&mut self) {
        let oldest = self
            .graphs
            .iter()
            .min_by_key(|(_, (_, used))| *used)
            .map(|(digest, _)| *digest);
        if let Some((graph, _)) = oldest.and_then(|digest| self.graphs.remove(&digest)) {
            self.weight -= graph.weight();
        }
    }
}

#[cfg(test)]
mod tests {
    use servo_proto::v1::{AssetDefinition, Manifest};

    use super::*;

    fn graph(name: &str, assets: usize) -> Arc<Deployed> {
        let asset = |n: usize| AssetDefinition {
            key: format!("n/a{n}"),
            source: true,
            ..Default::default()
        };
        let assets = (0..assets).map(asset).collect();
        let manifest = Manifest {
            format: 1,
            code_version: name.to_owned(),
            assets,
            ..Default::default()
        };
        Arc::new(Deployed::new(manifest).unwrap())
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let all: Vec<_> = (0..3).map(|n| graph(&n.to_string(), 10)).collect();
        let graphs = Graphs {
            weight_max: all[0].weight() * 5 / 2,
            ..Graphs::default()
        };
        graphs.keep(all[0].clone());
        graphs.keep(all[1].clone());
        assert!(graphs.find(&all[0].digest).is_some());
        graphs.keep(all[2].clone());
        let kept: Vec<bool> = all
            .iter()
            .map(|graph| graphs.find(&graph.digest).is_some())
            .collect();
        assert_eq!(kept, [true, false, true]);
        let large = graphs.keep(graph("large", 100));
        assert!(graphs.find(&large.digest).is_some());
        assert!(graphs.find(&all[2].digest).is_none());
    }
}
