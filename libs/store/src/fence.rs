//! The fence: a transaction whose first statement verifies that its process still holds the shard.

use std::ops::{Deref, DerefMut};

use servo_model::Position;

use crate::error::StoreError;
use crate::lease::Lease;
use crate::pool::LoopStore;
use crate::tx::{Tx, transaction_type};

/// A loop's transaction that began by verifying its lease, see
/// [`LoopStore::fence`](crate::LoopStore::fence).
#[derive(Debug)]
pub struct FencedTx(Tx, Fence);

transaction_type!(FencedTx);

#[derive(Debug)]
struct Fence {
    lease: Lease,
    watermark: Position,
    head: Position,
}

impl FencedTx {
    pub(crate) async fn enter(
        tx: Tx,
        lease: Lease,
        from: Position,
        to: Position,
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

    /// Moves the watermark over events that were appended and folded in this transaction.
    pub async fn advance(&mut self, to: Position) -> Result<(), StoreError> {
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
        let (head,): (Position,) = self.0.one(fence).await?;
        self.1.watermark = to;
        self.1.head = head;
        Ok(())
    }

    /// The last position of the shard when the fence was passed. It cannot change until this
    /// transaction ends, unless this transaction appends.
    pub fn head(&self) -> Position {
        self.1.head
    }
}

impl LoopStore {
    /// Whether no connection was lost since the lease was acquired.
    pub fn is_current(&self, lease: &Lease) -> bool {
        lease.generation == self.pool.generations.current()
    }

    /// Begins a transaction whose first statement verifies the lease and moves the shard's
    /// watermark from `from` to `to`. Until it ends, no other instance can acquire the shard.
    pub async fn fence(
        &self,
        lease: &Lease,
        from: Position,
        to: Position,
    ) -> Result<FencedTx, StoreError> {
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
