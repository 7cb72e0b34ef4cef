//! The pools of connections, one per role of a service, and the transactions that each opens.

use std::sync::Arc;

use servo_model::{TenantId, TenantScope};
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Execute, Executor, PgPool, Postgres};

use crate::config::{BadConfig, DatabaseConfig};
use crate::error::{StoreError, connection_is_lost};
use crate::generation::Generations;
use crate::ownership::Role;
use crate::tx::{FromAnyRow, LoopTx, TenantTx, Tx};

/// Opens transactions for request handlers and does nothing else, because without a tenant there
/// are no rows.
#[derive(Debug, Clone)]
pub struct TenantStore {
    pub(crate) pool: Pool,
}

impl TenantStore {
    /// Opens a transaction that sees the rows of this tenant only.
    pub async fn begin(&self, tenant: &TenantId) -> Result<TenantTx, StoreError> {
        self.begin_in(&tenant.into()).await
    }

    /// Like [`TenantStore::begin`]; for all tenants it sees the rows that belong to no single
    /// tenant, not those of each.
    pub async fn begin_in(&self, scope: &TenantScope) -> Result<TenantTx, StoreError> {
        let mut tx = self.pool.begin().await?;
        tx.execute(sqlx::query(include_str!("sql/set_tenant.sql")).bind(scope))
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
}

/// A pool that detects lost connections.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    pub(crate) inner: PgPool,
    pub(crate) generations: Arc<Generations>,
}

impl Pool {
    pub(crate) fn lazy(
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
                    if dead_connections_left == 0 || !connection_is_lost(&error) {
                        return Err(error.into());
                    }
                    dead_connections_left -= 1;
                }
            }
        }
    }
}
