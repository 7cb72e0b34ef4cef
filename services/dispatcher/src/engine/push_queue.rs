//! The push queue: handing envelopes of workers that are pushed to over to Postgres.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use servo_model::{AttemptId, DispatchId, QueueId, RunId, TaskRef};
use servo_proto::v1 as pb;
use servo_queue::{NewEntry, PostgresQueue, QueueError, TaskQueue};
use tokio::sync::mpsc;
use tracing::warn;

use super::{Engine, Message};
use crate::core::{LiveAttempt, WorkerKey};
use crate::wire;

/// Envelopes that wait for the queue. Beyond that an envelope is dropped, and its task becomes
/// ready again after the start deadline.
const JOBS_QUEUED_MAX: usize = 65_536;
/// Envelopes that are enqueued by one statement.
const JOBS_PER_BATCH_MAX: usize = 256;
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// The URL of a worker and the key that signs its envelopes.
#[derive(Clone)]
pub(crate) struct PushEndpoint {
    url: Arc<str>,
    key: [u8; 32],
}

/// An envelope that the queue has stored.
#[derive(Debug, Clone)]
pub(crate) struct QueueEntry {
    pub(crate) run: RunId,
    pub(crate) task: TaskRef,
    pub(crate) attempt: AttemptId,
    pub(crate) id: QueueId,
    pub(crate) queue: Arc<str>,
}

impl QueueEntry {
    pub(crate) fn enqueued_event(&self) -> pb::DispatchEnqueued {
        pb::DispatchEnqueued {
            run_id: self.run.to_string(),
            task: Some(wire::task_ref(self.task)),
            attempt_id: self.attempt.to_string(),
            queue_entry_id: self.id.to_string(),
            queue: self.queue.to_string(),
        }
    }
}

enum Job {
    Enqueue(QueueEntry, Box<NewEntry>),
    Cancel(Arc<str>, QueueId),
}

/// The engine's side: the endpoints of workers, and the jobs for the queue.
pub(crate) struct PushQueue {
    queues: Vec<Arc<str>>,
    endpoints: HashMap<WorkerKey, PushEndpoint>,
    jobs: mpsc::Sender<Job>,
}

impl PushQueue {
    pub(crate) fn start(engine: Engine, queue: PostgresQueue, queues: Vec<Arc<str>>) -> PushQueue {
        let (jobs, inbox) = mpsc::channel(JOBS_QUEUED_MAX);
        servo_actor::spawn("push queue", run(engine, queue, inbox));
        PushQueue {
            queues,
            endpoints: HashMap::new(),
            jobs,
        }
    }

    /// Replaces all endpoints and returns the workers that have none any more.
    pub(crate) fn replace_endpoints(
        &mut self,
        endpoints: HashMap<WorkerKey, PushEndpoint>,
    ) -> Vec<WorkerKey> {
        let before = std::mem::replace(&mut self.endpoints, endpoints);
        before
            .into_keys()
            .filter(|worker| !self.endpoints.contains_key(worker))
            .collect()
    }

    /// Returns the endpoint of a worker that is pushed to.
    pub(crate) fn endpoint(&self, worker: &WorkerKey) -> Option<&PushEndpoint> {
        self.endpoints.get(worker)
    }

    pub(crate) fn enqueue(
        &self,
        live: &LiveAttempt,
        dispatch: &DispatchId,
        endpoint: &PushEndpoint,
        envelope: &pb::SignedEnvelope,
    ) {
        let id = dispatch.queue_id();
        let queue = queue_of(&self.queues, &id);
        let entry = QueueEntry {
            run: live.run,
            task: live.task,
            attempt: live.attempt_id,
            id,
            queue: queue.clone(),
        };
        let new_entry = NewEntry {
            queue,
            name: id.to_string(),
            tenant: live.tenant.clone(),
            url: endpoint.url.to_string(),
            body: envelope.encode_to_vec().into(),
            not_before: None,
        };
        if self
            .jobs
            .try_send(Job::Enqueue(entry, Box::new(new_entry)))
            .is_err()
        {
            warn!(attempt = %live.attempt_id, "too many envelopes wait for the queue; the task becomes ready again after the start deadline");
        }
    }

    /// Removes an entry that must not be started any more.
    pub(crate) fn cancel(&self, dispatch: &DispatchId) {
        let id = dispatch.queue_id();
        // An entry that stays in the queue is pushed, and its start is refused.
        let _ = self
            .jobs
            .try_send(Job::Cancel(queue_of(&self.queues, &id), id));
    }
}

impl PushEndpoint {
    pub(crate) fn new(url: &str, key: [u8; 32]) -> PushEndpoint {
        PushEndpoint {
            url: url.into(),
            key,
        }
    }

