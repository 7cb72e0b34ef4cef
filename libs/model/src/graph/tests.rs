use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// Reads `a -> b, a -> c, d`, and the expected order or error.
fn check(edges: &str, expected: &str) {
    let answer = match Graph::new(nodes(edges)).and_then(|graph| ordered_keys(&graph)) {
        Ok(keys) => keys.join(" "),
        Err(error) => error.to_string(),
    };
    assert_eq!(answer, expected, "{edges}");
}

fn nodes(edges: &str) -> Vec<(String, Vec<String>)> {
    let mut nodes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for edge in edges
        .split(',')
        .map(str::trim)
        .filter(|edge| !edge.is_empty())
    {
        let (from, to) = edge.split_once(" -> ").unwrap_or((edge, edge));
        nodes.entry(from.into()).or_default();
        nodes
            .entry(to.into())
            .or_default()
            .extend((from != to || edge.contains("->")).then(|| from.into()));
    }
    nodes.into_iter().collect()
}

fn ordered_keys<K: Ord + Hash + Clone + Display>(
    graph: &Graph<K>,
) -> Result<Vec<K>, GraphError<K>> {
    Ok(graph
        .order()?
        .into_iter()
        .map(|node| graph.keys()[node as usize].clone())
        .collect())
}

#[test]
fn order_is_topological_with_ties_by_key() {
    check("", "");
    check("b, a, c", "a b c");
    check("c -> a, c -> b", "c a b");
    check("a -> z, b -> a", "b a z");
    check("d -> a, c -> b", "c b d a");
    check("a -> b, a -> b", "a b");
}

#[test]
fn cycles_show_the_complete_path() {
    let circle = |path: &str| format!("the dependencies form a cycle: {path}; drop one of them");
    check("a -> a", &circle("a -> a"));
    check("b -> c, c -> a, a -> b", &circle("a -> b -> c -> a"));
    check(
        "x -> b, b -> c, c -> d, d -> b, d -> e, e -> f",
        &circle("b -> c -> d -> b"),
    );
}

#[test]
fn invalid_graphs_are_rejected() {
    let refused = Graph::new([("a", vec!["z", "y"])]).unwrap_err();
    assert_eq!(
        refused,
        GraphError::UnknownUpstream {
            node: "a",
            upstream: "y"
        }
    );
    let refused =
        Graph::new([("b", vec![]), ("a", vec![]), ("b", vec![]), ("a", vec![])]).unwrap_err();
    assert_eq!(refused, GraphError::Duplicate("a"));
}

#[test]
fn large_graphs_are_ordered_quickly_without_recursion() {
    const NODES: u32 = 50_000;
    let wide = (0..NODES).map(|n| {
        (
            n,
            (1..=4).filter_map(|back| n.checked_sub(back * 7)).collect(),
        )
    });
    assert_eq!(
        Graph::new(wide).unwrap().order().unwrap(),
        (0..NODES).collect::<Vec<_>>()
    );

    let ring = (0..NODES).map(|n| (n, vec![(n + NODES - 1) % NODES]));
    let GraphError::Cycle(path) = Graph::new(ring).unwrap().order().unwrap_err() else {
        panic!("a ring is a cycle")
    };
    assert_eq!(path, (0..NODES).chain([0]).collect::<Vec<_>>());
}

/// Edges among a few nodes: dense enough that cycles are common.
fn any_edges() -> impl Strategy<Value = BTreeSet<(u8, u8)>> {
    prop::collection::btree_set((0u8..12, 0u8..12), 0..24)
}

fn shuffled_graph(edges: &BTreeSet<(u8, u8)>, order: &[u8]) -> Graph<u8> {
    let upstream = |node: u8| {
        edges
            .iter()
            .filter(|(_, to)| *to == node)
            .map(|(from, _)| *from)
            .rev()
            .collect()
    };
    Graph::new(order.iter().map(|&node| (node, upstream(node)))).unwrap()
}

proptest! {
    #[test]
    fn order_is_valid_and_independent_of_insertion(
        edges in any_edges(),
        order in Just((0u8..12).collect::<Vec<u8>>()).prop_shuffle(),
    ) {
        let sorted: Vec<u8> = (0..12).collect();
        let answer = ordered_keys(&shuffled_graph(&edges, &order));
        prop_assert_eq!(&answer, &ordered_keys(&shuffled_graph(&edges, &sorted)));
        match answer {
            Ok(keys) => {
                let at = |node| keys.iter().position(|key| *key == node).unwrap();
                prop_assert_eq!(keys.len(), 12);
                for (from, to) in edges {
                    prop_assert!(at(from) < at(to), "{} before {}", from, to);
                }
            }
            Err(GraphError::Cycle(path)) => {
                prop_assert_eq!(path.first(), path.last());
                prop_assert!(path.len() > 1);
                for step in path.windows(2) {
                    prop_assert!(edges.contains(&(step[0], step[1])), "{:?} is not an edge", step);
                }
                let inner: BTreeSet<u8> = path[1..].iter().copied().collect();
                prop_assert_eq!(inner.len(), path.len() - 1, "no node twice");
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn every_cycle_is_found(edges in any_edges()) {
        let graph = shuffled_graph(&edges, &(0..12).collect::<Vec<u8>>());
        prop_assert_eq!(graph.order().is_err(), has_cycle(&edges));
    }
}

/// Computes the transitive closure: slow but obviously correct.
fn has_cycle(edges: &BTreeSet<(u8, u8)>) -> bool {
    let mut reach = edges.clone();
    loop {
        let longer: BTreeSet<(u8, u8)> = reach
            .iter()
            .flat_map(|&(from, via)| {
                edges
                    .iter()
                    .filter(move |(next, _)| *next == via)
                    .map(move |(_, to)| (from, *to))
            })
            .collect();
        let before = reach.len();
        reach.extend(longer);
        if reach.len() == before {
            return reach.iter().any(|(from, to)| from == to);
        }
    }
}
