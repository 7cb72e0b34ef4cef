//! The files that rules look at, and what a rule finds in them.

use std::fs;
use std::path::Path;

use servo_tests::{files, root};
use syn::visit::Visit;

/// A Rust file of the repository, or one that a test made up.
pub(crate) struct Source {
    /// Relative to the root, with `/` between its parts.
    pub(crate) path: String,
    pub(crate) syntax: syn::File,
}

impl Source {
    pub(crate) fn parse(path: &str, text: &str) -> Source {
        let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        Source {
            path: path.to_owned(),
            syntax,
        }
    }

    /// The name of the file without its ending.
    pub(crate) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".rs").unwrap_or(name)
    }

    /// `services/scheduler` of `services/scheduler/src/rpc/get_run.rs`.
    pub(crate) fn crate_path(&self) -> &str {
        self.path.split("/src/").next().unwrap_or_default()
    }

    /// `rpc/get_run.rs` of `services/scheduler/src/rpc/get_run.rs`.
    pub(crate) fn within_crate(&self) -> &str {
        self.path.split_once("/src/").map_or("", |(_, rest)| rest)
    }

    pub(crate) fn has_function(&self, name: &str) -> bool {
        let mut names = FunctionNames::default();
        names.visit_file(&self.syntax);
        names.0.iter().any(|known| known == name)
    }
}

#[derive(Default)]
struct FunctionNames(Vec<String>);

impl<'ast> Visit<'ast> for FunctionNames {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.0.push(item.sig.ident.to_string());
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.0.push(item.sig.ident.to_string());
        syn::visit::visit_impl_item_fn(self, item);
    }
}

/// The Rust files below these folders of the root that are compiled into products: neither the
/// tests next to the code nor the `tests` folders.
pub(crate) fn product(folders: &[&str]) -> Vec<Source> {
    let all: Vec<Source> = folders
        .iter()
        .flat_map(|folder| files(&root().join(folder), ".rs"))
        .filter(|path| !is_test(path))
        .map(|path| read(&path))
        .collect();
    assert!(!all.is_empty(), "no files below {folders:?}");
    all
}

pub(crate) fn read(path: &Path) -> Source {
    Source::parse(&relative(path), &fs::read_to_string(path).unwrap())
}

pub(crate) fn relative(path: &Path) -> String {
    let below = path.strip_prefix(root()).unwrap();
    below.to_str().unwrap().replace('\\', "/")
}

fn is_test(path: &Path) -> bool {
    let path = relative(path);
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.contains("/examples/")
}

/// Whether an item is compiled for tests only.
pub(crate) fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && matches!(&attribute.meta, syn::Meta::List(list) if list.tokens.to_string() == "test")
    })
}

/// Fails with all findings at once.
#[track_caller]
pub(crate) fn none(findings: Vec<String>) {
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}

/// Fails unless there is a finding that contains `words`.
#[track_caller]
pub(crate) fn finds(findings: &[String], words: &str) {
    assert!(
        findings.iter().any(|finding| finding.contains(words)),
        "no finding contains {words:?}: {findings:?}"
    );
}
