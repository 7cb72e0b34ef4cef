//! Deriving run ids.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use servo_model::run_key::SecretTooShort;
use servo_model::{Digest, RunId, RunIdSecret, RunKey, TenantId, WorkspaceId};

/// Derives run ids from a secret per tenant, which is derived from the installation's secret. That
/// secret never changes, because a run id must stay the same. It signs nothing. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RunIds {
    installation: Arc<str>,
    tenants: Arc<Mutex<HashMap<TenantId, Arc<RunIdSecret>>>>,
}

impl RunIds {
    pub(crate) fn new(installation: &str) -> Result<RunIds, SecretTooShort> {
        RunIdSecret::new(installation.as_bytes())?;
        Ok(RunIds {
            installation: installation.into(),
            tenants: Arc::default(),
        })
    }

    pub(crate) fn derive(&self, tenant: &TenantId, workspace: &WorkspaceId, key: &RunKey) -> RunId {
        RunId::derive(&self.secret(tenant), tenant, workspace, key)
    }

    fn secret(&self, tenant: &TenantId) -> Arc<RunIdSecret> {
        let mut tenants = self
            .tenants
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let make = || {
            let digest = Digest::of(format!("{}\0{tenant}", self.installation));
            Arc::new(RunIdSecret::new(digest.as_bytes().to_vec()).expect("a digest is long enough"))
        };
        tenants.entry(tenant.clone()).or_insert_with(make).clone()
    }
}
