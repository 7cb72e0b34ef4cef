//! Caches parsed deployments by the digest of their manifest, bounded by memory use.
//!
//! A digest identifies the content, so workspaces with equal manifests share one graph. Callers
//! must read a digest from rows of their own workspace; the cache does not check access.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use servo_model::Digest;

use crate::core::deployment_graph::DeploymentGraph;

/// Limit for the estimated memory use of all cached graphs, in bytes.
const MEMORY_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct DeploymentCache {
    entries: Mutex<Entries>,
    memory_bytes_max: usize,
}

impl Default for DeploymentCache {
    fn default() -> DeploymentCache {
        DeploymentCache {
            entries: Mutex::default(),
            memory_bytes_max: MEMORY_BYTES_MAX,
        }
    }
}

#[derive(Debug, Default)]
struct Entries {
    by_digest: HashMap<Digest, (Arc<DeploymentGraph>, u64)>,
    memory_bytes: usize,
    clock: u64,
}

impl DeploymentCache {
    pub(crate) fn find(&self, digest: &Digest) -> Option<Arc<DeploymentGraph>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        let now = entries.clock;
        let (graph, used) = entries.by_digest.get_mut(digest)?;
        *used = now;
        Some(graph.clone())
    }

    /// Caches a graph, and evicts the least recently used ones while the cache is too large.
    pub(crate) fn insert(&self, graph: Arc<DeploymentGraph>) -> Arc<DeploymentGraph> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        let now = entries.clock;
        if let Some((before, _)) = entries.by_digest.insert(graph.digest, (graph.clone(), now)) {
            entries.memory_bytes -= before.memory_bytes();
        }
        entries.memory_bytes += graph.memory_bytes();
        while entries.memory_bytes > self.memory_bytes_max && entries.by_digest.len() > 1 {
            entries.evict_oldest();
        }
        graph
    }
}

impl Entries {
    fn evict_oldest(&mut self) {
        let oldest = self
            .by_digest
            .iter()
            .min_by_key(|(_, (_, used))| *used)
            .map(|(digest, _)| *digest);
        if let Some((graph, _)) = oldest.and_then(|digest| self.by_digest.remove(&digest)) {
            self.memory_bytes -= graph.memory_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use servo_proto::v1::{AssetDefinition, Manifest};

    use super::*;

    fn graph(name: &str, assets: usize) -> Arc<DeploymentGraph> {
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
        Arc::new(DeploymentGraph::new(manifest).unwrap())
    }

    #[test]
    fn the_least_recently_used_graph_is_evicted_first() {
        let all: Vec<_> = (0..3).map(|n| graph(&n.to_string(), 10)).collect();
        let cache = DeploymentCache {
            memory_bytes_max: all[0].memory_bytes() * 5 / 2,
            ..DeploymentCache::default()
        };
        cache.insert(all[0].clone());
        cache.insert(all[1].clone());
        assert!(cache.find(&all[0].digest).is_some());
        cache.insert(all[2].clone());
        let cached: Vec<bool> = all
            .iter()
            .map(|graph| cache.find(&graph.digest).is_some())
            .collect();
        assert_eq!(cached, [true, false, true]);
        let large = cache.insert(graph("large", 100));
        assert!(cache.find(&large.digest).is_some());
        assert!(cache.find(&all[2].digest).is_none());
    }
}
