//! The names that people give to tenants and workspaces.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::IdError;
use crate::hash::Digest;
use crate::ledger::AdmissionShard;
use crate::limits::SLUG_BYTES_MAX;
use crate::text::written_as_text;

const RULE: &str = "write 1 to 63 lower-case letters, digits and `-`, beginning with a letter and not ending with `-`";
const _: () = assert!(SLUG_BYTES_MAX == 63, "the rule's text names the limit");

macro_rules! slug_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        // The text is shared, because every event and row holds a clone.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                if is_slug(text) { Ok($name(text.into())) } else { Err(IdError::new($kind, text, RULE)) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        written_as_text!($name);
    };
}

slug_id!(
    /// A customer. No row, call or page crosses the boundary between two tenants.
    TenantId,
    "tenant name"
);
slug_id!(
    /// One of a tenant's workspaces, such as `prod`.
    WorkspaceId,
    "workspace name"
);

impl TenantId {
    /// The shard of the dispatch stream whose holder admits this tenant's tasks.
    pub fn admission_shard(&self) -> AdmissionShard {
        AdmissionShard::of_hash(&Digest::of(self.as_str()))
    }
}

/// One tenant, or all of them: workers, pauses and commands may be for all tenants. `-` in texts
/// and rows, which no tenant can be named.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TenantScope {
    All,
    One(TenantId),
}

const ALL_TENANTS: &str = "-";

impl TenantScope {
    pub fn as_str(&self) -> &str {
        match self {
            TenantScope::All => ALL_TENANTS,
            TenantScope::One(tenant) => tenant.as_str(),
        }
    }

    /// `None` for all tenants.
    pub fn tenant(&self) -> Option<&TenantId> {
        match self {
            TenantScope::All => None,
            TenantScope::One(tenant) => Some(tenant),
        }
    }

    /// Whether the tenant is in this scope.
    pub fn contains(&self, tenant: &TenantId) -> bool {
        self.tenant().is_none_or(|one| one == tenant)
    }
}

impl From<TenantId> for TenantScope {
    fn from(tenant: TenantId) -> TenantScope {
        TenantScope::One(tenant)
    }
}

impl From<&TenantId> for TenantScope {
    fn from(tenant: &TenantId) -> TenantScope {
        TenantScope::One(tenant.clone())
    }
}

impl FromStr for TenantScope {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if text == ALL_TENANTS {
            Ok(TenantScope::All)
        } else {
            text.parse().map(TenantScope::One)
        }
    }
}

impl fmt::Display for TenantScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// All workspaces of a tenant, or some of them: where the grants of a principal hold. `-` in texts
/// for all, else names joined by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkspaceScope {
    All,
    /// May be empty: a principal without a workspace.
    Only(BTreeSet<WorkspaceId>),
}

const ALL_WORKSPACES: &str = "-";

impl WorkspaceScope {
    /// Whether the workspace of this name is in the scope.
    pub fn contains(&self, workspace: &str) -> bool {
        match self {
            WorkspaceScope::All => true,
            WorkspaceScope::Only(names) => names.iter().any(|name| name.as_str() == workspace),
        }
    }
}

impl From<WorkspaceId> for WorkspaceScope {
    fn from(workspace: WorkspaceId) -> WorkspaceScope {
        WorkspaceScope::Only(BTreeSet::from([workspace]))
    }
}

impl FromStr for WorkspaceScope {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if text == ALL_WORKSPACES {
            return Ok(WorkspaceScope::All);
        }
        let names = text.split(',').filter(|name| !name.is_empty());
        names
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map(WorkspaceScope::Only)
    }
}

impl fmt::Display for WorkspaceScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WorkspaceScope::Only(names) = self else {
            return f.write_str(ALL_WORKSPACES);
        };
        for (index, name) in names.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{name}")?;
        }
        Ok(())
    }
}

// A DNS label, because it is used verbatim in paths, host names, object names and certificates.
fn is_slug(text: &str) -> bool {
    let inner = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-');
    text.len() <= SLUG_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && !text.ends_with('-')
        && text.bytes().all(inner)
}
