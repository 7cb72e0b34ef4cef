//! Leases on shards: database time, epochs that only increase, and a fence (see
//! [`FencedTx`](crate::FencedTx)).

use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_model::{Epoch, Position, ShardId, Stream};

use crate::config::BadConfig;
use crate::error::StoreError;
use crate::generation::Generation;
use crate::ownership::timeouts::IDLE_IN_TRANSACTION_MAX;
use crate::pool::LoopStore;
use crate::tx::LoopTx;

/// The lifetime of a lease without renewal. Renew it at a third of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTtl(Duration);

impl LeaseTtl {
    /// Longer than every role's timeouts, so that the transaction of a stopped holder ends before
    /// its lease does.
    pub const MIN: Duration = Duration::from_secs(3);

    pub fn new(ttl: Duration) -> Result<LeaseTtl, BadConfig> {
        if ttl < Self::MIN {
            let fault = format!(
                "is {ttl:?}, but the transaction of a stopped holder may stay open for almost {0:?}; set {0:?} or more",
                Self::MIN
            );
            return Err(BadConfig {
                key: "lease_ttl",
                fault,
            });
        }
        Ok(LeaseTtl(ttl))
    }

    pub fn get(self) -> Duration {
        self.0
    }
}

const _: () = assert!(IDLE_IN_TRANSACTION_MAX.as_millis() < LeaseTtl::MIN.as_millis());

/// How long an acquisition or renewal waits for a shard whose row an appender has locked.
const ROW_LOCK_TIMEOUT: &str = "200ms";
/// How many locked shards one acquisition waits for; the next acquisition tries the rest.
const LOCKED_ROWS_MAX: usize = 4;

/// The lease on one shard. It may be outdated; only the fence decides.
#[derive(Debug, Clone)]
pub struct Lease {
    pub(crate) stream: Stream,
    pub(crate) shard: ShardId,
    pub(crate) epoch: Epoch,
    pub(crate) holder: Arc<str>,
    pub(crate) generation: Generation,
    watermark: Position,
    expires: Instant,
}

impl Lease {
    pub fn stream(&self) -> Stream {
        self.stream
    }

    pub fn shard(&self) -> ShardId {
        self.shard
    }

    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The process that holds the lease.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// How far the shard was folded when the lease was acquired.
    pub fn watermark(&self) -> Position {
        self.watermark
    }

    /// The database counts the lease as held at least until this instant of the local clock, unless
    /// it is released.
    pub fn expires(&self) -> Instant {
        self.expires
    }
}

/// The result of a renewal.
#[derive(Debug, Default)]
pub struct Renewed {
    pub held: Vec<Lease>,
    pub lost: Vec<Lease>,
}

/// The holder of a shard, for forwarding calls to it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Holder {
    pub shard: ShardId,
    pub holder: String,
    pub address: String,
    pub epoch: Epoch,
}

/// Leases of one process on the shards of one stream.
#[derive(Debug, Clone)]
pub struct Leases {
    loops: LoopStore,
    stream: Stream,
    holder: Arc<str>,
    address: Arc<str>,
    ttl: Duration,
}

impl Leases {
    /// `holder` is unique per process start; `address` is where other instances reach this one.
    pub fn new(
        loops: &LoopStore,
        stream: Stream,
        holder: &str,
        address: &str,
        ttl: LeaseTtl,
    ) -> Leases {
        Leases {
            loops: loops.clone(),
            stream,
            holder: holder.into(),
            address: address.into(),
            ttl: ttl.get(),
        }
    }

    /// Acquires up to `at_most` of `shards` that are free or whose lease has expired.
    pub async fn acquire(
        &self,
        shards: &[ShardId],
        at_most: usize,
    ) -> Result<Vec<Lease>, StoreError> {
        if shards.is_empty() || at_most == 0 {
            return Ok(Vec::new());
        }
        let tx = self.loops.begin().await?;
        let mut acquired = self
            .acquire_in(tx, shards, at_most, LockedRows::Skip)
            .await?;
        if acquired.len() < at_most {
            self.acquire_locked(shards, at_most, &mut acquired).await?;
        }
        Ok(acquired)
    }

    /// Extends these leases and returns which of them are lost.
    pub async fn renew(&self, leases: Vec<Lease>) -> Result<Renewed, StoreError> {
        let mut renewed = Renewed::default();
        let tx = self.loops.begin().await?;
        let skipped = self
            .renew_in(tx, leases, LockedRows::Skip, &mut renewed.held)
            .await?;
        if !skipped.is_empty() {
            self.renew_locked(skipped, &mut renewed).await?;
        }
        Ok(renewed)
    }

    /// Releases a shard immediately. A lease that is already lost is not an error.
    pub async fn release(&self, lease: Lease) -> Result<(), StoreError> {
        let mut tx = self.loops.begin().await?;
        let release = sqlx::query(include_str!("sql/release.sql"))
            .bind(self.stream.code())
            .bind(lease.shard)
            .bind(lease.epoch)
            .bind(&*lease.holder);
        tx.execute(release).await?;
        tx.commit().await
    }

    /// Records that this instance is alive, and counts all that share the stream's shards.
    pub(crate) async fn note_instance(&self) -> Result<usize, StoreError> {
        let note = sqlx::query(include_str!("sql/note_instance.sql"))
            .bind(self.stream.code())
            .bind(&*self.holder)
            .bind(self.ttl);
        let rows: Vec<(i64,)> = self.loops.all(note).await?;
        let count = rows.first().map_or(1, |(count,)| *count);
        Ok(usize::try_from(count).unwrap_or(1).max(1))
    }

