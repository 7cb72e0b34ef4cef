//! Leases on shards: database time, epochs that only rise, and a fence (see [`FencedTx`](crate::FencedTx)).

use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_model::Stream;

use crate::config::BadConfig;
use crate::error::StoreError;
use crate::generation::Generation;
use crate::ownership::timeouts::IDLE_IN_TRANSACTION_MAX;
use crate::store::{LoopStore, Store};
use crate::tx::LoopTx;

/// How long a lease lives without renewal. Renew at a third of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTtl(Duration);

impl LeaseTtl {
    /// Above every role's timeouts, so that the transaction of a stopped holder dies before its lease does.
    pub const MIN: Duration = Duration::from_secs(3);

    pub fn new(ttl: Duration) -> Result<LeaseTtl, BadConfig> {
        if ttl < Self::MIN {
            let fault = format!(
                "is {ttl:?}, but the transaction of a stopped holder may live nearly {0:?}; set {0:?} or more",
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

/// How long an acquisition or renewal waits for one shard whose row an appender holds just now.
const ROW_WAIT: &str = "200ms";
/// How many such shards one acquisition waits for; the next one looks at the rest.
const ROW_WAITS_MAX: usize = 4;

/// One shard, held. Worth nothing once the epoch has moved on: only the fence decides.
#[derive(Debug, Clone)]
pub struct Lease {
    pub(crate) stream: Stream,
    pub(crate) shard: i16,
    pub(crate) epoch: i64,
    pub(crate) holder: Arc<str>,
    pub(crate) generation: Generation,
    watermark: i64,
    expires: Instant,
}

impl Lease {
    pub fn stream(&self) -> Stream {
        self.stream
    }

    pub fn shard(&self) -> i16 {
        self.shard
    }

    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// The process that holds it.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// How far the shard was folded when it was acquired.
    pub fn watermark(&self) -> i64 {
        self.watermark
    }

    /// Unless somebody released it, the database counts it as held at least until this instant of the local clock.
    pub fn expires(&self) -> Instant {
        self.expires
    }
}

/// What became of leases that were to be renewed.
#[derive(Debug, Default)]
pub struct Renewed {
    pub held: Vec<Lease>,
    pub lost: Vec<Lease>,
}

/// Who holds a shard, for passing a call on to it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Holder {
    pub shard: i16,
    pub holder: String,
    pub address: String,
    pub epoch: i64,
}

/// One process' claim on shards of one stream.
#[derive(Debug, Clone)]
pub struct Leases {
    loops: LoopStore,
    stream: Stream,
    holder: Arc<str>,
    address: Arc<str>,
    ttl: Duration,
}

impl Leases {
    /// `holder` is unique per process start, `address` is where others reach it.
    pub fn new(
        store: &Store,
        stream: Stream,
        holder: &str,
        address: &str,
        ttl: LeaseTtl,
    ) -> Leases {
        Leases {
            loops: store.loops().clone(),
            stream,
            holder: holder.into(),
            address: address.into(),
            ttl: ttl.get(),
        }
    }

    /// Takes up to `at_most` of `shards` that are free or whose lease ran out.
    pub async fn acquire(&self, shards: &[i16], at_most: usize) -> Result<Vec<Lease>, StoreError> {
        if shards.is_empty() || at_most == 0 {
            return Ok(Vec::new());
        }
        let tx = self.loops.begin().await?;
        let mut taken = self.acquire_in(tx, shards, at_most, Rows::PassOver).await?;
        if taken.len() < at_most {
            self.acquire_locked(shards, at_most, &mut taken).await?;
        }
        Ok(taken)
    }

    /// Prolongs these leases, and says which of them are lost.
    pub async fn renew(&self, leases: Vec<Lease>) -> Result<Renewed, StoreError> {
        let mut renewed = Renewed::default();
        let tx = self.loops.begin().await?;
        let passed_over = self
            .renew_in(tx, leases, Rows::PassOver, &mut renewed.held)
            .await?;
        if !passed_over.is_empty() {
            self.renew_locked(passed_over, &mut renewed).await?;
        }
        Ok(renewed)
    }

    /// Gives a shard back at once. Lost or not, it is no longer ours afterwards.
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

    /// Removes this instance, so that the others take over its share at once.
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

    /// Waits a moment for each shard that is free but locked, one transaction each: an appender under load
    /// always holds the row, and a queue gets its turn where passing over never would.
    async fn acquire_locked(
        &self,
        shards: &[i16],
        at_most: usize,
        taken: &mut Vec<Lease>,
    ) -> Result<(), StoreError> {
        for shard in self
            .free_among(shards)
            .await?
            .into_iter()
            .take(ROW_WAITS_MAX)
        {
            if taken.len() == at_most {
                break;
            }
            let tx = self.begin_waiting().await?;
            match self.acquire_in(tx, &[shard], 1, Rows::WaitFor).await {
                Ok(lease) => taken.extend(lease),
                Err(StoreError::Raced(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn acquire_in(
        &self,
        mut tx: LoopTx,
        shards: &[i16],
        at_most: usize,
        locked: Rows,
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
            .bind(locked == Rows::WaitFor);
        let rows: Vec<(i16, i64, i64)> = tx.all(acquire).await?;
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

    async fn free_among(&self, shards: &[i16]) -> Result<Vec<i16>, StoreError> {
        let free = sqlx::query(include_str!("sql/free_shards.sql"))
            .bind(self.stream.code())
            .bind(shards);
        let rows: Vec<(i16,)> = self.loops.all(free).await?;
        Ok(rows.into_iter().map(|(shard,)| shard).collect())
    }

    /// What stays locked is not prolonged, but not lost before it runs out either.
    async fn renew_locked(
        &self,
        leases: Vec<Lease>,
        renewed: &mut Renewed,
    ) -> Result<(), StoreError> {
        let tx = self.begin_waiting().await?;
        match self
            .renew_in(tx, leases.clone(), Rows::WaitFor, &mut renewed.held)
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

    /// Adds what was prolonged to `held` and answers the rest.
    async fn renew_in(
        &self,
        mut tx: LoopTx,
        leases: Vec<Lease>,
        locked: Rows,
        held: &mut Vec<Lease>,
    ) -> Result<Vec<Lease>, StoreError> {
        let expires = Instant::now() + self.ttl;
        let renew = sqlx::query(include_str!("sql/renew.sql"))
            .bind(self.stream.code())
            .bind(leases.iter().map(|lease| lease.shard).collect::<Vec<_>>())
            .bind(leases.iter().map(|lease| lease.epoch).collect::<Vec<_>>())
            .bind(&*self.holder)
            .bind(self.ttl)
            .bind(locked == Rows::WaitFor);
        let answered: Vec<(i16,)> = tx.all(renew).await?;
        tx.commit().await?;
        let (prolonged, rest): (Vec<_>, Vec<_>) = leases
            .into_iter()
            .partition(|lease| answered.contains(&(lease.shard,)));
        held.extend(
            prolonged
                .into_iter()
                .map(|lease| Lease { expires, ..lease }),
        );
        Ok(rest)
    }

    async fn begin_waiting(&self) -> Result<LoopTx, StoreError> {
        let mut tx = self.loops.begin().await?;
        tx.execute(sqlx::query(include_str!("sql/set_lock_timeout.sql")).bind(ROW_WAIT))
            .await?;
        Ok(tx)
    }
}

/// What to do about rows that somebody has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    PassOver,
    WaitFor,
}

impl LoopStore {
    /// Who holds which shard of `stream` just now; shards without a living lease are left out.
    pub async fn holders(&self, stream: Stream) -> Result<Vec<Holder>, StoreError> {
        self.all(sqlx::query(include_str!("sql/holders.sql")).bind(stream.code()))
            .await
    }
}
