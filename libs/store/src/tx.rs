//! Transactions as types: what one may write is said by how one came by it.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use sqlx::postgres::PgRow;
use sqlx::{Execute, Executor, FromRow, Postgres, Transaction};

use crate::error::StoreError;
use crate::generation::Generations;
use crate::lease::Lease;
use crate::ledger::{AppendError, Appended, NewEvent, append_validated, validate};

/// An open transaction. Dropped without [`commit`](TenantTx::commit) it is rolled back.
///
/// Every statement passes through here, so that a failed one cannot be committed over (Postgres answers such a
/// COMMIT with a silent rollback) and a lost connection is noticed.
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

    /// Runs a statement and answers how many rows it touched.
    pub async fn execute<'q>(
        &mut self,
        query: impl Execute<'q, Postgres> + 'q,
    ) -> Result<u64, StoreError> {
        let done = self.transaction.execute(query).await;
        Ok(self.noted(done)?.rows_affected())
    }

    /// Every row of the answer.
    pub async fn all<'q, T: FromAnyRow>(
        &mut self,
        query: impl Execute<'q, Postgres> + 'q,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.transaction.fetch_all(query).await;
        let rows = self.noted(rows)?;
        rows.iter().map(|row| Ok(T::from_row(row)?)).collect()
    }

    /// The first row of the answer, if there is one.
    pub async fn optional<'q, T: FromAnyRow>(
        &mut self,
        query: impl Execute<'q, Postgres> + 'q,
    ) -> Result<Option<T>, StoreError> {
        let row = self.transaction.fetch_optional(query).await;
        let row = self.noted(row)?;
        row.map(|row| Ok(T::from_row(&row)?)).transpose()
    }

    /// The first row of an answer that always has one.
    pub async fn one<'q, T: FromAnyRow>(
        &mut self,
        query: impl Execute<'q, Postgres> + 'q,
    ) -> Result<T, StoreError> {
        self.optional(query)
            .await?
            .ok_or(StoreError::Database(sqlx::Error::RowNotFound))
    }

    /// Appends events together with this transaction's rows. Once per transaction, or two transactions may wait
    /// for each other; the shards stay locked until it ends, so do it last.
    pub async fn append(&mut self, events: &[NewEvent]) -> Result<Vec<Appended>, AppendError> {
        validate(events)?;
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let batch: Vec<&NewEvent> = events.iter().collect();
        let answers = append_validated(&mut self.transaction, &batch).await;
        Ok(self.noted(answers)?)
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        if self.failed {
            return Err(StoreError::Aborted);
        }
        let generations = self.generations;
        self.transaction.commit().await.map_err(|error| {
            generations.note(&error);
            error.into()
        })
    }

    fn noted<T>(&mut self, done: Result<T, sqlx::Error>) -> Result<T, StoreError> {
        done.map_err(|error| {
            self.failed = true;
            self.generations.note(&error);
            error.into()
        })
    }
}

/// What a row can be read as: tuples and `#[derive(sqlx::FromRow)]`.
pub trait FromAnyRow: for<'r> FromRow<'r, PgRow> {}

impl<T> FromAnyRow for T where T: for<'r> FromRow<'r, PgRow> {}

macro_rules! kind_of_tx {
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
            /// Makes all of it durable, or none.
            pub async fn commit(self) -> Result<(), StoreError> {
                self.0.commit().await
            }
        }
    };
}

/// A request handler's transaction: sees and writes the rows of one tenant only.
#[derive(Debug)]
pub struct TenantTx(pub(crate) Tx);

/// A loop's transaction: sees all tenants' rows, writes its service's schema.
#[derive(Debug)]
pub struct LoopTx(pub(crate) Tx);

/// A loop's transaction that began by proving its lease. Get one from [`LoopStore::fence`](crate::LoopStore::fence).
#[derive(Debug)]
pub struct FencedTx(Tx, Fence);

kind_of_tx!(TenantTx);
kind_of_tx!(LoopTx);
kind_of_tx!(FencedTx);

#[derive(Debug)]
struct Fence {
    lease: Lease,
    watermark: i64,
    head: i64,
}

impl FencedTx {
    pub(crate) async fn enter(
        tx: Tx,
        lease: Lease,
        from: i64,
        to: i64,
    ) -> Result<FencedTx, StoreError> {
        let mut fenced = FencedTx(
            tx,
            Fence {
                lease,
                watermark: from,
                head: from,
            },
        );
        fenced.advance(to).await?;
        Ok(fenced)
    }

    /// Moves the watermark on, for what was appended and folded within this transaction.
    pub async fn advance(&mut self, to: i64) -> Result<(), StoreError> {
        let Fence {
            lease, watermark, ..
        } = &self.1;
        let fence = sqlx::query(include_str!("sql/fence.sql"))
            .bind(lease.stream.code())
            .bind(lease.shard)
            .bind(lease.epoch)
            .bind(&*lease.holder)
            .bind(*watermark)
            .bind(to);
        let (head,): (i64,) = self.0.one(fence).await?;
        self.1.watermark = to;
        self.1.head = head;
        Ok(())
    }

    /// The last position of the shard when the fence was passed. It cannot move until this transaction ends,
    /// unless this transaction appends.
    pub fn head(&self) -> i64 {
        self.1.head
    }
}
