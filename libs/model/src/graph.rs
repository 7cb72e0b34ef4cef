//! Dependency graphs with one order: topological, ties broken by key.
//!
//! The result does not depend on the order in which nodes or edges are given, and no function
//! recurses.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fmt::Display;
use std::hash::Hash;

/// Nodes are numbered by the order of their keys.
#[derive(Debug, Clone)]
pub struct Graph<K> {
    keys: Vec<K>,
    upstream: Vec<Vec<u32>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError<K: Display> {
    #[error("`{0}` appears twice; keep one")]
    Duplicate(K),
    #[error("`{node}` depends on `{upstream}`, which is not there; add it or drop the dependency")]
    UnknownUpstream { node: K, upstream: K },
    /// The first node is repeated at the end; each one is upstream of the next.
    #[error("the dependencies form a cycle: {}; drop one of them", path(.0))]
    Cycle(Vec<K>),
}

impl<K: Display + Clone> GraphError<&K> {
    pub fn cloned(self) -> GraphError<K> {
        match self {
            GraphError::Duplicate(key) => GraphError::Duplicate(key.clone()),
            GraphError::UnknownUpstream { node, upstream } => GraphError::UnknownUpstream {
                node: node.clone(),
                upstream: upstream.clone(),
            },
            GraphError::Cycle(path) => GraphError::Cycle(path.into_iter().cloned().collect()),
        }
    }
}

impl<K: Ord + Hash + Clone + Display> Graph<K> {
    /// Takes each node with the keys it depends on. A dependency that is named twice counts once.
    pub fn new(nodes: impl IntoIterator<Item = (K, Vec<K>)>) -> Result<Graph<K>, GraphError<K>> {
        let mut nodes: Vec<(K, Vec<K>)> = nodes.into_iter().collect();
        nodes.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        if let Some(pair) = nodes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(GraphError::Duplicate(pair[0].0.clone()));
        }
        let upstream = number_upstreams(&nodes)?;
        Ok(Graph {
            keys: nodes.into_iter().map(|(key, _)| key).collect(),
            upstream,
        })
    }

    /// In the order of the nodes' numbers.
    pub fn keys(&self) -> &[K] {
        &self.keys
    }

    /// The numbers of the nodes that each node depends on, ascending.
    pub fn upstream(&self) -> &[Vec<u32>] {
        &self.upstream
    }

    /// All nodes, each after everything it depends on. Among the nodes that could come next, the
    /// one with the smallest key comes first.
    pub fn order(&self) -> Result<Vec<u32>, GraphError<K>> {
        let downstream = self.downstream();
        let mut waiting: Vec<usize> = self.upstream.iter().map(Vec::len).collect();
        let mut ready: BinaryHeap<Reverse<u32>> = (0..)
            .zip(&waiting)
            .filter(|(_, count)| **count == 0)
            .map(|(node, _)| Reverse(node))
            .collect();
        let mut order = Vec::with_capacity(self.keys.len());
        while let Some(Reverse(node)) = ready.pop() {
            order.push(node);
            for &next in &downstream[node as usize] {
                waiting[next as usize] -= 1;
                if waiting[next as usize] == 0 {
                    ready.push(Reverse(next));
                }
            }
        }
        if order.len() < self.keys.len() {
            return Err(self.cycle(&waiting));
        }
        Ok(order)
    }

    fn downstream(&self) -> Vec<Vec<u32>> {
        let mut downstream = vec![Vec::new(); self.keys.len()];
        for (node, upstream) in (0..).zip(&self.upstream) {
            for &before in upstream {
                downstream[before as usize].push(node);
            }
        }
        downstream
    }

    /// Finds a cycle: every waiting node has an upstream that also waits, so walking upstream must
    /// return to a node that was already visited.
    fn cycle(&self, waiting: &[usize]) -> GraphError<K> {
        let waits = |node: &u32| waiting[*node as usize] > 0;
        let mut seen_at: Vec<Option<usize>> = vec![None; waiting.len()];
        let mut walk: Vec<u32> = Vec::new();
        let mut next = (0..).take(waiting.len()).find(waits);
        while let Some(node) = next {
            if let Some(start) = seen_at[node as usize] {
                return GraphError::Cycle(self.closed_path(&walk[start..]));
            }
            seen_at[node as usize] = Some(walk.len());
            walk.push(node);
            next = self.upstream[node as usize].iter().copied().find(waits);
        }
        unreachable!("a waiting node has a waiting upstream")
    }

    /// Turns a walk against the edges into a path along them, starting and ending at the smallest
    /// key.
    fn closed_path(&self, walk: &[u32]) -> Vec<K> {
        let mut path: Vec<u32> = walk.iter().rev().copied().collect();
        let smallest = (0..path.len())
            .min_by_key(|&at| path[at])
            .unwrap_or_default();
        path.rotate_left(smallest);
        path.extend(path.first().copied());
        path.into_iter()
            .map(|node| self.keys[node as usize].clone())
            .collect()
    }
}

fn number_upstreams<K: Ord + Hash + Clone + Display>(
    nodes: &[(K, Vec<K>)],
) -> Result<Vec<Vec<u32>>, GraphError<K>> {
    let numbers: HashMap<&K, u32> = nodes.iter().map(|(key, _)| key).zip(0..).collect();
    let number_all = |(node, upstream): &(K, Vec<K>)| {
        let missing = upstream
            .iter()
            .filter(|key| !numbers.contains_key(key))
            .min();
        if let Some(upstream) = missing {
            return Err(GraphError::UnknownUpstream {
                node: node.clone(),
                upstream: upstream.clone(),
            });
        }
        let mut known: Vec<u32> = upstream.iter().map(|key| numbers[key]).collect();
        known.sort_unstable();
        known.dedup();
        Ok(known)
    };
    nodes.iter().map(number_all).collect()
}

fn path<K: Display>(keys: &[K]) -> String {
    keys.iter()
        .map(K::to_string)
        .collect::<Vec<_>>()
        .join(" -> ")
}
