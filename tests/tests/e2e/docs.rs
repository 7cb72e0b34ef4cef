//! Checks the documents: commands, links and the example of a configuration.

use std::fs;
use std::process::Command;

use servo_local::{Ca, Issue};
use servo_mesh::{Settings, Sources};
use servo_model::Service;
use servo_tests::root;
use tempfile::TempDir;

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The commands in the README.
fn commands_of_the_readme() -> Vec<String> {
    let readme = text("README.md");
    readme
        .lines()
        .filter_map(|line| line.strip_prefix("$ "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_command_of_the_readme_is_tested() {
    // CI runs `make demo`, `make test` and `make lint`; other tests run the body of `make dev`.
    let ci = text(".ci/run");
    let commands = commands_of_the_readme();
    assert!(commands.len() >= 5, "{commands:?}");
    for command in commands {
        match command.as_str() {
            "make help" => help_names_every_target(),
            "make dev" => assert!(text("Makefile").contains("servo-standalone dev")),
            other => assert!(
                ci.lines()
                    .any(|line| line == other || line.ends_with(&format!(" {other}"))),
                "CI does not run `{other}`"
            ),
        }
    }
}

fn help_names_every_target() {
    let output = Command::new("make")
        .arg("help")
        .current_dir(root())
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    for target in [
        "demo", "dev", "test", "lint", "fmt", "proto", "wheel", "sim", "chaos", "audit", "compare",
        "bench", "clean",
    ] {
        assert!(
            shown.contains(&format!("make {target}")),
            "{target} is missing in:\n{shown}"
        );
    }
}

#[test]
fn every_link_has_a_target() {
    for page in ["README.md", "docs/architecture.md", "docs/configuration.md"] {
        let folder = root().join(page).parent().unwrap().to_path_buf();
        for link in text(page)
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            assert!(
                folder.join(link).exists(),
                "{page} links to {link}, which does not exist"
            );
        }
    }
}

#[test]
fn the_example_configuration_is_valid() {
    let page = text("docs/configuration.md");
    let example = page
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let dir = TempDir::new().unwrap();
    let ca = Ca::load_or_create(dir.path()).unwrap();
    ca.issue(&Issue::identity(&Service::Gateway.spiffe_id()))
        .unwrap()
        .write(dir.path(), "gateway")
        .unwrap();
    let file = dir.path().join("gateway.toml");
    let here = dir.path().display().to_string();
    let example = ["gateway.crt", "gateway.key", "ca.crt"]
        .iter()
        .fold(example.to_owned(), |text, name| {
            text.replace(&format!("\"{name}\""), &format!("\"{here}/{name}\""))
        });
    fs::write(&file, example).unwrap();
    let settings =
        Settings::<servo_gateway::Config>::read(Service::Gateway, &Sources::new().file(&file));
    let settings = settings.unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(settings.own.gateway.api_keys[0].tenant, "acme");
}
