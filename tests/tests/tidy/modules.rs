//! The top-level modules of a crate do not depend on each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;

use crate::source::{Source, finds, is_for_tests, none, product};

type Graph = BTreeMap<String, BTreeSet<String>>;

fn cycles(sources: &[Source]) -> Vec<String> {
    let mut crates: BTreeMap<&str, Graph> = BTreeMap::new();
    for source in sources {
        let module = top_level(source.within_crate());
        if ["", "lib", "main"].contains(&module) {
            continue;
        }
        let mut uses = Uses::default();
        uses.visit_file(&source.syntax);
        let graph = crates.entry(source.crate_path()).or_default();
        graph
            .entry(module.to_owned())
            .or_default()
            .extend(uses.0.into_iter().filter(|used| used != module));
    }
    let mut findings = Vec::new();
    for (path, graph) in crates {
        findings.extend(cycle(&graph).map(|cycle| format!("{path}: {}", cycle.join(" -> "))));
    }
    findings
}

fn top_level(within_crate: &str) -> &str {
    let first = within_crate.split('/').next().unwrap_or_default();
    first.strip_suffix(".rs").unwrap_or(first)
}

/// The modules that a file names as `crate::<module>`.
#[derive(Default)]
struct Uses(BTreeSet<String>);

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut segments = path.segments.iter();
        if segments.next().is_some_and(|first| first.ident == "crate")
            && let (Some(module), true) = (segments.next(), path.segments.len() > 2)
        {
            self.0.insert(module.ident.to_string());
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_use_path(&mut self, path: &'ast syn::UsePath) {
        if path.ident == "crate" {
            self.add_tree(&path.tree);
        }
        syn::visit::visit_use_path(self, path);
    }
}

impl Uses {
    fn add_tree(&mut self, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                self.0.insert(path.ident.to_string());
            }
            // `use crate::module;`; names of types begin with a capital letter.
            syn::UseTree::Name(name) => {
                let name = name.ident.to_string();
                if name.starts_with(|first: char| first.is_ascii_lowercase()) {
                    self.0.insert(name);
                }
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(tree)),
            syn::UseTree::Rename(_) | syn::UseTree::Glob(_) => {}
        }
    }
}

/// The first cycle found, as the modules on it.
fn cycle(graph: &Graph) -> Option<Vec<String>> {
    graph.keys().find_map(|start| path_back(graph, start))
}

/// The shortest way from a module back to itself.
fn path_back(graph: &Graph, start: &str) -> Option<Vec<String>> {
    let mut ways: Vec<Vec<String>> = vec![vec![start.to_owned()]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = way.last()?;
            for next in graph.get(last).into_iter().flatten() {
                let mut way = way.clone();
                way.push(next.clone());
                if next == start {
                    return Some(way);
                }
                if seen.insert(next.clone()) {
                    longer.push(way);
                }
            }
        }
        ways = longer;
    }
    None
}

#[test]
fn modules_have_no_cycles() {
    none(cycles(&product(&["libs", "services"])));
}

#[test]
fn a_cycle_of_modules_is_found() {
    let file = |name: &str, text: &str| Source::parse(&format!("services/x/src/{name}"), text);
    let three = [
        file("a.rs", "use crate::b::B;"),
        file("b/inner.rs", "fn f() { crate::c::go(); }"),
        file("c.rs", "use crate::{a::A, Config};"),
    ];
    finds(&cycles(&three), "a -> b -> c -> a");
    let tests = "use crate::b::B;\n#[cfg(test)] mod tests { use crate::c::C; }";
    none(cycles(&[
        file("a.rs", tests),
        file("c.rs", "use crate::a::A;"),
    ]));
}
