//! Every service has the same rooms: `rpc/`, `core/`, `store/`, `loops/`.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;

use crate::source::{Source, finds, none, product};

/// `rpc/<method>.rs` holds `fn <method>`, for every method that a service implements and for no
/// others; everything else that handlers need lies in `rpc/support/`.
fn rpc_files(sources: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, methods) in methods(sources) {
        let file = |name: &str| format!("{path}/src/rpc/{name}.rs");
        for method in &methods {
            let found = sources.iter().find(|source| source.path == file(method));
            if !found.is_some_and(|source| source.has_function(method)) {
                findings.push(format!("{}: must hold `fn {method}`", file(method)));
            }
        }
    }
    let all = methods(sources);
    for source in sources {
        let Some(name) = source.within_crate().strip_prefix("rpc/") else {
            continue;
        };
        let is_method = all
            .get(source.crate_path())
            .is_some_and(|methods| methods.contains(source.stem()));
        // A method's helpers may fill a folder of its own name.
        let folder = name.split_once('/').map(|(folder, _)| folder);
        let belongs = folder.is_some_and(|folder| {
            folder == "support"
                || all
                    .get(source.crate_path())
                    .is_some_and(|methods| methods.contains(folder))
        });
        if name != "mod.rs" && !belongs && !is_method {
            findings.push(format!(
                "{}: is not named after an RPC; move it to rpc/support/",
                source.path
            ));
        }
    }
    findings
}

/// The methods of the generated service traits that each crate implements.
fn methods(sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources {
        for item in &source.syntax.items {
            let syn::Item::Impl(block) = item else {
                continue;
            };
            let Some((_, of_trait, _)) = &block.trait_ else {
                continue;
            };
            let name = of_trait.segments.last().map(|last| last.ident.to_string());
            if !name.is_some_and(|name| name.ends_with("Service")) {
                continue;
            }
            let own = all.entry(source.crate_path().to_owned()).or_default();
            for item in &block.items {
                if let syn::ImplItem::Fn(method) = item {
                    own.insert(method.sig.ident.to_string());
                }
            }
        }
    }
    all
}

/// `loops/` holds only background work that the mesh repeats.
fn loops(sources: &[Source]) -> Vec<String> {
    let is_loop =
        |source: &&Source| source.within_crate().starts_with("loops/") && source.stem() != "mod";
    sources
        .iter()
        .filter(is_loop)
        .filter(|source| !source.has_function("run_once"))
        .map(|source| format!("{}: has no `run_once`", source.path))
        .collect()
}

/// SQL is below `store/`: no statement is included or written elsewhere.
fn sql_outside_store(sources: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources {
        let within = source.within_crate();
        if within.starts_with("store/") || within == "store.rs" {
            continue;
        }
        let mut finder = Statements::default();
        finder.visit_file(&source.syntax);
        let found = finder.0.into_iter();
        findings.extend(found.map(|what| format!("{}: {what} outside store/", source.path)));
    }
    findings
}

#[derive(Default)]
struct Statements(Vec<String>);

impl<'ast> Visit<'ast> for Statements {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !crate::source::is_for_tests(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let tokens = call.tokens.to_string();
        if call.path.is_ident("include_str") && tokens.contains(".sql") {
            self.0.push(format!("include_str!({tokens})"));
        }
    }

    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        let value = text.value();
        let is_statement = [
            "SELECT ",
            "INSERT INTO ",
            "UPDATE ",
            "DELETE FROM ",
            "WITH ",
        ]
        .iter()
        .any(|verb| value.trim_start().starts_with(verb));
        if is_statement {
            self.0.push(format!("the statement {value:.40?}"));
        }
    }
}

#[test]
fn every_rpc_has_its_file() {
    none(rpc_files(&product(&["services"])));
}

#[test]
fn an_rpc_without_its_file_is_found() {
    let service = "impl SchedulerService for Scheduler { async fn get_run(&self) {} }";
    let service = || Source::parse("services/x/src/rpc/mod.rs", service);
    let file = |path: &str, text: &str| Source::parse(path, text);
    finds(&rpc_files(&[service()]), "services/x/src/rpc/get_run.rs");
    let wrong = file("services/x/src/rpc/get_run.rs", "fn read() {}");
    finds(&rpc_files(&[service(), wrong]), "must hold `fn get_run`");
    let right = || file("services/x/src/rpc/get_run.rs", "async fn get_run() {}");
    none(rpc_files(&[service(), right()]));
    let other = file("services/x/src/rpc/pages.rs", "fn pages() {}");
    finds(&rpc_files(&[service(), right(), other]), "rpc/support/");
    let support = file("services/x/src/rpc/support/pages.rs", "fn pages() {}");
    none(rpc_files(&[service(), right(), support]));
}

#[test]
fn loops_hold_what_is_repeated() {
    none(loops(&product(&["services"])));
}

#[test]
fn a_loop_without_run_once_is_found() {
    let path = "services/x/src/loops/sweep.rs";
    finds(&loops(&[Source::parse(path, "fn sweep() {}")]), path);
    none(loops(&[Source::parse(
        path,
        "impl Sweep { async fn run_once(&self) {} }",
    )]));
}

#[test]
fn sql_is_below_store() {
    none(sql_outside_store(&product(&["services"])));
}

#[test]
fn sql_outside_store_is_found() {
    let check = |text: &str| {
        let source = Source::parse("services/x/src/rpc/get_run.rs", text);
        assert_eq!(sql_outside_store(&[source]).len(), 1, "{text}");
    };
    check(r#"fn f() { query(include_str!("../store/run.sql")); }"#);
    check(r#"const ONE: &str = include_str!("store/one.sql");"#);
    check(r#"fn f() { query("SELECT 1 FROM scheduler.runs"); }"#);
    let within = r#"fn f() { query(include_str!("run.sql")); }"#;
    none(sql_outside_store(&[Source::parse(
        "services/x/src/store/runs.rs",
        within,
    )]));
}
