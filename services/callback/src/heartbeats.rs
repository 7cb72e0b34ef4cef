//! The actor that stores heartbeats in batches. One statement records them and finds the attempts
//! that must stop.

use servo_model::states::TaskState;
use servo_store::{LoopStore, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::loops::health::Health;
use crate::metrics::Metrics;
use crate::store::{self, Heartbeat, HeartbeatRow};

const HEARTBEATS_PER_BATCH_MAX: usize = 1_024;

/// The answer to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BeatReply {
    Continue,
    Stop,
    /// Another attempt has replaced this one, or its task has ended.
    Stale,
    Unknown,
}

type Reply = oneshot::Sender<Result<BeatReply, String>>;

/// The handle to the actor. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Heartbeats {
    inbox: mpsc::UnboundedSender<(Heartbeat, Reply)>,
}

impl Heartbeats {
    pub(crate) fn start(store: &Store, health: Health, metrics: Metrics) -> Heartbeats {
        let (inbox, received) = mpsc::unbounded_channel();
        tokio::spawn(run(store.loops().clone(), received, health, metrics));
        Heartbeats { inbox }
    }

    /// Returns once the heartbeat is stored.
    pub(crate) async fn record(&self, heartbeat: Heartbeat) -> Result<BeatReply, String> {
        let (reply, recorded) = oneshot::channel();
        let stopping = || "the callback service is shutting down; retry".to_owned();
        self.inbox
            .send((heartbeat, reply))
            .map_err(|_| stopping())?;
        recorded.await.map_err(|_| stopping())?
    }
}

async fn run(
    loops: LoopStore,
    mut inbox: mpsc::UnboundedReceiver<(Heartbeat, Reply)>,
    health: Health,
    metrics: Metrics,
) {
    while let Some(first) = inbox.recv().await {
        tokio::task::yield_now().await;
        let mut batch = vec![first];
        while batch.len() < HEARTBEATS_PER_BATCH_MAX
            && let Ok(more) = inbox.try_recv()
        {
            batch.push(more);
        }
        let (heartbeats, replies): (Vec<Heartbeat>, Vec<Reply>) = batch.into_iter().unzip();
        let started = Instant::now();
        let stored = store::record_heartbeats(&loops, &heartbeats)
            .await
            .map_err(|error| error.to_string());
        match &stored {
            Ok(_) => {
                metrics.beats.inc_by(heartbeats.len() as u64);
                metrics
                    .beat_flush_seconds
                    .observe(started.elapsed().as_secs_f64());
            }
            Err(_) => health.mark_interrupted(),
        }
        for (index, reply) in replies.into_iter().enumerate() {
            let answer = stored.as_ref().map(|rows| beat_reply(rows[index]));
            let _ = reply.send(answer.map_err(Clone::clone));
        }
    }
}

fn beat_reply((attempt, active, state, cancelling): HeartbeatRow) -> BeatReply {
    let Some(state) = state.and_then(TaskState::from_code) else {
        return BeatReply::Unknown;
    };
    if active != Some(attempt) || !state.has_attempt() {
        return BeatReply::Stale;
    }
    if cancelling == Some(true) {
        BeatReply::Stop
    } else {
        BeatReply::Continue
    }
}
