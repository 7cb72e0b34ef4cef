//! Heartbeats, stored together: one statement notes who lives and finds out who must stop.

use servo_model::{AttemptId, RunId};
use servo_store::{LoopStore, Store, StoreError, query};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use crate::health::Health;
use crate::metrics::Metrics;

const BEATS_PER_FLUSH_MAX: usize = 1_024;

/// What a worker is told about its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    GoOn,
    Stop,
    /// Another attempt has taken its place, or its task has ended.
    Stale,
    Unknown,
}

#[derive(Debug, Clone)]
pub(crate) struct Beat {
    pub(crate) tenant: String,
    pub(crate) run: RunId,
    pub(crate) attempt: AttemptId,
    pub(crate) ordinal: i32,
    pub(crate) item: i32,
    /// In millionths, if user code says so.
    pub(crate) progress_ppm: Option<i32>,
    pub(crate) progress_message: Option<String>,
}

type Reply = oneshot::Sender<Result<Standing, String>>;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Beats {
    inbox: mpsc::UnboundedSender<(Beat, Reply)>,
}

impl Beats {
    pub(crate) fn start(store: &Store, health: Health, metrics: Metrics) -> Beats {
        let (inbox, beats) = mpsc::unbounded_channel();
        tokio::spawn(run(store.loops().clone(), beats, health, metrics));
        Beats { inbox }
    }

    /// Answers once the beat is stored.
    pub(crate) async fn beat(&self, beat: Beat) -> Result<Standing, String> {
        let (reply, standing) = oneshot::channel();
        let stopping = || "the callback service is stopping; repeat the call".to_owned();
        self.inbox.send((beat, reply)).map_err(|_| stopping())?;
        standing.await.map_err(|_| stopping())?
    }
}

async fn run(
    loops: LoopStore,
    mut inbox: mpsc::UnboundedReceiver<(Beat, Reply)>,
    health: Health,
    metrics: Metrics,
) {
    while let Some(first) = inbox.recv().await {
        tokio::task::yield_now().await;
        let mut gathered = vec![first];
        while gathered.len() < BEATS_PER_FLUSH_MAX
            && let Ok(more) = inbox.try_recv()
        {
            gathered.push(more);
        }
        let (beats, replies): (Vec<Beat>, Vec<Reply>) = gathered.into_iter().unzip();
        let begun = Instant::now();
        let stored = store(&loops, &beats)
            .await
            .map_err(|error| error.to_string());
        match &stored {
            Ok(_) => {
                metrics.beats.inc_by(beats.len() as u64);
                metrics
                    .beat_flush_seconds
                    .observe(begun.elapsed().as_secs_f64());
            }
            Err(_) => health.broke(),
        }
        for (index, reply) in replies.into_iter().enumerate() {
            let _ = reply.send(
                stored
                    .as_ref()
                    .map(|standings| standings[index])
                    .map_err(Clone::clone),
            );
        }
    }
}

/// attempt of the row, the task's active attempt, its state, whether it is cancelling
type Row = (Uuid, Option<Uuid>, Option<i16>, Option<bool>);

async fn store(loops: &LoopStore, beats: &[Beat]) -> Result<Vec<Standing>, StoreError> {
    let attempt = |beat: &Beat| Uuid::from_bytes(*beat.attempt.as_bytes());
    let statement = query(include_str!("store/beat.sql"))
        .bind(
            beats
                .iter()
                .map(|beat| beat.tenant.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(
            beats
                .iter()
                .map(|beat| Uuid::from_bytes(*beat.run.as_bytes()))
                .collect::<Vec<_>>(),
        )
        .bind(beats.iter().map(attempt).collect::<Vec<_>>())
        .bind(beats.iter().map(|beat| beat.ordinal).collect::<Vec<_>>())
        .bind(beats.iter().map(|beat| beat.item).collect::<Vec<_>>())
        .bind(
            beats
                .iter()
                .map(|beat| beat.progress_ppm)
                .collect::<Vec<_>>(),
        )
        .bind(
            beats
                .iter()
                .map(|beat| beat.progress_message.as_deref())
                .collect::<Vec<_>>(),
        );
    let rows: Vec<Row> = loops.all(statement).await?;
    Ok(rows.into_iter().map(standing).collect())
}

fn standing((attempt, active, state, cancelling): Row) -> Standing {
    use servo_model::states::TaskState;
    let Some(state) = state.and_then(TaskState::from_code) else {
        return Standing::Unknown;
    };
    match (active == Some(attempt) && state.has_attempt(), cancelling) {
        (true, Some(true)) => Standing::Stop,
        (true, _) => Standing::GoOn,
        (false, _) => Standing::Stale,
    }
}
