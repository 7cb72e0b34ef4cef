//! Streams to workers. Envelopes collect during a turn of the engine and leave in one message.

use std::collections::{BTreeSet, HashMap};

use servo_model::limits::{ENVELOPES_PER_MESSAGE_MAX, MESSAGE_BYTES_MAX};
use servo_model::{AttemptId, Timestamp};
use servo_proto::v1 as pb;
use servo_proto::v1::pull_tasks_response::Message as ToWorker;
use tokio::sync::mpsc;

use super::redirects::RedirectedWorker;
use crate::core::{Admission, Worker, WorkerKey};

/// Size limit of a message. Half of the allowed size leaves space for everything around the
/// envelopes.
const BYTES_PER_MESSAGE: usize = MESSAGE_BYTES_MAX / 2;

/// Messages that wait for a worker to read them. A worker that falls further behind is
/// disconnected, see [`WorkerStreams::flush`].
pub(crate) const RESPONSES_QUEUED_MAX: usize = 1_024;

/// A worker that opened its stream.
pub(crate) struct WorkerConnection {
    pub(crate) worker: Worker,
    /// Increases with every connection to this instance.
    pub(crate) number: u64,
    /// Attempts that the worker reports as its own.
    pub(crate) attempts: BTreeSet<AttemptId>,
    pub(crate) key: [u8; 32],
    pub(crate) responses: mpsc::Sender<pb::PullTasksResponse>,
    pub(crate) last_seen: Timestamp,
}

#[derive(Default)]
pub(crate) struct WorkerStreams {
    all: HashMap<WorkerKey, WorkerStream>,
    /// Workers with unsent envelopes or cancels.
    pending: BTreeSet<WorkerKey>,
    /// Workers whose stream is full.
    stuck: BTreeSet<WorkerKey>,
}

struct WorkerStream {
    connection: WorkerConnection,
    envelopes: Vec<pb::SignedEnvelope>,
    cancels: Vec<String>,
}

impl WorkerStreams {
    /// Replaces an earlier connection of this worker, whose stream ends. A worker with the same id
    /// in another tenant is a different worker.
    pub(crate) fn connect(&mut self, connection: WorkerConnection) {
        let new = WorkerStream {
            connection,
            envelopes: Vec::new(),
            cancels: Vec::new(),
        };
        let key = new.connection.worker.key();
        // Only the replaced connection is stuck.
        self.stuck.remove(&key);
        self.all.insert(key, new);
    }

    pub(crate) fn disconnect(&mut self, worker: &WorkerKey, connection: u64) -> bool {
        let current = self
            .all
            .get(worker)
            .is_some_and(|stream| stream.connection.number == connection);
        if current {
            self.all.remove(worker);
        }
        current
    }

    /// Records a sign of life. Returns `false` for a connection that was replaced.
    pub(crate) fn touch(&mut self, worker: &WorkerKey, connection: u64, now: Timestamp) -> bool {
        let stream = self
            .all
            .get_mut(worker)
            .filter(|stream| stream.connection.number == connection);
        stream
            .map(|stream| stream.connection.last_seen = now)
            .is_some()
    }

    /// Returns the key that signs the worker's envelopes.
    pub(crate) fn key(&self, worker: &WorkerKey) -> Option<[u8; 32]> {
        self.all.get(worker).map(|stream| stream.connection.key)
    }

    /// Iterates over the workers that were seen since `since`.
    pub(crate) fn seen_since(&self, since: Timestamp) -> impl Iterator<Item = &Worker> {
        self.all
            .values()
            .map(|stream| &stream.connection)
            .filter(move |connection| connection.last_seen >= since)
            .map(|connection| &connection.worker)
    }

    pub(crate) fn send(&mut self, worker: &WorkerKey, envelope: pb::SignedEnvelope) {
        if let Some(stream) = self.all.get_mut(worker) {
            stream.envelopes.push(envelope);
            self.pending.insert(worker.clone());
        }
    }

