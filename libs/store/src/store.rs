//! The connection to Postgres: two pools, one per role of the service, and the operations of each.

use std::sync::Arc;

use servo_model::Service;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Execute, Executor, PgPool, Postgres};
use tokio::sync::watch;

use crate::config::{BadConfig, DatabaseConfig};
use crate::error::StoreError;
use crate::generation::{Generation, Generations};
use crate::lease::Lease;
use crate::ledger::{Ledger, LedgerReader};
use crate::ownership::Role;
use crate::tx::{FencedTx, FromAnyRow, LoopTx, TenantTx, Tx};

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

/// Opens transactions for request handlers and does nothing else, because without a tenant there
/// are no rows.
#[derive(Debug, Clone)]
pub struct TenantStore {
    pool: Pool,
}

impl TenantStore {
    pub async fn begin(&self, tenant: &str) -> Result<TenantTx, StoreError> {
        let mut tx = self.pool.begin().await?;
        tx.execute(sqlx::query(include_str!("sql/set_tenant.sql")).bind(tenant))
            .await?;
        Ok(TenantTx(tx))
    }
}

/// Opens transactions for loops.
#[derive(Debug, Clone)]
pub struct LoopStore {
    pub(crate) pool: Pool,
}

impl LoopStore {
    pub async fn begin(&self) -> Result<LoopTx, StoreError> {
        Ok(LoopTx(self.pool.begin().await?))
    }

    /// Runs a statement as its own transaction, which needs half the round trips.
    pub async fn execute<'q>(
        &self,
        query: impl Execute<'q, Postgres> + 'q,
    ) -> Result<u64, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let done = connection.execute(query).await;
        Ok(done
            .inspect_err(|error| self.pool.generations.observe(error))?
            .rows_affected())
    }

    /// Like [`LoopStore::execute`], returning every row.
    pub async fn all<'q, T: FromAnyRow>(
        &self,
        query: impl Execute<'q, Postgres> + 'q,
    ) -> Result<Vec<T>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let rows = connection.fetch_all(query).await;
        let rows = rows.inspect_err(|error| self.pool.generations.observe(error))?;
        rows.iter().map(|row| Ok(T::from_row(row)?)).collect()
    }

    /// Whether no connection was lost since the lease was acquired.
    pub fn is_current(&self, lease: &Lease) -> bool {
        lease.generation == self.pool.generations.current()
    }

    /// Begins a transaction whose first statement verifies the lease and moves the shard's
    /// watermark from `from` to `to`. Until it ends, no other instance can acquire the shard.
    pub async fn fence(&self, lease: &Lease, from: i64, to: i64) -> Result<FencedTx, StoreError> {
        let tx = self.pool.begin().await?;
        if !self.is_current(lease) {
            return Err(StoreError::LeaseLost(format!(
                "the lease on {} shard {} was acquired over a connection that was lost",
                lease.stream.name(),
                lease.shard
            )));
        }
        FencedTx::enter(tx, lease.clone(), from, to).await
    }
}

/// A pool that detects lost connections.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    pub(crate) inner: PgPool,
    pub(crate) generations: Arc<Generations>,
}

impl Pool {
    fn lazy(
        config: &DatabaseConfig,
        role: Role,
        size: u32,
        generations: &Arc<Generations>,
    ) -> Result<Pool, BadConfig> {
        let checked = generations.clone();
        let options = PgPoolOptions::new()
            .max_connections(size)
            .acquire_timeout(config.acquire_timeout())
            // `begin` detects a dead connection by using it, which saves every transaction a round
            // trip.
            .test_before_acquire(false)
            .after_connect(move |connection, _| {
                let checked = checked.clone();
                Box::pin(async move { checked.check_server(connection).await })
            });
        let inner = options.connect_lazy_with(config.options(role)?);
        Ok(Pool {
            inner,
            generations: generations.clone(),
        })
    }

    pub(crate) async fn acquire(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        let connection = self.inner.acquire().await;
        Ok(connection.inspect_err(|error| self.generations.observe(error))?)
    }

    /// Begins on a live connection: after a restart of Postgres every pooled connection fails once.
    pub(crate) async fn begin(&self) -> Result<Tx, StoreError> {
        let mut dead_connections_left = self.inner.options().get_max_connections();
        loop {
            match self.inner.begin().await {
                Ok(transaction) => return Ok(Tx::new(transaction, self.generations.clone())),
                Err(error) => {
                    self.generations.observe(&error);
                    if dead_connections_left == 0 || !crate::error::connection_is_lost(&error) {
                        return Err(error.into());
                    }
                    dead_connections_left -= 1;
                }
            }
        }
    }
}
