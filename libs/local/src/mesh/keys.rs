//! The API keys of a local mesh: one per role and tenant, and the platform operator's.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use servo_model::Role;
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use super::TENANT;
use crate::secret::load_or_create_secret;

const PREFIX: &str = "servo_";
const ALL_WORKSPACES: &str = "-";
/// The one workspace of the keys that are confined, for tests of other workspaces.
pub const CONFINED_WORKSPACE: &str = "elsewhere";

/// All keys of a mesh. The secrets are kept in files that only the owner can read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Keys {
    dir: PathBuf,
    by_tenant: BTreeMap<String, TenantKeys>,
    platform: String,
}

/// The keys of one tenant, each by the name of its role.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct TenantKeys {
    roles: BTreeMap<String, String>,
    confined: BTreeMap<String, String>,
}

impl Keys {
    /// Loads or creates the keys of [`TENANT`] and of further tenants. The further ones, which only
    /// tests have, also get keys that are confined to [`CONFINED_WORKSPACE`].
    pub(super) fn load_or_create(dir: &Path, tenants: &[String]) -> Result<Keys> {
        let dir = dir.join("keys");
        let mut by_tenant = BTreeMap::new();
        by_tenant.insert(TENANT.to_owned(), tenant_keys(&dir, TENANT, false)?);
        for tenant in tenants {
            by_tenant.insert(tenant.clone(), tenant_keys(&dir, tenant, true)?);
        }
        let platform = load_or_create_secret(&dir.join("platform-operator"), PREFIX)?;
        Ok(Keys {
            dir,
            by_tenant,
            platform,
        })
    }

    pub(super) fn of_role(&self, tenant: &str, role: Role) -> &str {
        &self.by_tenant[tenant].roles[role.name()]
    }

    pub(super) fn confined(&self, tenant: &str, role: Role) -> &str {
        &self.by_tenant[tenant].confined[role.name()]
    }

    pub(super) fn platform(&self) -> &str {
        &self.platform
    }

    pub(super) fn tenants(&self) -> impl Iterator<Item = &str> {
        self.by_tenant.keys().map(String::as_str)
    }

    /// The file of a key of [`TENANT`].
    pub(super) fn path(&self, role: Role) -> PathBuf {
        file(&self.dir, TENANT, role.name())
    }

    pub(super) fn platform_path(&self) -> PathBuf {
        self.dir.join("platform-operator")
    }

    /// The gateway's setting `api_keys`.
    pub(super) fn setting(&self) -> Value {
        let platform = entry("platform", &self.platform, [("platform", true.into())]);
        let mut entries = vec![platform];
        for (tenant, keys) in &self.by_tenant {
            let of = |(workspace, (role, secret)): (&str, (&String, &String))| {
                let id = match workspace {
                    ALL_WORKSPACES => format!("{tenant}.{role}"),
                    confined => format!("{tenant}.{confined}.{role}"),
                };
                let own = [
                    ("tenant", tenant.as_str().into()),
                    ("workspaces", Value::Array(vec![workspace.into()])),
                    ("roles", Value::Array(vec![role.as_str().into()])),
                ];
                entry(&id, secret, own)
            };
            let roles = keys.roles.iter().map(|key| (ALL_WORKSPACES, key));
            let confined = keys.confined.iter().map(|key| (CONFINED_WORKSPACE, key));
            entries.extend(roles.chain(confined).map(of));
        }
        Value::Array(entries)
    }
}

fn tenant_keys(dir: &Path, tenant: &str, with_confined: bool) -> Result<TenantKeys> {
    fs::create_dir_all(dir.join(tenant)).with_context(|| format!("create {}", dir.display()))?;
    let load = |name: String| load_or_create_secret(&file(dir, tenant, &name), PREFIX);
    let mut keys = TenantKeys::default();
    for role in Role::ALL {
        let name = role.name().to_owned();
        keys.roles.insert(name.clone(), load(name.clone())?);
        if with_confined {
            let confined = load(format!("{CONFINED_WORKSPACE}-{name}"))?;
            keys.confined.insert(name, confined);
        }
    }
    Ok(keys)
}

fn file(dir: &Path, tenant: &str, name: &str) -> PathBuf {
    dir.join(tenant).join(name)
}

fn entry<const N: usize>(id: &str, secret: &str, own: [(&str, Value); N]) -> Value {
    let mut entry = Table::new();
    entry.insert("id".into(), id.into());
    entry.insert(
        "sha256".into(),
        HEXLOWER.encode(&Sha256::digest(secret)).into(),
    );
    entry.extend(own.map(|(name, value)| (name.to_owned(), value)));
    Value::Table(entry)
}
