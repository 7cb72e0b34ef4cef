//! API keys: whom they identify and what they give access to.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use servo_model::{TenantId, WorkspaceId};
use sha2::{Digest, Sha256};

/// Stands for all workspaces of the tenant.
const ANY_WORKSPACE: &str = "*";

/// An API key as configured: the hash of a random secret, never the secret itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// Identifies the key in logs and audit records.
    pub id: String,
    pub tenant: String,
    /// The workspaces that it gives access to; `*` stands for all of the tenant.
    pub workspaces: Vec<String>,
    #[serde(default)]
    pub roles: Vec<String>,
    /// SHA-256 of the key in hex. A key has 256 random bits, so a slow hash is not needed.
    pub sha256: String,
}

/// Whom a key identifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub id: String,
    pub tenant: TenantId,
    pub workspaces: Vec<String>,
    pub roles: Vec<String>,
}

impl Principal {
    pub fn may_access(&self, workspace: &str) -> bool {
        self.workspaces
            .iter()
            .any(|own| own == ANY_WORKSPACE || own == workspace)
    }
}

/// All keys by the hash of their secret.
#[derive(Debug, Default)]
pub struct ApiKeys {
    by_hash: HashMap<[u8; 32], Principal>,
}

/// An error in the key at `index` of the configured list.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidKey {
    pub index: usize,
    pub reason: String,
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gateway.api_keys[{}]: {}", self.index, self.reason)
    }
}

impl ApiKeys {
    /// Checks every key and returns the first error with its index.
    pub fn new(keys: &[ApiKey]) -> Result<ApiKeys, InvalidKey> {
        let mut by_hash = HashMap::new();
        for (index, key) in keys.iter().enumerate() {
            let invalid = |reason| InvalidKey { index, reason };
            let (hash, principal) = parse(key).map_err(invalid)?;
            if let Some(other) = by_hash.insert(hash, principal) {
                return Err(invalid(format!(
                    "sha256 is the same as that of key `{}`: use a different secret for every key",
                    other.id
                )));
            }
        }
        Ok(ApiKeys { by_hash })
    }

    /// Finds a key by its hash, so that the time of the lookup reveals nothing about the secret.
    pub fn find(&self, secret: &str) -> Option<&Principal> {
        self.by_hash.get(&<[u8; 32]>::from(Sha256::digest(secret)))
    }
}

fn parse(key: &ApiKey) -> Result<([u8; 32], Principal), String> {
    let tenant: TenantId = key
        .tenant
        .parse()
        .map_err(|error| format!("tenant: {error}"))?;
    if key.workspaces.is_empty() {
        return Err(format!(
            "workspaces is empty: list at least one, or \"{ANY_WORKSPACE}\" for all"
        ));
    }
    for workspace in key.workspaces.iter().filter(|name| *name != ANY_WORKSPACE) {
        workspace
            .parse::<WorkspaceId>()
            .map_err(|error| format!("workspaces: {error}"))?;
    }
    let mut hash = [0; 32];
    hex::decode_to_slice(&key.sha256, &mut hash)
        .map_err(|_| "sha256 must be the 64 hex digits of the key's SHA-256".to_owned())?;
    let principal = Principal {
        id: key.id.clone(),
        tenant,
        workspaces: key.workspaces.clone(),
        roles: key.roles.clone(),
    };
    Ok((hash, principal))
}