    pub(crate) fn cancel(&mut self, worker: &WorkerKey, attempt: AttemptId) {
        if let Some(stream) = self.all.get_mut(worker) {
            stream.cancels.push(attempt.to_string());
            self.pending.insert(worker.clone());
        }
    }

    pub(crate) fn drain(&mut self, worker: &WorkerKey, drain: pb::PullDrain) {
        self.send_message(worker, ToWorker::Drain(drain));
    }

    /// Sends a keepalive to every worker.
    pub(crate) fn send_keepalives(&mut self) {
        let workers: Vec<WorkerKey> = self.all.keys().cloned().collect();
        for worker in workers {
            self.send_message(&worker, ToWorker::Idle(pb::PullIdle {}));
        }
    }

    /// Removes the workers whose tenant is no longer admitted here. Shared workers stay.
    pub(crate) fn take_redirected(&mut self, admission: &Admission) -> Vec<RedirectedWorker> {
        let is_lost = |stream: &WorkerStream| {
            stream
                .connection
                .worker
                .tenant
                .tenant()
                .is_some_and(|tenant| !admission.holds(tenant))
        };
        let lost: Vec<WorkerKey> = self
            .all
            .iter()
            .filter(|(_, stream)| is_lost(stream))
            .map(|(key, _)| key.clone())
            .collect();
        let redirected = lost.into_iter().filter_map(|worker| {
            let responses = self.all.remove(&worker)?.connection.responses;
            let admission_shard = worker.tenant.tenant()?.admission_shard();
            Some(RedirectedWorker {
                worker,
                admission_shard,
                responses,
            })
        });
        redirected.collect()
    }

    /// Sends all collected envelopes and cancels. Removes the workers that do not read what they
    /// are sent, whose stream ends thereby, and returns them.
    pub(crate) fn flush(&mut self) -> Vec<WorkerKey> {
        for worker in std::mem::take(&mut self.pending) {
            let Some(stream) = self.all.get_mut(&worker) else {
                continue;
            };
            let envelopes = batches(std::mem::take(&mut stream.envelopes));
            let attempt_ids = std::mem::take(&mut stream.cancels);
            for envelopes in envelopes {
                self.send_message(
                    &worker,
                    ToWorker::Envelopes(pb::EnvelopeBatch { envelopes }),
                );
            }
            if !attempt_ids.is_empty() {
                let cancels = pb::CancelBatch {
                    attempt_ids,
                    grace: None,
                };
                self.send_message(&worker, ToWorker::Cancels(cancels));
            }
        }
        let stuck = std::mem::take(&mut self.stuck).into_iter();
        stuck
            .filter(|worker| self.all.remove(worker).is_some())
            .collect()
    }

    /// Sends one message without waiting. When the stream is closed, its reader reports the
    /// disconnect.
    fn send_message(&mut self, worker: &WorkerKey, message: ToWorker) {
        let Some(stream) = self.all.get(worker) else {
            return;
        };
        let sent = stream.connection.responses.try_send(pull_response(message));
        if let Err(mpsc::error::TrySendError::Full(_)) = sent {
            self.stuck.insert(worker.clone());
        }
    }
}

/// Wraps one message to a worker.
pub(super) fn pull_response(message: ToWorker) -> pb::PullTasksResponse {
    pb::PullTasksResponse {
        message: Some(message),
    }
}

/// Splits by count and by size.
fn batches(envelopes: Vec<pb::SignedEnvelope>) -> Vec<Vec<pb::SignedEnvelope>> {
    let mut batches: Vec<Vec<_>> = Vec::new();
    let mut bytes = 0;
    for envelope in envelopes {
        bytes += envelope.envelope.len();
        match batches.last_mut() {
            Some(batch)
                if batch.len() < ENVELOPES_PER_MESSAGE_MAX && bytes <= BYTES_PER_MESSAGE =>
            {
                batch.push(envelope);
            }
            _ => {
                bytes = envelope.envelope.len();
                batches.push(vec![envelope]);
            }
        }
    }
    batches
}
