//! The actor that stores heartbeats in batches. One statement records them and finds the attempts
//! that must stop.

use std::sync::Arc;

use servo_actor::{BatchHandler, Batcher, Limits};
use servo_mesh::Error;
use servo_model::states::TaskState;
use servo_service::errors;
use servo_store::{LoopStore, Store, StoreError};
use tokio::time::Instant;

use crate::loops::health::Health;
use crate::metrics::Metrics;
use crate::store::{self, Heartbeat, HeartbeatRow};

const HEARTBEATS_PER_BATCH_MAX: usize = 1_024;
/// Heartbeats that wait; a caller beyond it waits for capacity.
const HEARTBEATS_QUEUED_MAX: usize = 65_536;

/// The answer to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BeatReply {
    Continue,
    Stop,
    /// Another attempt has replaced this one, or its task has ended.
    Stale,
    Unknown,
}

/// The handle to the actor. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Heartbeats {
    batcher: Batcher<Heartbeat, Answer>,
}

type Answer = Result<BeatReply, Arc<StoreError>>;

impl Heartbeats {
    pub(crate) fn start(store: &Store, health: Health, metrics: Metrics) -> Heartbeats {
        let limits = Limits::items(HEARTBEATS_PER_BATCH_MAX, HEARTBEATS_QUEUED_MAX);
        let recorder = Recorder {
            loops: store.loops().clone(),
            health,
            metrics,
        };
        Heartbeats {
            batcher: Batcher::start("heartbeats", limits, recorder),
        }
    }

    /// Returns once the heartbeat is stored.
    pub(crate) async fn record(&self, heartbeat: Heartbeat) -> Result<BeatReply, Error> {
        let recorded = self.batcher.call(heartbeat).await;
        recorded
            .map_err(errors::stopped)?
            .map_err(|error| errors::shared(&error))
    }
}

struct Recorder {
    loops: LoopStore,
    health: Health,
    metrics: Metrics,
}

impl BatchHandler for Recorder {
    type Item = Heartbeat;
    type Answer = Answer;

    async fn run(&mut self, heartbeats: Vec<Heartbeat>) -> Vec<Answer> {
        let started = Instant::now();
        match store::record_heartbeats(&self.loops, &heartbeats).await {
            Ok(rows) => {
                self.metrics.beats.inc_by(heartbeats.len() as u64);
                self.metrics
                    .beat_flush_seconds
                    .observe(started.elapsed().as_secs_f64());
                rows.into_iter().map(|row| Ok(beat_reply(row))).collect()
            }
            Err(error) => {
                self.health.mark_interrupted();
                let error = Arc::new(error);
                vec![Err(error); heartbeats.len()]
            }
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
