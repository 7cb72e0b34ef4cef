//! Shared commits: while one flush is under way the next gathers, so that callers share the cost of a commit
//! without waiting for each other on purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::Rng;
use servo_model::Service;
use sqlx::Postgres;
use sqlx::pool::PoolConnection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::append::append_validated;
use super::{AppendError, Appended, BadEvent, EVENTS_PER_BATCH_MAX, NewEvent, validate};
use crate::error::StoreError;
use crate::store::LoopStore;

/// What may wait in memory; a caller beyond it waits for room.
const EVENTS_QUEUED_MAX: usize = 8_192;
/// What one commit carries at most.
const EVENTS_PER_FLUSH_MAX: usize = 1_024;
const PAYLOAD_BYTES_PER_FLUSH_MAX: usize = 4 << 20;
/// How many flushes may be under way at once, each over shards of its own, so that one is worked on while another
/// waits for the disk. Batches over shards of several lanes only wait for each other's locks.
const LANES: usize = 2;
/// With fewer events under way one lane is faster: two would halve what a commit carries.
const EVENTS_FOR_LANES: usize = 128;
/// How long a flush is repeated before its callers are told that the store is unavailable.
const FLUSH_PATIENCE: Duration = Duration::from_secs(10);
const PAUSE_MIN: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(250);

const _: () = assert!(
    EVENTS_PER_BATCH_MAX <= EVENTS_PER_FLUSH_MAX && EVENTS_PER_FLUSH_MAX <= EVENTS_QUEUED_MAX
);

type Answer = Result<Vec<Appended>, AppendError>;

/// Appends events of many callers in few commits. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ledger {
    service: Service,
    lanes: Arc<[mpsc::UnboundedSender<Batch>]>,
    room: Arc<Semaphore>,
    counts: Arc<Counts>,
}

/// What a ledger has done so far.
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

/// What one caller appends, all of it in one commit.
#[derive(Debug)]
struct Batch {
    events: Vec<NewEvent>,
    reply: oneshot::Sender<Answer>,
    /// Gives the room back when the batch is answered.
    _room: OwnedSemaphorePermit,
}

impl Ledger {
    pub(crate) fn start(loops: LoopStore, service: Service) -> Ledger {
        let counts = Arc::new(Counts::default());
        let lane = |_| {
            let (inbox, batches) = mpsc::unbounded_channel();
            let flusher = Flusher {
                loops: loops.clone(),
                counts: counts.clone(),
                connection: None,
            };
            tokio::spawn(flusher.run(batches));
            inbox
        };
        let lanes = (0..LANES).map(lane).collect();
        Ledger {
            service,
            lanes,
            room: Arc::new(Semaphore::new(EVENTS_QUEUED_MAX)),
            counts,
        }
    }

