//! API keys: whom they identify and what they allow.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use servo_model::{Grants, Role, TenantId, TenantScope, WorkspaceScope};
use sha2::{Digest, Sha256};

/// Stands for all workspaces of the tenant.
const ALL_WORKSPACES: &str = "-";
/// Workspaces that one key may name, because they are sent with every call of the tenant as a whole.
const WORKSPACES_MAX: usize = 64;
const ID_BYTES_MAX: usize = 128;

/// An API key as configured: the hash of a random secret, never the secret itself. Either a key of
/// a tenant, with its workspaces and roles, or one of the platform operator.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// Identifies the key in logs and audit records.
    pub id: String,
    #[serde(default)]
    pub tenant: String,
    /// The workspaces in which the roles hold; `-` stands for all of the tenant.
    #[serde(default)]
    pub workspaces: Vec<String>,
    /// Built-in roles.
    #[serde(default)]
    pub roles: Vec<String>,
    /// A key of the platform operator, which has neither tenant nor roles.
    #[serde(default)]
    pub platform: bool,
    /// SHA-256 of the key in hex. A key has 256 random bits, so a slow hash is not needed.
    pub sha256: String,
}

/// Whom a key identifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub id: String,
    pub kind: PrincipalKind,
}

/// The tenant, workspaces and roles of a principal, or that it is the platform operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrincipalKind {
    /// Belongs to one tenant and holds the same roles in all its workspaces.
    Member {
        tenant: TenantId,
        workspaces: WorkspaceScope,
        roles: Vec<Role>,
    },
    /// Runs the platform: holds every permission in every tenant.
    PlatformOperator,
}

impl Principal {
    /// The permissions that the principal holds in a tenant: none in the tenant of others.
    /// Without a tenant (`None`) those for methods that concern no tenant.
    pub fn grants(&self, tenant: Option<&TenantScope>) -> Grants {
        match &self.kind {
            PrincipalKind::PlatformOperator => Grants::platform(),
            PrincipalKind::Member {
                tenant: own, roles, ..
            } => {
                let elsewhere = tenant.is_some_and(|named| named.as_str() != own.as_str());
                if elsewhere {
                    Grants::default()
                } else {
                    Grants::of_roles(roles)
                }
            }
        }
    }

    /// The tenant in which the principal acts when a call names `tenant`.
    pub fn tenant(&self, named: Option<TenantScope>) -> Option<TenantScope> {
        match &self.kind {
            PrincipalKind::PlatformOperator => named,
            PrincipalKind::Member { tenant, .. } => Some(tenant.into()),
        }
    }

    /// The workspaces in which the grants hold.
    pub fn workspaces(&self) -> WorkspaceScope {
        match &self.kind {
            PrincipalKind::PlatformOperator => WorkspaceScope::All,
            PrincipalKind::Member { workspaces, .. } => workspaces.clone(),
        }
    }
}

/// All keys by the hash of their secret.
#[derive(Debug, Default)]
pub struct ApiKeys {
    by_hash: HashMap<[u8; 32], Arc<Principal>>,
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
            if let Some(other) = by_hash.insert(hash, Arc::new(principal)) {
                return Err(invalid(format!(
                    "sha256 is the same as that of key `{}`: use a different secret for every key",
                    other.id
                )));
            }
        }
        Ok(ApiKeys { by_hash })
    }

    /// Finds a key by its hash, so that the time of the lookup reveals nothing about the secret.
    pub fn find(&self, secret: &str) -> Option<&Arc<Principal>> {
        self.by_hash.get(&<[u8; 32]>::from(Sha256::digest(secret)))
    }
}

fn parse(key: &ApiKey) -> Result<([u8; 32], Principal), String> {
    let visible = key.id.bytes().all(|byte| byte.is_ascii_graphic());
    if key.id.is_empty() || key.id.len() > ID_BYTES_MAX || !visible {
        return Err(format!(
            "id must have 1 to {ID_BYTES_MAX} visible ASCII characters, because it is sent in headers"
        ));
    }
    let kind = if key.platform {
        parse_operator(key)?
    } else {
        parse_member(key)?
    };
    let mut hash = [0; 32];
    hex::decode_to_slice(&key.sha256, &mut hash)
        .map_err(|_| "sha256 must be the 64 hex digits of the key's SHA-256".to_owned())?;
    let principal = Principal {
        id: key.id.clone(),
        kind,
    };
    Ok((hash, principal))
}

fn parse_operator(key: &ApiKey) -> Result<PrincipalKind, String> {
    if key.tenant.is_empty() && key.workspaces.is_empty() && key.roles.is_empty() {
        return Ok(PrincipalKind::PlatformOperator);
    }
    Err(
        "platform is true: the platform operator has neither tenant nor workspaces nor roles; \
         remove them, or remove platform"
            .to_owned(),
    )
}

