//! API keys: who holds one, and what it opens.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use servo_model::{TenantId, WorkspaceId};
use sha2::{Digest, Sha256};

/// A key opens all workspaces of its tenant.
const ANY_WORKSPACE: &str = "*";

/// An API key as configured: the hash of a random secret, never the secret itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// Names the key in logs and audit records.
    pub id: String,
    pub tenant: String,
    /// The workspaces it opens; `*` stands for all of the tenant.
    pub workspaces: Vec<String>,
    #[serde(default)]
    pub roles: Vec<String>,
    /// SHA-256 of the key, in hex. A key is 256 random bits, so that nothing slower than a plain hash is needed.
    pub sha256: String,
}

/// Whom a key stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub id: String,
    pub tenant: String,
    pub workspaces: Vec<String>,
    pub roles: Vec<String>,
}

impl Principal {
    pub fn may_enter(&self, workspace: &str) -> bool {
        self.workspaces
            .iter()
            .any(|own| own == ANY_WORKSPACE || own == workspace)
    }
}

/// All keys, found by the hash of what a caller shows.
#[derive(Debug, Default)]
pub struct ApiKeys {
    by_hash: HashMap<[u8; 32], Principal>,
}

/// A fault of the key at `index` of the configured list.
#[derive(Debug, PartialEq, Eq)]
pub struct BadKey {
    pub index: usize,
    pub reason: String,
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gateway.api_keys[{}]: {}", self.index, self.reason)
    }
}

impl ApiKeys {
    /// Checks every key, and reports the first fault with its place.
    pub fn new(keys: &[ApiKey]) -> Result<ApiKeys, BadKey> {
        let mut by_hash = HashMap::new();
        for (index, key) in keys.iter().enumerate() {
            let bad = |reason| BadKey { index, reason };
            let (hash, principal) = read(key).map_err(bad)?;
            if let Some(other) = by_hash.insert(hash, principal) {
                return Err(bad(format!(
                    "the same sha256 as key `{}`: give every key its own secret",
                    other.id
                )));
            }
        }
        Ok(ApiKeys { by_hash })
    }

    /// Looking up by hash tells a guesser nothing about how close a guess was.
    pub fn find(&self, secret: &str) -> Option<&Principal> {
        self.by_hash.get(&<[u8; 32]>::from(Sha256::digest(secret)))
    }
}

fn read(key: &ApiKey) -> Result<([u8; 32], Principal), String> {
    key.tenant
        .parse::<TenantId>()
        .map_err(|error| format!("tenant: {error}"))?;
    if key.workspaces.is_empty() {
        return Err(format!(
            "workspaces is empty: name at least one, or \"{ANY_WORKSPACE}\" for all"
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
        tenant: key.tenant.clone(),
        workspaces: key.workspaces.clone(),
        roles: key.roles.clone(),
    };
    Ok((hash, principal))
}