    /// Appends all of `events` in one commit, and answers for each in order once they are durable.
    ///
    /// After [`StoreError::Unavailable`] the outcome is unknown: append the same events again, ids included, and
    /// what was stored answers [`Outcome::New`](super::Outcome::New) again.
    pub async fn append(&self, events: Vec<NewEvent>) -> Answer {
        validate(&events)?;
        self.check_writer(&events)?;
        let Some(first) = events.first() else {
            return Ok(Vec::new());
        };
        let busy = self.room.available_permits() + EVENTS_FOR_LANES < EVENTS_QUEUED_MAX;
        let lane = if busy {
            usize::from(first.shard.unsigned_abs()) % LANES
        } else {
            0
        };
        let count =
            u32::try_from(events.len()).map_err(|_| AppendError::TooManyEvents(events.len()))?;
        let room = self
            .room
            .clone()
            .acquire_many_owned(count)
            .await
            .map_err(|_| stopped())?;
        let (reply, answer) = oneshot::channel();
        self.lanes[lane]
            .send(Batch {
                events,
                reply,
                _room: room,
            })
            .map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    pub fn counts(&self) -> LedgerCounts {
        LedgerCounts {
            commits: self.counts.commits.load(Ordering::Relaxed),
            events: self.counts.events.load(Ordering::Relaxed),
        }
    }

    /// The database would refuse it too, but with it the whole flush.
    fn check_writer(&self, events: &[NewEvent]) -> Result<(), BadEvent> {
        let foreign = events
            .iter()
            .enumerate()
            .find(|(_, event)| !event.kind.writers().contains(&self.service));
        match foreign {
            Some((ordinal, event)) => {
                let fault = format!("is not for service {} to append", self.service);
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
    /// Kept from flush to flush: one warm session is worth several cold ones.
    connection: Option<PoolConnection<Postgres>>,
}

impl Flusher {
    /// Ends when the last handle is dropped and everything queued is answered.
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Batch>) {
        let mut held_over = None;
        loop {
            let first = match held_over.take() {
                Some(batch) => Some(batch),
                None => self.next(&mut inbox).await,
            };
            let Some(first) = first else { return };
            // A turn, not a delay: callers who were just answered and have more can still join.
            tokio::task::yield_now().await;
            let (batches, next) = gather(first, &mut inbox);
            held_over = next;
            self.flush(batches).await;
        }
    }

    /// Waits for a batch, and gives the session back if the pool is closed meanwhile.
    async fn next(&mut self, inbox: &mut mpsc::UnboundedReceiver<Batch>) -> Option<Batch> {
        if self.connection.is_some() {
            tokio::select! {
                batch = inbox.recv() => return batch,
                () = self.loops.pool.inner.close_event() => self.connection = None,
            }
        }
        inbox.recv().await
    }

    async fn flush(&mut self, batches: Vec<Batch>) {
        match self.append_patiently(&batches).await {
            Ok(answers) => answer_each(batches, answers),
            // Nobody's fault: all are told, and may repeat.
            Err(StoreError::Unavailable(why)) => {
                for batch in batches {
                    let _ = batch
                        .reply
                        .send(Err(StoreError::Unavailable(why.clone()).into()));
                }
            }
            // Somebody's fault: each by itself finds out whose.
            Err(_) => {
                for batch in batches {
                    let answer = self.append_patiently(std::slice::from_ref(&batch)).await;
                    let _ = batch.reply.send(answer.map_err(AppendError::from));
                }
            }
        }
    }

    /// Repeats what was raced, and what may or may not have been committed: the event ids tell which.
    async fn append_patiently(&mut self, batches: &[Batch]) -> Result<Vec<Appended>, StoreError> {
        let events: Vec<&NewEvent> = batches.iter().flat_map(|batch| &batch.events).collect();
        let deadline = Instant::now() + FLUSH_PATIENCE;
        let mut pause = PAUSE_MIN;
        loop {
            match self.append_once(&events).await {
                Err(error) if error.is_transient() && Instant::now() < deadline => {
                    tracing::debug!(%error, "flush is repeated");
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
        let answers = answers.inspect_err(|error| self.loops.pool.generations.note(error))?;
        self.connection = Some(connection);
        self.counts.commits.fetch_add(1, Ordering::Relaxed);
        self.counts
            .events
            .fetch_add(events.len() as u64, Ordering::Relaxed);
        Ok(answers)
    }
}

/// Everything that waits, up to the limits of a flush; and the batch that no longer fitted.
fn gather(first: Batch, inbox: &mut mpsc::UnboundedReceiver<Batch>) -> (Vec<Batch>, Option<Batch>) {
    let (mut events, mut bytes) = first.size();
    let mut batches = vec![first];
    while let Ok(batch) = inbox.try_recv() {
        // A caller that is gone wants no answer; it could not tell whether its events were stored anyway.
        if batch.reply.is_closed() {
            continue;
        }
        let (more_events, more_bytes) = batch.size();
        if events + more_events > EVENTS_PER_FLUSH_MAX
            || bytes + more_bytes > PAYLOAD_BYTES_PER_FLUSH_MAX
        {
            return (batches, Some(batch));
        }
        events += more_events;
        bytes += more_bytes;
        batches.push(batch);
    }
    (batches, None)
}

/// Answers come in the order of the events, hence in the order of the batches.
fn answer_each(batches: Vec<Batch>, answers: Vec<Appended>) {
    let mut answers = answers.into_iter();
    for batch in batches {
        let own = answers.by_ref().take(batch.events.len()).collect();
        let _ = batch.reply.send(Ok(own));
    }
}

impl Batch {
    fn size(&self) -> (usize, usize) {
        (
            self.events.len(),
            self.events.iter().map(|event| event.payload.len()).sum(),
        )
    }
}