fn parse_member(key: &ApiKey) -> Result<PrincipalKind, String> {
    let tenant = key
        .tenant
        .parse()
        .map_err(|error| format!("tenant: {error}"))?;
    Ok(PrincipalKind::Member {
        tenant,
        workspaces: parse_workspaces(&key.workspaces)?,
        roles: parse_roles(&key.roles)?,
    })
}

fn parse_workspaces(names: &[String]) -> Result<WorkspaceScope, String> {
    match names {
        [] => Err(format!(
            "workspaces is empty: list at least one, or \"{ALL_WORKSPACES}\" for all"
        )),
        [all] if all == ALL_WORKSPACES => Ok(WorkspaceScope::All),
        names if names.len() > WORKSPACES_MAX => Err(format!(
            "workspaces: {} are listed, at most {WORKSPACES_MAX} are allowed; use \"{ALL_WORKSPACES}\" for all, or several keys",
            names.len()
        )),
        names => {
            let names: Result<_, _> = names.iter().map(|name| name.parse()).collect();
            names
                .map(WorkspaceScope::Only)
                .map_err(|error| format!("workspaces: {error}"))
        }
    }
}

fn parse_roles(names: &[String]) -> Result<Vec<Role>, String> {
    if names.is_empty() {
        let known: Vec<&str> = Role::ALL.iter().map(|role| role.name()).collect();
        return Err(format!(
            "roles is empty, so the key could do nothing: list at least one of {}",
            known.join(", ")
        ));
    }
    let roles: Result<Vec<Role>, _> = names.iter().map(|name| name.parse()).collect();
    roles.map_err(|error| format!("roles: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use servo_model::Permission;

    fn member(workspaces: &[&str], roles: &[&str]) -> ApiKey {
        ApiKey {
            id: "k".into(),
            tenant: "acme".into(),
            workspaces: workspaces.iter().map(|&name| name.into()).collect(),
            roles: roles.iter().map(|&name| name.into()).collect(),
            sha256: hex::encode(Sha256::digest("secret")),
            ..ApiKey::default()
        }
    }

    fn operator() -> ApiKey {
        ApiKey {
            tenant: String::new(),
            platform: true,
            ..member(&[], &[])
        }
    }

    fn principal(key: ApiKey) -> Principal {
        let keys = ApiKeys::new(&[key]).unwrap();
        Principal::clone(keys.find("secret").unwrap())
    }

    fn fault(key: ApiKey) -> String {
        ApiKeys::new(&[key]).unwrap_err().reason
    }

    #[test]
    fn member_holds_its_roles_in_its_own_tenant_only() {
        let key = principal(member(&["prod"], &["viewer", "worker"]));
        let (own, other) = ("acme".parse().unwrap(), "globex".parse().unwrap());
        assert!(key.grants(Some(&own)).contains(Permission::WorkPull));
        assert!(!key.grants(Some(&own)).contains(Permission::RunsTrigger));
        assert_eq!(key.grants(Some(&other)), Grants::default());
        assert_eq!(key.grants(Some(&TenantScope::All)), Grants::default());
        assert!(key.grants(None).contains(Permission::SelfRead));
        assert_eq!(key.tenant(Some(other)), Some(own));
        assert_eq!(key.workspaces().to_string(), "prod");
    }

    #[test]
    fn platform_operator_may_name_any_tenant() {
        let key = principal(operator());
        let any: TenantScope = "globex".parse().unwrap();
        assert_eq!(key.grants(Some(&any)), Grants::platform());
        assert_eq!(key.tenant(Some(any.clone())), Some(any));
        assert_eq!(key.tenant(None), None);
        assert_eq!(key.workspaces(), WorkspaceScope::All);
    }

    #[test]
    fn keys_that_mean_nothing_are_refused() {
        assert!(fault(member(&["prod"], &[])).contains("roles is empty"));
        assert!(fault(member(&["prod"], &["boss"])).contains("`boss` is not a Role"));
        assert!(fault(member(&[], &["viewer"])).contains("workspaces is empty"));
        assert!(fault(member(&["-", "prod"], &["viewer"])).contains("workspaces: "));
        let both = ApiKey {
            platform: true,
            ..member(&["prod"], &["viewer"])
        };
        assert!(fault(both).contains("platform is true"));
        let everybody = ApiKey {
            tenant: "-".into(),
            ..member(&["-"], &["admin"])
        };
        assert!(
            fault(everybody).contains("tenant: "),
            "the operator is no tenant"
        );
        let unnamed = ApiKey {
            id: "a b".into(),
            ..member(&["-"], &["admin"])
        };
        assert!(fault(unnamed).contains("id must have"));
    }

    #[test]
    fn two_keys_with_one_secret_are_refused() {
        let key = member(&["-"], &["admin"]);
        let fault = ApiKeys::new(&[key.clone(), key]).unwrap_err();
        assert_eq!(fault.index, 1);
    }
}
