//! Shared commits: the appends of many callers in few transactions.
//!
//! While one flush is in progress the next one gathers, so that callers share the cost of a commit
//! without waiting for each other on purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::Rng;
use servo_actor::{BatchHandler, Batcher, Limits, Weight};
use servo_model::Service;
use sqlx::Postgres;
use sqlx::pool::PoolConnection;

use super::append::append_validated;
use super::{AppendError, Appended, BadEvent, EVENTS_PER_BATCH_MAX, NewEvent, validate};
use crate::error::StoreError;
use crate::pool::LoopStore;

/// The events that may wait in memory, per flusher. A caller beyond it waits for capacity.
const EVENTS_QUEUED_MAX: usize = 4_096;
/// The limits of one commit.
const EVENTS_PER_FLUSH_MAX: usize = 1_024;
const PAYLOAD_BYTES_PER_FLUSH_MAX: usize = 4 << 20;
/// How many flushes may be in progress at once, each over shards of its own, so that one is worked
/// on while another waits for the disk. Batches over shards of several flushers only wait for each
/// other's locks.
const FLUSHERS: usize = 2;
/// With fewer queued events one flusher is faster, because two would halve what a commit carries.
const EVENTS_FOR_ALL_FLUSHERS: usize = 128;
/// How long a flush is retried before its callers learn that the store is unavailable.
const RETRY_MAX: Duration = Duration::from_secs(10);
const PAUSE_MIN: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(250);

const _: () = assert!(
    EVENTS_PER_BATCH_MAX <= EVENTS_PER_FLUSH_MAX && EVENTS_PER_FLUSH_MAX <= EVENTS_QUEUED_MAX
);

const LIMITS: Limits = Limits {
    queued_max: EVENTS_QUEUED_MAX,
    batch_max: Weight {
        items: EVENTS_PER_FLUSH_MAX,
        bytes: PAYLOAD_BYTES_PER_FLUSH_MAX,
    },
};

type Answer = Result<Vec<Appended>, AppendError>;

/// Appends the events of many callers in few commits. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ledger {
    service: Service,
    flushers: Arc<[Batcher<Vec<NewEvent>, Answer>]>,
    counts: Arc<Counts>,
}

/// The work that a ledger has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerCounts {
    pub commits: u64,
    pub events: u64,
}

#[derive(Debug, Default)]
struct Counts {
    commits: AtomicU64,
    events: AtomicU64,
}

impl Ledger {
    pub(crate) fn start(loops: LoopStore, service: Service) -> Ledger {
        let counts = Arc::new(Counts::default());
        let flusher = |_| {
            let flusher = Flusher {
                loops: loops.clone(),
                counts: counts.clone(),
                connection: None,
            };
            Batcher::start("ledger flusher", LIMITS, flusher)
        };
        Ledger {
            service,
            flushers: (0..FLUSHERS).map(flusher).collect(),
            counts,
        }
    }

    /// Appends all of `events` in one commit, and answers for each in order once they are durable.
    ///
    /// After [`StoreError::Unavailable`] the outcome is unknown: append the same events again, ids
    /// included, and those that were stored answer [`AppendResult::New`](super::AppendResult::New) again.
    pub async fn append(&self, events: Vec<NewEvent>) -> Answer {
        validate(&events)?;
        self.check_writer(&events)?;
        let Some(first) = events.first() else {
            return Ok(Vec::new());
        };
        let queued: usize = self.flushers.iter().map(Batcher::queued).sum();
        let flusher = if queued > EVENTS_FOR_ALL_FLUSHERS {
            first.shard.index() % FLUSHERS
        } else {
            0
        };
        let answer = self.flushers[flusher].call(events).await;
        answer.map_err(|_| stopped())?
    }

    pub fn counts(&self) -> LedgerCounts {
        LedgerCounts {
            commits: self.counts.commits.load(Ordering::Relaxed),
            events: self.counts.events.load(Ordering::Relaxed),
        }
    }