    pub(crate) fn key(&self) -> &[u8; 32] {
        &self.key
    }
}

/// Returns the names of the queues that envelopes are spread over.
pub(crate) fn queue_names(count: u8) -> Vec<Arc<str>> {
    (0..count.max(1))
        .map(|number| format!("dispatch-{number}").into())
        .collect()
}

/// Returns the queue of an entry, which depends on its id only.
pub(crate) fn queue_of(queues: &[Arc<str>], id: &QueueId) -> Arc<str> {
    let digest = servo_model::Digest::of(id.to_string());
    queues[usize::from(digest.as_bytes()[0]) % queues.len()].clone()
}

/// Enqueues and removes entries in batches, and reports the enqueued ones to the engine.
async fn run(engine: Engine, queue: PostgresQueue, mut inbox: mpsc::Receiver<Job>) {
    let mut jobs = Vec::new();
    while inbox.recv_many(&mut jobs, JOBS_PER_BATCH_MAX).await > 0 {
        let (mut entries, mut cancelled) = (Vec::new(), HashMap::new());
        for job in jobs.drain(..) {
            match job {
                Job::Enqueue(entry, new_entry) => entries.push((entry, *new_entry)),
                Job::Cancel(queue, id) => {
                    cancelled
                        .entry(queue)
                        .or_insert_with(Vec::new)
                        .push(id.to_string());
                }
            }
        }
        enqueue_batch(&engine, &queue, entries).await;
        for (name, ids) in cancelled {
            if let Err(error) = queue.delete(&name, &ids).await {
                warn!(%error, "failed to remove cancelled envelopes from the queue; their starts will be refused");
            }
        }
    }
}

/// Retries until the queue has the entries; creating an entry again under the same name is
/// idempotent. An entry that the queue rejects is skipped: its task becomes ready again when its
/// start deadline passes.
async fn enqueue_batch(
    engine: &Engine,
    queue: &PostgresQueue,
    entries: Vec<(QueueEntry, NewEntry)>,
) {
    let (mut entries, mut new_entries): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
    while !new_entries.is_empty() {
        match queue.create(&new_entries).await {
            Ok(_) => return engine.send(Message::Enqueued(entries)).await,
            Err(error) if error.is_transient() => tokio::time::sleep(RETRY_DELAY).await,
            Err(QueueError::BadTask { name, field, fault }) => {
                warn!(name, field, fault, "the queue rejected an envelope");
                new_entries.retain(|entry| entry.name != name);
                entries.retain(|entry| entry.id.to_string() != name);
            }
            Err(error) => {
                warn!(%error, "the queue rejected envelopes; their tasks become ready again after the start deadline");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use servo_queue::QueueSettings;

    use super::*;
    use crate::engine::tests::{World, message_capture};

    fn created(number: u8, url: &str) -> (QueueEntry, NewEntry) {
        let (run, attempt) = (
            RunId::from_bytes([number; 16]),
            AttemptId::from_bytes([number; 16]),
        );
        let id = DispatchId::new(&run, &"n/a:materialize".parse().unwrap(), 1).queue_id();
        let new_entry = NewEntry {
            queue: "dispatch-0".into(),
            name: id.to_string(),
            tenant: "acme".parse().unwrap(),
            url: url.to_owned(),
            body: b"body".as_slice().into(),
            not_before: None,
        };
        let task = TaskRef::planned(0);
        (
            QueueEntry {
                run,
                task,
                attempt,
                id,
                queue: "dispatch-0".into(),
            },
            new_entry,
        )
    }

    #[tokio::test]
    async fn rejected_envelope_does_not_affect_the_rest_of_its_batch() {
        let world = World::start().await;
        let queue =
            PostgresQueue::new(world.store.clone(), [QueueSettings::new("dispatch-0")]).unwrap();
        queue.ensure().await.unwrap();
        let (engine, mut messages) = message_capture();
        let far = format!("http://worker/{}", "x".repeat(servo_queue::URL_BYTES_MAX));
        let batch = vec![
            created(1, "http://worker/"),
            created(2, &far),
            created(3, "http://worker/"),
        ];
        enqueue_batch(&engine, &queue, batch).await;
        let Some(Message::Enqueued(entries)) = messages.recv().await else {
            panic!("nothing was enqueued")
        };
        let taken: Vec<_> = entries.iter().map(|entry| entry.attempt).collect();
        assert_eq!(
            taken,
            [
                AttemptId::from_bytes([1; 16]),
                AttemptId::from_bytes([3; 16])
            ]
        );
    }
}
