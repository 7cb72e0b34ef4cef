//! The configuration file of each service.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use servo_model::Service;
use servo_model::service::{HTTP_PORT_OFFSET, METRICS_PORT_OFFSET};
use toml::{Table, Value};

use super::{Instance, LocalMesh};
use crate::secret::write_private;

/// The maximum number of database connections of one instance, by the services' defaults.
const CONNECTIONS_PER_INSTANCE: usize = 8;
/// Reserved for migrations, tests and manual access.
const CONNECTIONS_SPARE: usize = 16;

/// Writes `config/<instance>.toml`, readable by its owner only, because it contains the database
/// password.
pub(super) fn write(mesh: &LocalMesh, instance: Instance) -> Result<()> {
    let path = mesh.config_path(instance);
    fs::create_dir_all(mesh.dir.join("config"))?;
    let text = toml::to_string(&config(mesh, instance))?;
    write_private(&path, &text).with_context(|| format!("write {}", path.display()))
}

fn config(mesh: &LocalMesh, instance: Instance) -> Table {
    let service = instance.service;
    let mut config = Table::new();
    config.insert("server".into(), server(mesh, instance));
    config.insert("tls".into(), tls(mesh, service));
    config.insert("peers".into(), peers(mesh, instance));
    config.insert("telemetry".into(), telemetry(mesh));
    if service.has_store() {
        config.insert("database".into(), database(mesh));
        let key = Value::String(mesh.page_token_secret.clone());
        let keys = table([("keys", Value::Array(vec![key]))]);
        config.insert("paging".into(), keys);
    }
    if matches!(service, Service::Dispatcher | Service::Callback) {
        config.insert("attempts".into(), attempts(mesh));
    }
    if let Some(mut own) = own_section(mesh, instance) {
        own.extend(timings(mesh, service));
        config.insert(service.name().into(), Value::Table(own));
    }
    config
}

fn telemetry(mesh: &LocalMesh) -> Value {
    let mut telemetry = entries([("format", "json".into())]);
    let endpoint = mesh.otlp_endpoint.as_deref();
    telemetry.extend(endpoint.map(|endpoint| ("otlp_endpoint".to_owned(), endpoint.into())));
    Value::Table(telemetry)
}

fn database(mesh: &LocalMesh) -> Value {
    let (url, password) = mesh.database.for_services();
    let stores = mesh
        .ports
        .keys()
        .filter(|instance| instance.service.has_store())
        .count();
    let fleet =
        i64::try_from(stores * CONNECTIONS_PER_INSTANCE + CONNECTIONS_SPARE).unwrap_or(i64::MAX);
    table([
        ("url", url.into()),
        ("password", password.into()),
        ("fleet_connections", fleet.into()),
    ])
}

/// The section that only this service has.
fn own_section(mesh: &LocalMesh, instance: Instance) -> Option<Table> {
    match instance.service {
        Service::Gateway => Some(entries([("api_keys", mesh.keys.setting())])),
        Service::Scheduler => Some(entries([(
            "run_id_secret",
            mesh.run_id_secret.as_str().into(),
        )])),
        Service::Callback => Some(entries([(
            "http_listen",
            format!("127.0.0.1:{}", mesh.ports[&instance] + HTTP_PORT_OFFSET).into(),
        )])),
        Service::Dispatcher => Some(entries([
            (
                "push",
                table([("targets", Value::Array(vec!["http://127.0.0.1".into()]))]),
            ),
            ("shared_workers", mesh.shared_workers.into()),
        ])),
        Service::Planner => Some(entries([(
            "artifacts",
            mesh.dir.join("artifacts").display().to_string().into(),
        )])),
        _ => None,
    }
}

/// The section on which the dispatcher and the callback must agree.
fn attempts(mesh: &LocalMesh) -> Value {
    let mut attempts = entries([
        ("signing_keys", signing_keys(mesh)),
        ("output_base", output_base(mesh)),
    ]);
    if let Some(timings) = mesh.timings {
        attempts.insert("heartbeat_interval".into(), milliseconds(timings.heartbeat));
        if let Some(grace) = timings.signature_grace {
            attempts.insert("signature_grace".into(), milliseconds(grace));
        }
    }
    Value::Table(attempts)
}

fn milliseconds(time: Duration) -> Value {
    Value::String(format!("{}ms", time.as_millis()))
}

/// The lifetime of leases, if the mesh overrides it.
fn timings(mesh: &LocalMesh, service: Service) -> Table {
    match mesh.timings {
        Some(timings) if matches!(service, Service::Scheduler | Service::Dispatcher) => {
            entries([("lease_ttl", milliseconds(timings.lease))])
        }
        _ => Table::new(),
    }
}

fn output_base(mesh: &LocalMesh) -> Value {
    format!("file://{}", mesh.dir.join("data").display()).into()
}

fn signing_keys(mesh: &LocalMesh) -> Value {
    Value::Array(vec![table([
        ("kid", "local".into()),
        ("secret", mesh.signing_secret.as_str().into()),
    ])])
}

fn server(mesh: &LocalMesh, instance: Instance) -> Value {
    let port = mesh.ports[&instance];
    table([
        ("listen", format!("127.0.0.1:{port}").into()),
        (
            "metrics_listen",
            format!("127.0.0.1:{}", port + METRICS_PORT_OFFSET).into(),
        ),
    ])
}

fn tls(mesh: &LocalMesh, service: Service) -> Value {
    let file = |name: String| Value::String(mesh.dir.join("tls").join(name).display().to_string());
    table([
        ("certificate", file(format!("{service}.crt"))),
        ("key", file(format!("{service}.key"))),
        ("ca", file("ca.crt".to_owned())),
    ])
}

/// One address per service: services with shard holders find the right instance through the lease
/// rows.
fn peers(mesh: &LocalMesh, instance: Instance) -> Value {
    let address = |service: Service| {
        let count = mesh
            .ports
            .keys()
            .filter(|other| other.service == service)
            .count();
        mesh.address((service, instance.number % count))
    };
    Value::Table(
        Service::ALL
            .iter()
            .map(|peer| (peer.name().into(), address(*peer).into()))
            .collect(),
    )
}

fn table<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    Value::Table(entries(pairs))
}

fn entries<const N: usize>(pairs: [(&str, Value); N]) -> Table {
    pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}
