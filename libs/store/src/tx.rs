//! Transactions as types: the type determines what a transaction may write.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use sqlx::postgres::PgRow;
use sqlx::{Execute, Executor, FromRow, PgConnection, Postgres, Transaction};

use crate::error::StoreError;
use crate::generation::Generations;

/// An open transaction. Dropped without [`commit`](TenantTx::commit) it is rolled back.
///
/// Every statement passes through here, so that a transaction with a failed statement cannot be
/// committed (Postgres would answer such a COMMIT with a silent rollback) and a lost connection is
/// detected.
#[derive(Debug)]
pub struct Tx {
    transaction: Transaction<'static, Postgres>,
    generations: Arc<Generations>,
    failed: bool,
}

impl Tx {
    pub(crate) fn new(
        transaction: Transaction<'static, Postgres>,
        generations: Arc<Generations>,
    ) -> Self {
        Tx {
            transaction,
            generations,
            failed: false,
        }
    }

    /// Runs a statement and returns the number of affected rows.
    pub async fn execute<'q>(
        &mut self,
        query: impl Execute<'q, Postgres> + 'q,
    ) -> Result<u64, StoreError> {
        let done = self.transaction.execute(query).await;
        Ok(self.observed(done)?.rows_affected())
    }

    /// Returns every row.
    pub async fn all<'q, T: FromAnyRow>(
        &mut self,
        query: impl Execute<'q, Postgres> + 'q,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.transaction.fetch_all(query).await;
        let rows = self.observed(rows)?;
        rows.iter().map(|row| Ok(T::from_row(row)?)).collect()
    }

    /// Returns the first row, if there is one.
    pub async fn optional<'q, T: FromAnyRow>(
        &mut self,
        query: impl Execute<'q, Postgres> + 'q,
    ) -> Result<Option<T>, StoreError> {
        let row = self.transaction.fetch_optional(query).await;
        let row = self.observed(row)?;
        row.map(|row| Ok(T::from_row(&row)?)).transpose()
    }

    /// Returns the first row of a query that always has one.
    pub async fn one<'q, T: FromAnyRow>(
        &mut self,
        query: impl Execute<'q, Postgres> + 'q,
    ) -> Result<T, StoreError> {
        self.optional(query)
            .await?
            .ok_or(StoreError::Database(sqlx::Error::RowNotFound))
    }

    /// The connection, for statements that need another way to run. Their results must pass
    /// through [`Tx::observed`].
    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        if self.failed {
            return Err(StoreError::Aborted);
        }
        let generations = self.generations;
        self.transaction.commit().await.map_err(|error| {
            generations.observe(&error);
            error.into()
        })
    }

    /// Notes a failed statement.
    pub(crate) fn observed<T>(&mut self, done: Result<T, sqlx::Error>) -> Result<T, StoreError> {
        done.map_err(|error| {
            self.failed = true;
            self.generations.observe(&error);
            error.into()
        })
    }
}

/// The types that a row can be read as: tuples and `#[derive(sqlx::FromRow)]`.
pub trait FromAnyRow: for<'r> FromRow<'r, PgRow> {}

impl<T> FromAnyRow for T where T: for<'r> FromRow<'r, PgRow> {}

macro_rules! transaction_type {
    ($name:ident) => {
        impl Deref for $name {
            type Target = Tx;

            fn deref(&self) -> &Tx {
                &self.0
            }
        }

        impl DerefMut for $name {
            fn deref_mut(&mut self) -> &mut Tx {
                &mut self.0
            }
        }

        impl $name {
            /// Commits all changes, or none.
            pub async fn commit(self) -> Result<(), StoreError> {
                self.0.commit().await
            }
        }
    };
}

pub(crate) use transaction_type;

/// A request handler's transaction: sees and writes the rows of one tenant only.
#[derive(Debug)]
pub struct TenantTx(pub(crate) Tx);

/// A loop's transaction: sees all tenants' rows, writes its service's schema.
#[derive(Debug)]
pub struct LoopTx(pub(crate) Tx);

transaction_type!(TenantTx);
transaction_type!(LoopTx);
