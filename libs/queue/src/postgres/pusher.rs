//! The pusher: claims what is due by batches, under a lease, and pushes it.

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
use crate::core::{Looked, next_look};
use crate::port::QueueSettings;

/// A target answers within this, and works afterwards.
const PUSH_TIMEOUT: Duration = Duration::from_secs(10);
/// Tasks that one claim takes at most.
const CLAIM_MAX: i64 = 256;
/// A look without a ring, for the ring that was lost.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// Names are known for so long after their task's end.
const NAMES_KEPT: Duration = Duration::from_secs(3600);
/// Names that one statement forgets.
const NAMES_PER_STATEMENT_MAX: u32 = 5_000;
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// Pushes what is due. Several processes may have one: a task is with one of them at a time.
pub struct Pusher {
    queue: PostgresQueue,
    tls: Option<ClientTls>,
    timeout: Duration,
    id: Uuid,
    pushes: JoinSet<()>,
}

impl Pusher {
    /// `id` is new for every process. Without `tls` only `http://` targets can be reached.
    pub fn new(queue: PostgresQueue, tls: Option<ClientTls>, id: Uuid) -> Pusher {
        Pusher {
            queue,
            tls,
            timeout: PUSH_TIMEOUT,
            id,
            pushes: JoinSet::new(),
        }
    }

    /// How long a target may take to answer. A push whose pusher died is repeated after twice that time.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Pusher {
        Pusher { timeout, ..self }
    }

    /// Pushes until it is stopped; what is under way then ends first.
    pub async fn run(mut self, stop: CancellationToken) {
        let (ended, settled) = mpsc::unbounded_channel();
        let (loops, bell) = (self.queue.store.loops().clone(), self.queue.bell.clone());
        let settling = tokio::spawn(settle::run(
            loops,
            self.id,
            self.lease(),
            settled,
            bell.clone(),
        ));
        let listening = tokio::spawn(listen(self.queue.store.clone(), bell.clone()));
        let sender = Sender::new(self.tls.clone(), self.timeout);
        let mut swept: Option<Instant> = None;
        while !stop.is_cancelled() {
            if swept.is_none_or(|at| at.elapsed() >= SWEEP_EVERY) {
                self.sweep().await;
                swept = Some(Instant::now());
            }
            let wait = self
                .push_due(&sender, &ended)
                .await
                .unwrap_or_else(|error| {
                    debug!(%error, "the queue cannot be read just now");
                    FAILURE_PAUSE
                });
            tokio::select! {
                () = stop.cancelled() => {}
                () = bell.notified() => {}
                () = tokio::time::sleep(wait.min(SWEEP_EVERY)) => {}
            }
        }
        listening.abort();
        while self.pushes.join_next().await.is_some() {}
        drop(ended);
        if let Err(error) = settling.await {
            warn!(%error, "the last pushes could not be noted; they are repeated");
        }
    }

    /// Longer than any push lasts.
    fn lease(&self) -> Duration {
        self.timeout * 2
    }

    /// Pushes what is due in all queues; answers when to look again.
    async fn push_due(
        &mut self,
        sender: &Sender,
        ended: &mpsc::UnboundedSender<Settled>,
    ) -> Result<Duration, StoreError> {
        while self.pushes.try_join_next().is_some() {}
        let mut wait = SWEEP_EVERY;
        let settings = self.queue.settings.clone();
        for queue in settings.values() {
            let (claimed, looked) = self.claim(queue).await?;
            wait = next_look(looked).map_or(wait, |next| next.min(wait));
            claimed
                .into_iter()
                .for_each(|task| self.push(queue, task, sender, ended));
        }
        Ok(wait)
    }

    async fn claim(&self, queue: &QueueSettings) -> Result<(Vec<Claimed>, Looked), StoreError> {
        let name = &queue.name;
        let mut tx = self.queue.store.loops().begin().await?;
        let (paused, tokens) = statements::lock_queue(&mut tx, queue)
            .await?
            .unwrap_or((true, 0.0));
        let under_way = statements::under_way(&mut tx, name).await?;
        let room = i64::from(queue.max_concurrent).saturating_sub(under_way);
        let at_most = if paused {
            0
        } else {
            room.min(tokens as i64).clamp(0, CLAIM_MAX)
        };
        let claimed = match at_most {
            0 => Vec::new(),
            _ => statements::claim(&mut tx, name, at_most, tokens, self.lease(), self.id).await?,
        };
        let next_due = statements::next_due(&mut tx, name).await?;
        tx.commit().await?;
        let taken = claimed.len();
        let looked = Looked {
            paused,
            tokens: tokens - taken as f64,
            per_second: queue.max_per_second,
            has_room: room > i64::try_from(taken).unwrap_or(i64::MAX),
            next_due,
        };
        Ok((claimed, looked))
    }

    fn push(
        &mut self,
        queue: &QueueSettings,
        task: Claimed,
        sender: &Sender,
        ended: &mpsc::UnboundedSender<Settled>,
    ) {
        let (queue, sender, ended) = (queue.clone(), sender.clone(), ended.clone());
        self.pushes.spawn(async move {
            let (name, tries) = (task.name.clone(), task.tries);
            let pushed = sender.push(&queue.name, task).await;
            // Nobody listens any more only when the process ends.
            let _ = ended.send(Settled::of(&queue, name, tries, pushed));
        });
    }

    async fn sweep(&self) {
        let ensured = self.queue.ensure().await.map_err(|error| error.to_string());
        let expired = self.expire().await;
        if let Err(error) = ensured.and(expired.map_err(|error| error.to_string())) {
            debug!(error, "the queue cannot be swept just now");
        }
    }

    /// All that are over, however many ended since the last sweep: else a busy queue grows for ever.
    async fn expire(&self) -> Result<(), StoreError> {
        loop {
            let gone = statements::expire(
                self.queue.store.loops(),
                NAMES_KEPT,
                NAMES_PER_STATEMENT_MAX,
            )
            .await?;
            if gone < u64::from(NAMES_PER_STATEMENT_MAX) {
                return Ok(());
            }
        }
    }
}

/// Rings for work that other processes brought. A lost ring costs time until the next sweep, and nothing else.
async fn listen(store: Store, bell: Arc<Notify>) {
    loop {
        match store.listen(CHANNEL).await {
            Ok(mut listener) => {
                bell.notify_one();
                while listener.heard().await.is_ok() {
                    bell.notify_one();
                }
            }
            Err(error) => debug!(%error, "cannot listen just now"),
        }
        tokio::time::sleep(FAILURE_PAUSE).await;
    }
}
