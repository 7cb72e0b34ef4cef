//! `core/` and `libs/model` decide; they do not wait, look at clocks, roll dice or talk to anybody.

use syn::visit::Visit;

use crate::source::{Source, finds, is_for_tests, none, product};

/// Crates that pure code does not name.
const CRATES: [&str; 6] = ["hyper", "rand", "servo_store", "sqlx", "tokio", "tonic"];
/// Functions that read a clock or a source of chance, by their last two segments.
const FUNCTIONS: [&str; 9] = [
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "Ulid::generate",
    "Ulid::new",
    "Uuid::new_v4",
    "Uuid::now_v7",
    "Zoned::now",
    "servo_mesh::now",
];
/// The column types of the model's values, behind a feature.
const COLUMN_TYPES: &str = "libs/model/src/postgres.rs";

fn impure(sources: &[Source]) -> Vec<String> {
    let is_pure = |source: &&Source| {
        source.path.contains("/src/core/")
            || source.path.starts_with("libs/model/src/") && source.path != COLUMN_TYPES
    };
    let mut findings = Vec::new();
    for source in sources.iter().filter(is_pure) {
        let mut finder = Finder::default();
        finder.visit_file(&source.syntax);
        let found = finder.0.into_iter();
        findings.extend(found.map(|what| format!("{}: {what} in a pure module", source.path)));
    }
    findings
}

#[derive(Default)]
struct Finder(Vec<String>);

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if signature.asyncness.is_some() {
            self.0.push(format!("`async fn {}`", signature.ident));
        }
        syn::visit::visit_signature(self, signature);
    }

    fn visit_expr_async(&mut self, block: &'ast syn::ExprAsync) {
        self.0.push("an `async` block".to_owned());
        syn::visit::visit_expr_async(self, block);
    }

    fn visit_expr_await(&mut self, expression: &'ast syn::ExprAwait) {
        self.0.push("`.await`".to_owned());
        syn::visit::visit_expr_await(self, expression);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        if segments.len() > 1 && CRATES.contains(&segments[0].as_str()) {
            self.0.push(format!("`{}`", segments.join("::")));
        }
        let last_two = segments[segments.len().saturating_sub(2)..].join("::");
        if FUNCTIONS.contains(&last_two.as_str()) {
            self.0.push(format!("`{last_two}`"));
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_use_tree(&mut self, tree: &'ast syn::UseTree) {
        if let syn::UseTree::Path(path) = tree
            && CRATES.contains(&path.ident.to_string().as_str())
        {
            self.0.push(format!("`use {}`", path.ident));
        }
        syn::visit::visit_use_tree(self, tree);
    }
}

#[test]
fn cores_are_pure() {
    none(impure(&product(&["libs", "services"])));
}

#[test]
fn an_impure_core_is_found() {
    let check = |text: &str, words: &str| {
        let source = Source::parse("services/x/src/core/y.rs", text);
        finds(&impure(&[source]), words);
    };
    check(
        "fn f() { let t = jiff::Timestamp::now(); }",
        "Timestamp::now",
    );
    check(
        "fn f() { let t = std::time::Instant::now(); }",
        "Instant::now",
    );
    check("fn f() { g(servo_mesh::now()) }", "servo_mesh::now");
    check("async fn f() {}", "async fn f");
    check("fn f() { g(async { 1 }) }", "async");
    check("use tokio::sync::mpsc;", "use tokio");
    check("fn f(tx: sqlx::PgPool) {}", "sqlx::PgPool");
    check("fn f() -> u8 { rand::random() }", "rand::random");
    let tests = "#[cfg(test)] mod tests { async fn f() {} }";
    none(impure(&[Source::parse("services/x/src/core/y.rs", tests)]));
}
