//! The part of a mesh that its clients need.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use servo_model::Role;
use servo_model::service::{HTTP_PORT_OFFSET, METRICS_PORT_OFFSET, TRUST_DOMAIN};

use super::Instance;
use super::keys::Keys;
use crate::ca::{Ca, Issue};
use crate::secret::write_private;

const INFO_FILE: &str = "mesh.json";

/// Addresses, credentials and files of a running mesh.
///
/// [`crate::LocalMesh`] stores it in its directory, so that other processes of the same user can be
/// clients of the mesh.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MeshInfo {
    pub(super) dir: PathBuf,
    /// Whether all services run in one process and share one log.
    pub(super) is_one_process: bool,
    pub(super) ports: BTreeMap<Instance, u16>,
    pub(super) keys: Keys,
    pub(super) admin_url: String,
    pub(super) service_url: String,
    pub(super) role_password: String,
}

impl MeshInfo {
    /// Reads the information that a running mesh stored in its directory.
    pub fn attach(dir: &Path) -> Result<MeshInfo> {
        let path = dir.join(INFO_FILE);
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("parse {}", path.display()))
    }

    /// Stores it in a file that only the owner can read, because it contains passwords.
    pub(super) fn store(&self) -> Result<()> {
        let path = self.dir.join(INFO_FILE);
        let text = serde_json::to_string(self)?;
        write_private(&path, &text).with_context(|| format!("write {}", path.display()))
    }

    /// The directory of the mesh.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// `https://127.0.0.1:7400`
    pub fn address(&self, instance: impl Into<Instance>) -> String {
        format!("https://127.0.0.1:{}", self.ports[&instance.into()])
    }

    pub fn metrics_address(&self, instance: impl Into<Instance>) -> String {
        format!(
            "http://127.0.0.1:{}/metrics",
            self.ports[&instance.into()] + METRICS_PORT_OFFSET
        )
    }

    /// The address at which an instance of the callback accepts presigned calls over HTTPS.
    pub fn http_address(&self, instance: impl Into<Instance>) -> String {
        format!(
            "https://localhost:{}",
            self.ports[&instance.into()] + HTTP_PORT_OFFSET
        )
    }

    /// All instances that the mesh was started with.
    pub fn instances(&self) -> Vec<Instance> {
        self.ports.keys().copied().collect()
    }

    /// The administrator's key of a tenant that the mesh was started with.
    pub fn api_key_of(&self, tenant: &str) -> &str {
        self.key_of_role(tenant, Role::Admin)
    }

    /// A key with one role in every workspace of a tenant.
    pub fn key_of_role(&self, tenant: &str, role: Role) -> &str {
        self.keys.of_role(tenant, role)
    }

    /// A key with one role in the workspace [`super::CONFINED_WORKSPACE`] alone, of a tenant other
    /// than [`super::TENANT`].
    pub fn confined_key(&self, tenant: &str, role: Role) -> &str {
        self.keys.confined(tenant, role)
    }

    /// The platform operator's key.
    pub fn platform_key(&self) -> &str {
        self.keys.platform()
    }

    /// The tenants that the mesh was started with.
    pub fn tenants(&self) -> impl Iterator<Item = &str> {
        self.keys.tenants()
    }

    /// The file with the key of a role in the tenant [`super::TENANT`].
    pub fn key_path(&self, role: Role) -> PathBuf {
        self.keys.path(role)
    }

    /// The file with the platform operator's key.
    pub fn platform_key_path(&self) -> PathBuf {
        self.keys.platform_path()
    }

    /// The CA certificate for clients of the gateway.
    pub fn ca_path(&self) -> PathBuf {
        self.dir.join("tls").join("ca.crt")
    }

    pub fn log_path(&self, instance: impl Into<Instance>) -> PathBuf {
        let name = if self.is_one_process {
            "standalone".to_owned()
        } else {
            instance.into().to_string()
        };
        self.dir.join("logs").join(format!("{name}.log"))
    }

    /// The configuration file of an instance.
    pub fn config_path(&self, instance: impl Into<Instance>) -> PathBuf {
        let instance = instance.into();
        self.dir.join("config").join(format!("{instance}.toml"))
    }

    /// The files of a certificate and its key with which a worker of `tenant` can call the
    /// dispatcher and the callback directly.
    pub fn worker_certificate(&self, tenant: &str) -> Result<(PathBuf, PathBuf)> {
        let (dir, name) = (self.dir.join("tls"), format!("worker-{tenant}"));
        let paths = (
            dir.join(format!("{name}.crt")),
            dir.join(format!("{name}.key")),
        );
        if !paths.0.exists() {
            let identity = Issue::identity(&format!("{TRUST_DOMAIN}worker/{tenant}"));
            Ca::load_or_create(&dir)?
                .issue(&identity)?
                .write(&dir, &name)?;
        }
        Ok(paths)
    }

    /// The superuser's URL of the services' database, for tests that inspect tables.
    pub fn admin_url(&self) -> &str {
        &self.admin_url
    }

    /// The URL and the password that services connect with, each as its own role.
    pub fn role_access(&self) -> (&str, &str) {
        (&self.service_url, &self.role_password)
    }
}
