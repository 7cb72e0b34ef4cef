//! The configuration file of each service.

use std::fs;

use anyhow::{Context, Result};
use servo_model::Service;
use servo_model::service::METRICS_PORT_OFFSET;
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use super::{LocalMesh, TENANT};
use crate::secret::write_private;

/// Writes `config/<service>.toml`, readable by its owner only: it holds the database password.
pub(super) fn write(mesh: &LocalMesh, service: Service) -> Result<()> {
    let path = mesh.config_path(service);
    fs::create_dir_all(mesh.dir.join("config"))?;
    let text = toml::to_string(&config(mesh, service))?;
    write_private(&path, &text).with_context(|| format!("write {}", path.display()))
}

fn config(mesh: &LocalMesh, service: Service) -> Table {
    let mut config = Table::new();
    config.insert("server".into(), server(mesh, service));
    config.insert("tls".into(), tls(mesh, service));
    config.insert("peers".into(), peers(mesh));
    config.insert("telemetry".into(), table([("format", "json".into())]));
    if service.has_store() {
        let (url, password) = mesh.database.for_services();
        config.insert("database".into(), table([("url", url.into()), ("password", password.into())]));
    }
    if let Some(own) = own_section(mesh, service) {
        config.insert(service.name().into(), own);
    }
    config
}

/// The section that only this service has.
fn own_section(mesh: &LocalMesh, service: Service) -> Option<Value> {
    match service {
        Service::Gateway => Some(gateway(mesh)),
        Service::Scheduler => Some(table([("run_id_secret", mesh.run_id_secret.as_str().into())])),
        Service::Callback => Some(table([("signing_keys", signing_keys(mesh))])),
        Service::Dispatcher => Some(table([
            ("signing_keys", signing_keys(mesh)),
            ("push", table([("targets", Value::Array(vec!["http://127.0.0.1".into()]))])),
            ("output_base", format!("file://{}", mesh.dir.join("data").display()).into()),
        ])),
        Service::Planner => {
            Some(table([("artifacts", mesh.dir.join("artifacts").display().to_string().into())]))
        }
        _ => None,
    }
}

fn signing_keys(mesh: &LocalMesh) -> Value {
    Value::Array(vec![table([("kid", "local".into()), ("secret", mesh.signing_secret.as_str().into())])])
}

fn server(mesh: &LocalMesh, service: Service) -> Value {
    let port = mesh.ports[&service];
    table([
        ("listen", format!("127.0.0.1:{port}").into()),
        ("metrics_listen", format!("127.0.0.1:{}", port + METRICS_PORT_OFFSET).into()),
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

fn peers(mesh: &LocalMesh) -> Value {
    Value::Table(Service::ALL.iter().map(|peer| (peer.name().into(), mesh.address(*peer).into())).collect())
}

fn gateway(mesh: &LocalMesh) -> Value {
    let key = table([
        ("id", "local".into()),
        ("tenant", TENANT.into()),
        ("workspaces", Value::Array(vec!["*".into()])),
        ("roles", Value::Array(vec!["admin".into()])),
        ("sha256", hex::encode(Sha256::digest(&mesh.api_key)).into()),
    ]);
    table([("api_keys", Value::Array(vec![key]))])
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Table(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}
