//! Shows a running mesh on a terminal or as JSON.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, Color, Table};
use serde_json::json;
use servo_local::{LocalMesh, ServiceStatus, Step, TENANT};
use servo_model::{Role, Service};

/// Prints a line per completed step, with its duration.
pub(crate) struct Progress {
    quiet: bool,
    last: Instant,
}

impl Progress {
    pub(crate) fn start(quiet: bool) -> Progress {
        if !quiet {
            println!(
                "Servo {} on this machine: temporary certificates, loopback only",
                env!("CARGO_PKG_VERSION")
            );
        }
        Progress {
            quiet,
            last: Instant::now(),
        }
    }

    pub(crate) fn done(&mut self, step: Step) {
        let took = self.last.elapsed().as_secs_f64();
        self.last = Instant::now();
        if !self.quiet {
            println!("  ✓ {:<44}{took:>6.1} s", description(step));
        }
    }
}

fn description(step: Step) -> &'static str {
    match step {
        Step::Postgres => "Postgres accepts connections",
        Step::Certificates => "certificates issued",
        Step::Migrations => "schema, roles and grants up to date",
        Step::Services => "nine services started",
        Step::Healthy => "all nine healthy over mutual TLS",
    }
}

/// One row per service.
pub(crate) fn table(status: &[ServiceStatus]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header([
        "service", "address", "identity", "health", "version", "started",
    ]);
    for one in status {
        let health = if one.healthy {
            "healthy".to_owned()
        } else {
            one.waiting_for.clone()
        };
        let colour = if one.healthy {
            Color::Green
        } else {
            Color::Red
        };
        let health = if coloured() {
            Cell::new(health).fg(colour)
        } else {
            Cell::new(health)
        };
        let text = [one.service.name(), &one.address, &one.identity];
        let mut row: Vec<Cell> = text.into_iter().map(Cell::new).collect();
        row.extend([health, Cell::new(&one.version), Cell::new(&one.start_time)]);
        table.add_row(row);
    }
    table
}

/// The addresses and files that a user needs next.
pub(crate) fn locations(mesh: &LocalMesh) -> String {
    let lines = [
        (
            "API",
            format!(
                "{} (gRPC, tenant `{TENANT}`)",
                mesh.address(Service::Gateway)
            ),
        ),
        ("CA", mesh.ca_path().display().to_string()),
        ("metrics", mesh.metrics_address(Service::Gateway)),
        (
            "logs",
            mesh.log_path(Service::Gateway).display().to_string(),
        ),
    ];
    let lines = lines.map(|(name, location)| format!("  {name:<9}{location}"));
    format!("{}\n{}", lines.join("\n"), api_keys(mesh))
}

/// One API key per role, so that a user can try each. The mesh is on this machine only, and the
/// keys are made for it.
fn api_keys(mesh: &LocalMesh) -> String {
    let roles = Role::ALL
        .iter()
        .map(|role| (role.name(), mesh.key_of_role(TENANT, *role)));
    let keys = roles.chain([("platform operator", mesh.platform_key())]);
    let lines: Vec<String> = keys
        .map(|(role, key)| format!("    {role:<19}{key}"))
        .collect();
    format!("  API keys by role\n{}", lines.join("\n"))
}

/// The status, addresses and files as JSON.
pub(crate) fn json(mesh: &LocalMesh, status: &[ServiceStatus]) -> Result<String> {
    let services: Vec<_> = status
        .iter()
        .map(|one| {
            json!({
                "service": one.service.name(),
                "address": one.address,
                "identity": one.identity,
                "healthy": one.healthy,
                "waiting_for": one.waiting_for,
                "version": one.version,
                "start_time": one.start_time,
                "metrics": mesh.metrics_address(one.service),
                "log": mesh.log_path(one.service),
            })
        })
        .collect();
    let document = json!({
        "services": services,
        "tenant": TENANT,
        "api_key_file": mesh.key_path(Role::Admin),
        "api_key_files": api_key_files(mesh),
        "ca_file": mesh.ca_path(),
    });
    Ok(serde_json::to_string_pretty(&document)?)
}

/// The file with the key of each role.
fn api_key_files(mesh: &LocalMesh) -> BTreeMap<&'static str, PathBuf> {
    let roles = Role::ALL
        .iter()
        .map(|role| (role.name(), mesh.key_path(*role)));
    roles
        .chain([("platform-operator", mesh.platform_key_path())])
        .collect()
}

fn coloured() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}
