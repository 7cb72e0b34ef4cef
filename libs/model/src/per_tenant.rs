//! A setting with values for some tenants and a default for all others.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::TenantId;

/// `known` is false until the source of the values has responded; until then callers must not
/// assume any value.
#[derive(Debug)]
pub struct PerTenant<T> {
    pub known: bool,
    /// The value for tenants that are not listed.
    pub others: Arc<T>,
    pub tenants: BTreeMap<TenantId, Arc<T>>,
}

impl<T> Clone for PerTenant<T> {
    fn clone(&self) -> PerTenant<T> {
        PerTenant {
            known: self.known,
            others: self.others.clone(),
            tenants: self.tenants.clone(),
        }
    }
}

impl<T: Default> Default for PerTenant<T> {
    fn default() -> PerTenant<T> {
        PerTenant {
            known: false,
            others: Arc::default(),
            tenants: BTreeMap::new(),
        }
    }
}

impl<T: Default> PerTenant<T> {
    /// A known setting without exceptions: the default value for all tenants.
    pub fn none() -> PerTenant<T> {
        PerTenant {
            known: true,
            ..PerTenant::default()
        }
    }
}

impl<T> PerTenant<T> {
    /// The value of the tenant. Meaningful only if `known`.
    pub fn of(&self, tenant: &TenantId) -> &Arc<T> {
        self.tenants.get(tenant).unwrap_or(&self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_that_are_not_listed_get_the_default() {
        let (acme, other): (TenantId, TenantId) =
            ("acme".parse().unwrap(), "other".parse().unwrap());
        let limits = PerTenant {
            tenants: [(acme.clone(), Arc::new(7))].into(),
            ..PerTenant::none()
        };
        assert_eq!(
            (**limits.of(&acme), **limits.of(&other), limits.known),
            (7, 0, true)
        );
        assert!(!PerTenant::<u8>::default().known);
    }
}
