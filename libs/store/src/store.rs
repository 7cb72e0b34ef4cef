//! A service's access to Postgres: its two pools and its ledger.

use std::sync::Arc;

use servo_model::Service;
use tokio::sync::watch;

use crate::config::{BadConfig, DatabaseConfig};
use crate::generation::{Generation, Generations};
use crate::ledger::{Ledger, LedgerReader};
use crate::ownership::Role;
use crate::pool::{LoopStore, Pool, TenantStore};

/// Access to a service's rows with its two roles. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    service: Service,
    config: Arc<DatabaseConfig>,
    requests: TenantStore,
    loops: LoopStore,
    ledger: Ledger,
}

impl Store {
    /// Validates the configuration but opens no connection: connections are opened when first
    /// needed, so a service can start before its database and report what is missing
    /// ([`Store::check`]). Needs a Tokio runtime.
    pub fn connect(service: Service, config: &DatabaseConfig) -> Result<Store, BadConfig> {
        config.validate(service)?;
        let generations = Arc::new(Generations::new());
        let pool = |role, size| Pool::lazy(config, role, size, &generations);
        let requests = TenantStore {
            pool: pool(Role::Requests(service), config.requests_connections)?,
        };
        let loops = LoopStore {
            pool: pool(Role::Loops(service), config.loops_connections)?,
        };
        let ledger = Ledger::start(loops.clone(), service);
        Ok(Store {
            service,
            config: Arc::new(config.clone()),
            requests,
            loops,
            ledger,
        })
    }

    pub fn service(&self) -> Service {
        self.service
    }

    /// For request handlers: one tenant at a time.
    pub fn requests(&self) -> &TenantStore {
        &self.requests
    }

    /// For loops: all tenants, own schema and read list.
    pub fn loops(&self) -> &LoopStore {
        &self.loops
    }

    /// For appends that share commits.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub fn reader(&self) -> LedgerReader {
        LedgerReader::new(self.loops.clone())
    }

    pub fn generation(&self) -> Generation {
        self.loops.pool.generations.current()
    }

    /// Changes whenever cached rows and leases must be discarded.
    pub fn generations(&self) -> watch::Receiver<Generation> {
        self.loops.pool.generations.watch()
    }

    /// Closes both pools after their open transactions end.
    pub async fn close(&self) {
        self.requests.pool.inner.close().await;
        self.loops.pool.inner.close().await;
    }

    pub(crate) fn config(&self) -> &DatabaseConfig {
        &self.config
    }
}
