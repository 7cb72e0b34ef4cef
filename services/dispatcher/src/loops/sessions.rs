//! Workers' streams: what is to be sent gathers during a turn and leaves in one message.

use std::collections::{BTreeSet, HashMap};

use servo_model::AttemptId;
use servo_model::limits::{ENVELOPES_PER_MESSAGE_MAX, MESSAGE_BYTES_MAX};
use servo_proto::v1 as pb;
use servo_proto::v1::pull_tasks_response::Message as Tell;
use tokio::sync::mpsc;

use super::engine::tell;
use crate::core::{Admission, Seconds, Worker, WorkerKey};

/// What a message may weigh; half of what is allowed leaves room for everything around the envelopes.
const BYTES_PER_MESSAGE: usize = MESSAGE_BYTES_MAX / 2;

/// A worker that opened its stream.
pub(crate) struct Connect {
    pub(crate) worker: Worker,
    /// Rises with every connection to this instance.
    pub(crate) connection: u64,
    /// Attempts it says it has.
    pub(crate) has: BTreeSet<AttemptId>,
    pub(crate) key: [u8; 32],
    pub(crate) out: mpsc::UnboundedSender<pb::PullTasksResponse>,
    pub(crate) heard: Seconds,
}

/// A worker that belongs elsewhere now.
pub(crate) struct Moved {
    pub(crate) worker: WorkerKey,
    pub(crate) admission_shard: i16,
    pub(crate) out: mpsc::UnboundedSender<pb::PullTasksResponse>,
}

#[derive(Default)]
pub(crate) struct Sessions {
    all: HashMap<WorkerKey, Session>,
    /// Those that have something to send.
    full: BTreeSet<WorkerKey>,
}

struct Session {
    connect: Connect,
    envelopes: Vec<pb::SignedEnvelope>,
    cancels: Vec<String>,
}

impl Sessions {
    /// Takes the place of an earlier connection of this worker, whose stream ends. Another tenant's worker of the same id is
    /// another worker.
    pub(crate) fn connect(&mut self, connect: Connect) {
        let new = Session {
            connect,
            envelopes: Vec::new(),
            cancels: Vec::new(),
        };
        self.all.insert(new.connect.worker.key(), new);
    }

    pub(crate) fn disconnect(&mut self, worker: &WorkerKey, connection: u64) -> bool {
        let current = self
            .all
            .get(worker)
            .is_some_and(|session| session.connect.connection == connection);
        if current {
            self.all.remove(worker);
        }
        current
    }

    /// Notes a sign of life; `false` from a connection that was replaced.
    pub(crate) fn heard(&mut self, worker: &WorkerKey, connection: u64, now: Seconds) -> bool {
        let session = self
            .all
            .get_mut(worker)
            .filter(|session| session.connect.connection == connection);
        session.map(|session| session.connect.heard = now).is_some()
    }

    /// The key of a worker's envelopes.
    pub(crate) fn key(&self, worker: &WorkerKey) -> Option<[u8; 32]> {
        self.all.get(worker).map(|session| session.connect.key)
    }

    /// Workers heard of since `since`.
    pub(crate) fn heard_since(&self, since: Seconds) -> impl Iterator<Item = &Worker> {
        self.all
            .values()
            .map(|session| &session.connect)
            .filter(move |c| c.heard >= since)
            .map(|c| &c.worker)
    }

    pub(crate) fn send(&mut self, worker: &WorkerKey, envelope: pb::SignedEnvelope) {
        if let Some(session) = self.all.get_mut(worker) {
            session.envelopes.push(envelope);
            self.full.insert(worker.clone());
        }
    }

    pub(crate) fn cancel(&mut self, worker: &WorkerKey, attempt: AttemptId) {
        if let Some(session) = self.all.get_mut(worker) {
            session.cancels.push(attempt.to_string());
            self.full.insert(worker.clone());
        }
    }

    pub(crate) fn drain(&self, worker: &WorkerKey, drain: pb::PullDrain) {
        self.tell(worker, Tell::Drain(drain));
    }

    /// Tells everybody that we are still there.
    pub(crate) fn beat(&self) {
        self.all
            .keys()
            .for_each(|worker| self.tell(worker, Tell::Idle(pb::PullIdle {})));
    }

    /// Takes out those whose tenant is no longer admitted here. Shared workers stay.
    pub(crate) fn move_away(&mut self, admission: &Admission) -> Vec<Moved> {
        let elsewhere = |session: &Session| {
            session
                .connect
                .worker
                .tenant
                .as_ref()
                .is_some_and(|tenant| !admission.holds(tenant))
        };
        let moved: Vec<WorkerKey> = self
            .all
            .iter()
            .filter(|(_, session)| elsewhere(session))
            .map(|(key, _)| key.clone())
            .collect();
        let moved = moved.into_iter().filter_map(|worker| {
            let out = self.all.remove(&worker)?.connect.out;
            let admission_shard = worker.tenant.as_ref()?.admission_shard();
            Some(Moved {
                worker,
                admission_shard,
                out,
            })
        });
        moved.collect()
    }

    /// Sends what has gathered.
    pub(crate) fn flush(&mut self) {
        for worker in std::mem::take(&mut self.full) {
            let Some(session) = self.all.get_mut(&worker) else {
                continue;
            };
            for envelopes in batches(std::mem::take(&mut session.envelopes)) {
                let _ = session
                    .connect
                    .out
                    .send(tell(Tell::Envelopes(pb::EnvelopeBatch { envelopes })));
            }
            let attempt_ids = std::mem::take(&mut session.cancels);
            if !attempt_ids.is_empty() {
                let cancels = pb::CancelBatch {
                    attempt_ids,
                    grace: None,
                };
                let _ = session.connect.out.send(tell(Tell::Cancels(cancels)));
            }
        }
    }

    /// A stream that is gone says so by itself.
    fn tell(&self, worker: &WorkerKey, message: Tell) {
        if let Some(session) = self.all.get(worker) {
            let _ = session.connect.out.send(tell(message));
        }
    }
}

/// Cuts by count and by bytes.
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
