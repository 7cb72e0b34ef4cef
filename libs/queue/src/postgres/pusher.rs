//! The pusher: claims due tasks in batches, under a lease, and pushes them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_store::{Store, StoreError};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use uuid::Uuid;

use super::send::Sender;
use super::settle::{self, Settled};
use super::statements::{self, Claimed};
use super::{CHANNEL, ClientTls, PostgresQueue};
use crate::core::{QueueStatus, next_poll};
use crate::port::QueueSettings;

/// A target must respond within this time; it does its work afterwards.
const PUSH_TIMEOUT: Duration = Duration::from_secs(10);
/// The most tasks that one claim takes.
const CLAIM_MAX: i64 = 256;
/// The poll interval, in case a notification was lost.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// How long the name of a task is kept after its end.
const NAME_RETENTION: Duration = Duration::from_secs(3600);
/// The most names that one statement deletes.
const NAMES_PER_STATEMENT_MAX: u32 = 5_000;
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// Pushes due tasks. Several processes may run one; a task is held by one of them at a time.
pub struct Pusher {
    queue: PostgresQueue,
    tls: Option<ClientTls>,
    timeout: Duration,
    id: Uuid,
    pushes: JoinSet<()>,
}

impl Pusher {
    /// `id` is unique per process. Without `tls` only `http://` targets can be reached.
    pub fn new(queue: PostgresQueue, tls: Option<ClientTls>, id: Uuid) -> Pusher {
        Pusher {
            queue,
            tls,
            timeout: PUSH_TIMEOUT,
            id,
            pushes: JoinSet::new(),
        }
    }

    /// Sets how long a target may take to respond. If a pusher dies, its pushes are repeated after
    /// twice that time.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Pusher {
        Pusher { timeout, ..self }
    }

    /// Pushes until it is stopped, and then finishes the pushes in flight.
    pub async fn run(mut self, stop: CancellationToken) {
        let (ended, settled) = mpsc::channel(settle::SETTLED_QUEUED_MAX);
        let (loops, doorbell) = (
            self.queue.store.loops().clone(),
            self.queue.doorbell.clone(),
        );
        let record = settle::run(loops, self.id, self.lease(), settled, doorbell.clone());
        let recorder = servo_actor::spawn("push recorder", record);
        let listen = listen(self.queue.store.clone(), doorbell.clone());
        let listener_task = servo_actor::spawn("queue listener", listen);
        let sender = Sender::new(self.tls.clone(), self.timeout);
        let mut swept: Option<Instant> = None;
        while !stop.is_cancelled() {
            if swept.is_none_or(|at| at.elapsed() >= POLL_INTERVAL) {
                self.sweep().await;
                swept = Some(Instant::now());
            }
            let wait = self
                .push_due(&sender, &ended)
                .await
                .unwrap_or_else(|error| {
                    debug!(%error, "failed to read the queue; retrying");
                    FAILURE_PAUSE
                });
            tokio::select! {
                () = stop.cancelled() => {}
                () = doorbell.notified() => {}
                () = tokio::time::sleep(wait.min(POLL_INTERVAL)) => {}
            }
        }
        listener_task.abort();
        while self.pushes.join_next().await.is_some() {}
        drop(ended);
        if let Err(error) = recorder.await {
            warn!(%error, "failed to record the last pushes; they are repeated");
        }
    }

    /// Longer than any push lasts.
    fn lease(&self) -> Duration {
        self.timeout * 2
    }

    /// Pushes the due tasks of all queues and returns the time until the next poll.
    async fn push_due(
        &mut self,
        sender: &Sender,
        ended: &mpsc::Sender<Settled>,
    ) -> Result<Duration, StoreError> {
        while self.pushes.try_join_next().is_some() {}
        let mut wait = POLL_INTERVAL;
        let settings = self.queue.settings.clone();
        for queue in settings.values() {
            let (claimed, status) = self.claim(queue).await?;
            wait = next_poll(status).map_or(wait, |next| next.min(wait));
            claimed
                .into_iter()
                .for_each(|task| self.push(queue, task, sender, ended));
        }
        Ok(wait)
    }

    async fn claim(
        &self,
        queue: &QueueSettings,
    ) -> Result<(Vec<Claimed>, QueueStatus), StoreError> {
        let name = &queue.name;
        let mut tx = self.queue.store.loops().begin().await?;
        let (paused, tokens) = statements::lock_queue(&mut tx, queue)
            .await?
            .unwrap_or((true, 0.0));
        let in_flight = statements::in_flight(&mut tx, name).await?;
        let capacity = i64::from(queue.max_concurrent).saturating_sub(in_flight);
        let limit = if paused {
            0
        } else {
            capacity.min(tokens as i64).clamp(0, CLAIM_MAX)
        };
        let claimed = match limit {
            0 => Vec::new(),
            _ => statements::claim(&mut tx, name, limit, tokens, self.lease(), self.id).await?,
        };
        let next_due = statements::next_due(&mut tx, name).await?;
        tx.commit().await?;
        let taken = claimed.len();
        let status = QueueStatus {
            paused,
            tokens: tokens - taken as f64,
            per_second: queue.max_per_second,
            has_capacity: capacity > i64::try_from(taken).unwrap_or(i64::MAX),
            next_due,
        };
        Ok((claimed, status))
    }

    fn push(
        &mut self,
        queue: &QueueSettings,
        task: Claimed,
        sender: &Sender,
        ended: &mpsc::Sender<Settled>,
    ) {
        let (queue, sender, ended) = (queue.clone(), sender.clone(), ended.clone());
        self.pushes.spawn(async move {
            let (name, tries) = (task.name.clone(), task.tries);
            let pushed = sender.push(&queue.name, task).await;
            // Sending fails only when the process ends.
            let _ = ended.send(Settled::of(&queue, name, tries, pushed)).await;
        });
    }

    async fn sweep(&self) {
        let ensured = self.queue.ensure().await.map_err(|error| error.to_string());
        let expired = self.expire().await;
        if let Err(error) = ensured.and(expired.map_err(|error| error.to_string())) {
            debug!(error, "failed to sweep the queue; retrying");
        }
    }

    /// Deletes all expired names, however many there are, because a busy queue would otherwise grow
    /// without bound.
    async fn expire(&self) -> Result<(), StoreError> {
        loop {
            let gone = statements::expire(
                self.queue.store.loops(),
                NAME_RETENTION,
                NAMES_PER_STATEMENT_MAX,
            )
            .await?;
            if gone < u64::from(NAMES_PER_STATEMENT_MAX) {
                return Ok(());
            }
        }
    }
}

/// Wakes the pusher when another process adds tasks. A lost notification only delays them until the
/// next poll.
async fn listen(store: Store, doorbell: Arc<Notify>) {
    loop {
        match store.listen(CHANNEL).await {
            Ok(mut listener) => {
                doorbell.notify_one();
                while listener.notified().await.is_ok() {
                    doorbell.notify_one();
                }
            }
            Err(error) => debug!(%error, "failed to listen for notifications; retrying"),
        }
        tokio::time::sleep(FAILURE_PAUSE).await;
    }
}
