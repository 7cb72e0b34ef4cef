//! What an authority says about every tenant: some by name, the rest alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::TenantId;

/// Until the authority has answered nothing is known, and whoever asks must not guess.
#[derive(Debug)]
pub struct PerTenant<T> {
    pub known: bool,
    /// For tenants that are not named.
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
    /// Nobody is named, and nothing special holds.
    pub fn none() -> PerTenant<T> {
        PerTenant {
            known: true,
            ..PerTenant::default()
        }
    }
}

impl<T> PerTenant<T> {
    /// What holds for the tenant once it is known.
    pub fn of(&self, tenant: &TenantId) -> &Arc<T> {
        self.tenants.get(tenant).unwrap_or(&self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_named_is_one_of_the_others() {
        let (acme, other): (TenantId, TenantId) =
            ("acme".parse().unwrap(), "other".parse().unwrap());
        let said = PerTenant {
            tenants: [(acme.clone(), Arc::new(7))].into(),
            ..PerTenant::none()
        };
        assert_eq!(
            (**said.of(&acme), **said.of(&other), said.known),
            (7, 0, true)
        );
        assert!(!PerTenant::<u8>::default().known);
    }
}