    /// Removes this instance, so that the others take over its share immediately.
    pub(crate) async fn forget_instance(&self) -> Result<(), StoreError> {
        let forget = sqlx::query(include_str!("sql/forget_instance.sql"))
            .bind(self.stream.code())
            .bind(&*self.holder);
        self.loops.execute(forget).await.map(|_| ())
    }

    /// The stream whose shards are leased.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Waits briefly for each shard that is free but locked, in a transaction of its own: an
    /// appender under load holds the row almost always, so skipping locked rows would never
    /// succeed, but waiting in the lock queue does.
    async fn acquire_locked(
        &self,
        shards: &[ShardId],
        at_most: usize,
        acquired: &mut Vec<Lease>,
    ) -> Result<(), StoreError> {
        for shard in self
            .free_among(shards)
            .await?
            .into_iter()
            .take(LOCKED_ROWS_MAX)
        {
            if acquired.len() == at_most {
                break;
            }
            let tx = self.begin_waiting().await?;
            match self.acquire_in(tx, &[shard], 1, LockedRows::Wait).await {
                Ok(lease) => acquired.extend(lease),
                Err(StoreError::Raced(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn acquire_in(
        &self,
        mut tx: LoopTx,
        shards: &[ShardId],
        at_most: usize,
        locked: LockedRows,
    ) -> Result<Vec<Lease>, StoreError> {
        let expires = Instant::now() + self.ttl;
        let generation = self.loops.pool.generations.current();
        let acquire = sqlx::query(include_str!("sql/acquire.sql"))
            .bind(self.stream.code())
            .bind(shards)
            .bind(&*self.holder)
            .bind(&*self.address)
            .bind(self.ttl)
            .bind(i32::try_from(at_most).unwrap_or(i32::MAX))
            .bind(locked == LockedRows::Wait);
        let rows: Vec<(ShardId, Epoch, Position)> = tx.all(acquire).await?;
        tx.commit().await?;
        let lease = |(shard, epoch, watermark)| Lease {
            stream: self.stream,
            shard,
            epoch,
            holder: self.holder.clone(),
            generation,
            watermark,
            expires,
        };
        Ok(rows.into_iter().map(lease).collect())
    }

    async fn free_among(&self, shards: &[ShardId]) -> Result<Vec<ShardId>, StoreError> {
        let free = sqlx::query(include_str!("sql/free_shards.sql"))
            .bind(self.stream.code())
            .bind(shards);
        let rows: Vec<(ShardId,)> = self.loops.all(free).await?;
        Ok(rows.into_iter().map(|(shard,)| shard).collect())
    }

    /// Leases whose rows stay locked are not extended, but count as held until they expire.
    async fn renew_locked(
        &self,
        leases: Vec<Lease>,
        renewed: &mut Renewed,
    ) -> Result<(), StoreError> {
        let tx = self.begin_waiting().await?;
        match self
            .renew_in(tx, leases.clone(), LockedRows::Wait, &mut renewed.held)
            .await
        {
            Ok(lost) => renewed.lost = lost,
            Err(StoreError::Raced(_)) => {
                let now = Instant::now();
                let (held, lost) = leases
                    .into_iter()
                    .partition::<Vec<_>, _>(|lease| now < lease.expires);
                renewed.held.extend(held);
                renewed.lost = lost;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Adds the extended leases to `held` and returns the others.
    async fn renew_in(
        &self,
        mut tx: LoopTx,
        leases: Vec<Lease>,
        locked: LockedRows,
        held: &mut Vec<Lease>,
    ) -> Result<Vec<Lease>, StoreError> {
        let expires = Instant::now() + self.ttl;
        let renew = sqlx::query(include_str!("sql/renew.sql"))
            .bind(self.stream.code())
            .bind(leases.iter().map(|lease| lease.shard).collect::<Vec<_>>())
            .bind(leases.iter().map(|lease| lease.epoch).collect::<Vec<_>>())
            .bind(&*self.holder)
            .bind(self.ttl)
            .bind(locked == LockedRows::Wait);
        let extended_shards: Vec<(ShardId,)> = tx.all(renew).await?;
        tx.commit().await?;
        let (extended, rest): (Vec<_>, Vec<_>) = leases
            .into_iter()
            .partition(|lease| extended_shards.contains(&(lease.shard,)));
        held.extend(extended.into_iter().map(|lease| Lease { expires, ..lease }));
        Ok(rest)
    }

    async fn begin_waiting(&self) -> Result<LoopTx, StoreError> {
        let mut tx = self.loops.begin().await?;
        tx.execute(sqlx::query(include_str!("sql/set_lock_timeout.sql")).bind(ROW_LOCK_TIMEOUT))
            .await?;
        Ok(tx)
    }
}

/// How to treat locked rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LockedRows {
    Skip,
    Wait,
}

impl LoopStore {
    /// Returns the current holder of each shard of `stream`; shards without a valid lease are
    /// omitted.
    pub async fn holders(&self, stream: Stream) -> Result<Vec<Holder>, StoreError> {
        self.all(sqlx::query(include_str!("sql/holders.sql")).bind(stream.code()))
            .await
    }
}
