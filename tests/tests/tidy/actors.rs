//! Every supervised actor is in the test that lets it panic.

use std::collections::BTreeSet;
use std::fs;

use servo_tests::root;
use syn::visit::Visit;

use crate::source::{Source, finds, is_for_tests, none, product};

const PANIC_TEST: &str = "tests/tests/e2e/actors.rs";
/// Actors that do not run in a mesh at rest.
const NOT_AT_REST: [&str; 1] = ["rebuild leases"];

fn untested(sources: &[Source], test: &str) -> Vec<String> {
    let mut names = ActorNames::default();
    sources
        .iter()
        .for_each(|source| names.visit_file(&source.syntax));
    let is_tested =
        |name: &String| NOT_AT_REST.contains(&name.as_str()) || test.contains(&format!("{name:?}"));
    let missing = names.0.into_iter().filter(|name| !is_tested(name));
    missing
        .map(|name| format!("the actor {name:?} is missing in {PANIC_TEST}"))
        .collect()
}

/// The names given to `spawn` and to `Batcher::start`.
#[derive(Default)]
struct ActorNames(BTreeSet<String>);

impl ActorNames {
    fn add(
        &mut self,
        function: &str,
        arguments: &syn::punctuated::Punctuated<syn::Expr, syn::Token![,]>,
    ) {
        let starts = ["spawn", "start", "start_concurrent"].contains(&function);
        if let (true, Some(syn::Expr::Lit(literal))) = (starts, arguments.first())
            && let syn::Lit::Str(name) = &literal.lit
        {
            self.0.insert(name.value());
        }
    }
}

impl<'ast> Visit<'ast> for ActorNames {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(path) = &*call.func
            && let Some(last) = path.path.segments.last()
        {
            self.add(&last.ident.to_string(), &call.args);
        }
        syn::visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.add(&call.method.to_string(), &call.args);
        syn::visit::visit_expr_method_call(self, call);
    }
}

#[test]
fn every_actor_is_tested_to_panic() {
    let test = fs::read_to_string(root().join(PANIC_TEST)).unwrap();
    let mut sources = product(&["libs", "services"]);
    // It starts processes.
    sources.retain(|source| source.crate_path() != "libs/local");
    none(untested(&sources, &test));
}

#[test]
fn an_untested_actor_is_found() {
    let check = |text: &str| {
        let source = Source::parse("services/x/src/lib.rs", text);
        finds(&untested(&[source], r#""known""#), "\"new\"");
    };
    check(r#"fn f() { servo_actor::spawn("new", run()); }"#);
    check(r#"fn f(mesh: &Mesh) { mesh.spawn("new", run()); }"#);
    check(r#"fn f() { Batcher::start("new", limits, handler) }"#);
    let known = r#"fn f() { servo_actor::spawn("known", run()); }"#;
    none(untested(
        &[Source::parse("services/x/src/lib.rs", known)],
        r#""known""#,
    ));
}