    /// Checked before the database does, because its refusal would fail the whole flush.
    fn check_writer(&self, events: &[NewEvent]) -> Result<(), BadEvent> {
        let foreign = events
            .iter()
            .enumerate()
            .find(|(_, event)| !event.kind.writers().contains(&self.service));
        match foreign {
            Some((ordinal, event)) => {
                let fault = format!("may not be appended by service {}", self.service);
                Err(BadEvent {
                    ordinal,
                    kind: event.kind,
                    field: "kind",
                    fault,
                })
            }
            None => Ok(()),
        }
    }
}

fn stopped() -> AppendError {
    AppendError::Store(StoreError::Unavailable(
        "the ledger of this process has stopped".to_owned(),
    ))
}

struct Flusher {
    loops: LoopStore,
    counts: Arc<Counts>,
    /// Kept from flush to flush, because one warm session is worth several cold ones.
    connection: Option<PoolConnection<Postgres>>,
}

impl BatchHandler for Flusher {
    /// The events of one caller, all of them in one commit.
    type Item = Vec<NewEvent>;
    type Answer = Answer;

    fn weigh(events: &Vec<NewEvent>) -> Weight {
        Weight {
            items: events.len(),
            bytes: events.iter().map(|event| event.payload.len()).sum(),
        }
    }

    async fn run(&mut self, batches: Vec<Vec<NewEvent>>) -> Vec<Answer> {
        match self.append_with_retries(&batches).await {
            Ok(appended) => split(&batches, appended),
            // No batch is to blame: every caller may repeat its own.
            Err(StoreError::Unavailable(why)) => batches
                .iter()
                .map(|_| Err(StoreError::Unavailable(why.clone()).into()))
                .collect(),
            // One of the batches is to blame: appending each alone finds out which.
            Err(_) => {
                let mut answers = Vec::with_capacity(batches.len());
                for batch in &batches {
                    let appended = self.append_with_retries(std::slice::from_ref(batch)).await;
                    answers.push(appended.map_err(AppendError::from));
                }
                answers
            }
        }
    }

    /// Returns the session when the pool is closed.
    async fn idle(&mut self) {
        if self.connection.is_none() {
            std::future::pending::<()>().await;
        }
        self.loops.pool.inner.close_event().await;
        self.connection = None;
    }
}

impl Flusher {
    /// Retries lost races, and commits whose outcome is unknown: the event ids tell whether those
    /// were stored.
    async fn append_with_retries(
        &mut self,
        batches: &[Vec<NewEvent>],
    ) -> Result<Vec<Appended>, StoreError> {
        let events: Vec<&NewEvent> = batches.iter().flatten().collect();
        let deadline = Instant::now() + RETRY_MAX;
        let mut pause = PAUSE_MIN;
        loop {
            match self.append_once(&events).await {
                Err(error) if error.is_transient() && Instant::now() < deadline => {
                    tracing::debug!(%error, "retrying a flush");
                    let jitter = rand::rng().random_range(0.5..1.0);
                    tokio::time::sleep(pause.mul_f64(jitter)).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                Err(StoreError::Raced(why) | StoreError::Slow(why)) => {
                    return Err(StoreError::Unavailable(why));
                }
                outcome => return outcome,
            }
        }
    }

    /// One statement, hence one transaction.
    async fn append_once(&mut self, events: &[&NewEvent]) -> Result<Vec<Appended>, StoreError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.loops.pool.acquire().await?,
        };
        let answers = append_validated(&mut connection, events).await;
        let answers = answers.inspect_err(|error| self.loops.pool.generations.observe(error))?;
        self.connection = Some(connection);
        self.counts.commits.fetch_add(1, Ordering::Relaxed);
        self.counts
            .events
            .fetch_add(events.len() as u64, Ordering::Relaxed);
        Ok(answers)
    }
}

/// The database answers in the order of the events, hence in the order of the batches.
fn split(batches: &[Vec<NewEvent>], appended: Vec<Appended>) -> Vec<Answer> {
    let mut appended = appended.into_iter();
    batches
        .iter()
        .map(|batch| Ok(appended.by_ref().take(batch.len()).collect()))
        .collect()
}
