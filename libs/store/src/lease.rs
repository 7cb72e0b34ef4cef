//! Leases on shards: database time, epochs that only rise, and a fence (see [`FencedTx`](crate::FencedTx)).

use std::collections::HashMap;
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
            let fault = format!("is {ttl:?}; a stopped holder's transaction may last up to {:?}", Self::MIN);
            return Err(BadConfig { key: "lease_ttl", fault });
        }
        Ok(LeaseTtl(ttl))
    }

    pub fn get(self) -> Duration {
        self.0
    }
}

const _: () = assert!(IDLE_IN_TRANSACTION_MAX.as_millis() < LeaseTtl::MIN.as_millis());

/// How long an acquisition or renewal waits for one shard whose row an appender holds just now.
const ROW_WAIT_MS: &str = "200ms";
/// How many such shards one acquisition waits for; the next one looks at the rest.
const ROW_WAITS_MAX: usize = 8;

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

    /// How far the shard was folded when it was acquired.
    pub fn watermark(&self) -> i64 {
        self.watermark
    }

    /// Surely over by this instant of the local clock; the database may think so a little later, never earlier
    /// than it was asked.
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
    pub fn new(store: &Store, stream: Stream, holder: &str, address: &str, ttl: LeaseTtl) -> Leases {
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
        let mut taken = if shards.len() > 1 { self.acquire_free(shards, at_most).await? } else { Vec::new() };
        if taken.len() < at_most {
            let wanted: Vec<i16> =
                shards.iter().copied().filter(|shard| taken.iter().all(|t| t.shard != *shard)).collect();
            self.acquire_busy(&wanted, at_most, &mut taken).await?;
        }
        Ok(taken)
    }

    /// Prolongs these leases, and says which of them are lost.
    pub async fn renew(&self, leases: Vec<Lease>) -> Result<Renewed, StoreError> {
        let mut renewed = Renewed::default();
        let answered = if leases.len() > 1 { self.renew_rows(&leases).await? } else { HashMap::new() };
        for lease in leases {
            match answered.get(&lease.shard) {
                Some(expires) => renewed.held.push(Lease { expires: *expires, ..lease }),
                None => self.renew_waiting(lease, &mut renewed).await?,
            }
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

    /// Passes over every row that somebody has locked.
    async fn acquire_free(&self, shards: &[i16], at_most: usize) -> Result<Vec<Lease>, StoreError> {
        let mut tx = self.loops.begin().await?;
        let taken = self.acquire_in(&mut tx, shards, at_most).await?;
        tx.commit().await?;
        Ok(taken)
    }

    /// Waits a moment for each shard that is free but locked, one transaction each: an appender under load
    /// always holds the row, and a queue gets its turn where passing over never would.
    async fn acquire_busy(
        &self,
        wanted: &[i16],
        at_most: usize,
        taken: &mut Vec<Lease>,
    ) -> Result<(), StoreError> {
        for shard in self.free_among(wanted).await?.into_iter().take(ROW_WAITS_MAX) {
            if taken.len() == at_most {
                break;
            }
            let mut tx = self.begin_waiting().await?;
            match self.acquire_in(&mut tx, &[shard], 1).await {
                Ok(lease) => {
                    tx.commit().await?;
                    taken.extend(lease);
                }
                Err(StoreError::Raced(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn acquire_in(
        &self,
        tx: &mut LoopTx,
        shards: &[i16],
        at_most: usize,
    ) -> Result<Vec<Lease>, StoreError> {
        let expires = Instant::now() + self.ttl;
        let generation = self.loops.pool.generations.current();
        let acquire = sqlx::query(include_str!("sql/acquire.sql"))
            .bind(self.stream.code())
            .bind(shards)
            .bind(&*self.holder)
            .bind(&*self.address)
            .bind(self.ttl)
            .bind(i32::try_from(at_most).unwrap_or(i32::MAX));
        let rows: Vec<(i16, i64, i64)> = tx.all(acquire).await?;
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
        let mut tx = self.loops.begin().await?;
        let free = sqlx::query(include_str!("sql/free_shards.sql")).bind(self.stream.code()).bind(shards);
        let rows: Vec<(i16,)> = tx.all(free).await?;
        Ok(rows.into_iter().map(|(shard,)| shard).collect())
    }

    async fn renew_rows(&self, leases: &[Lease]) -> Result<HashMap<i16, Instant>, StoreError> {
        let mut tx = self.loops.begin().await?;
        let renewed = self.renew_in(&mut tx, leases).await?;
        tx.commit().await?;
        Ok(renewed)
    }

    async fn renew_waiting(&self, lease: Lease, renewed: &mut Renewed) -> Result<(), StoreError> {
        let mut tx = self.begin_waiting().await?;
        match self.renew_in(&mut tx, std::slice::from_ref(&lease)).await {
            Ok(answered) => {
                tx.commit().await?;
                match answered.get(&lease.shard) {
                    Some(expires) => renewed.held.push(Lease { expires: *expires, ..lease }),
                    None => renewed.lost.push(lease),
                }
            }
            // Still locked: it is not prolonged, but not lost before it runs out either.
            Err(StoreError::Raced(_)) if Instant::now() < lease.expires => renewed.held.push(lease),
            Err(StoreError::Raced(_)) => renewed.lost.push(lease),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn renew_in(&self, tx: &mut LoopTx, leases: &[Lease]) -> Result<HashMap<i16, Instant>, StoreError> {
        let expires = Instant::now() + self.ttl;
        let shards: Vec<i16> = leases.iter().map(|lease| lease.shard).collect();
        let epochs: Vec<i64> = leases.iter().map(|lease| lease.epoch).collect();
        let renew = sqlx::query(include_str!("sql/renew.sql"))
            .bind(self.stream.code())
            .bind(shards)
            .bind(epochs)
            .bind(&*self.holder)
            .bind(self.ttl);
        let rows: Vec<(i16,)> = tx.all(renew).await?;
        Ok(rows.into_iter().map(|(shard,)| (shard, expires)).collect())
    }

    async fn begin_waiting(&self) -> Result<LoopTx, StoreError> {
        let mut tx = self.loops.begin().await?;
        tx.execute(sqlx::query(include_str!("sql/set_lock_timeout.sql")).bind(ROW_WAIT_MS)).await?;
        Ok(tx)
    }
}

impl LoopStore {
    /// Who holds which shard of `stream` just now; shards without a living lease are left out.
    pub async fn holders(&self, stream: Stream) -> Result<Vec<Holder>, StoreError> {
        let mut tx = self.begin().await?;
        tx.all(sqlx::query(include_str!("sql/holders.sql")).bind(stream.code())).await
    }
}
