//! Pushes: workers that are reached through the queue, and what is on its way there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use servo_model::{AttemptId, DispatchId, QueueId, RunId, WorkerId};
use servo_proto::v1 as pb;
use servo_queue::{NewTask, PostgresQueue, QueueError, TaskQueue};
use servo_store::{Store, StoreError};
use tokio::sync::mpsc;
use tracing::warn;

use super::engine::{Engine, Message};
use crate::core::target::allows;
use crate::core::{Live, Task, Worker, WorkerKey};
use crate::envelope::Signer;
use crate::{rpc, store, wire};

/// How often workers that were registered elsewhere are looked for.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Envelopes that are given to the queue by one statement at most.
const ENQUEUED_AT_ONCE_MAX: usize = 256;
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// A worker that listens.
pub(crate) struct Reached {
    pub(crate) worker: Worker,
    pub(crate) target: Target,
}

/// Where a worker listens, and the key of its envelopes.
#[derive(Clone)]
pub(crate) struct Target {
    url: Arc<str>,
    key: [u8; 32],
}

/// An attempt that the queue has.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) run: RunId,
    pub(crate) task: Task,
    pub(crate) attempt: AttemptId,
    pub(crate) id: QueueId,
    pub(crate) queue: Arc<str>,
}

impl Entry {
    pub(crate) fn event(&self) -> pb::DispatchEnqueued {
        pb::DispatchEnqueued {
            run_id: self.run.to_string(),
            task: Some(wire::task_ref(self.task)),
            attempt_id: self.attempt.to_string(),
            queue_entry_id: self.id.to_string(),
            queue: self.queue.to_string(),
        }
    }
}

enum Order {
    Create(Entry, Box<NewTask>),
    Drop(Arc<str>, QueueId),
}

/// The engine's side: who is reached by pushes, and the way to the queue.
pub(crate) struct Pushes {
    queues: Vec<Arc<str>>,
    targets: HashMap<WorkerKey, Target>,
    orders: mpsc::UnboundedSender<Order>,
}

impl Pushes {
    pub(crate) fn start(engine: Engine, queue: PostgresQueue, queues: Vec<Arc<str>>) -> Pushes {
        let (orders, inbox) = mpsc::unbounded_channel();
        tokio::spawn(enqueue(engine, queue, inbox));
        Pushes {
            queues,
            targets: HashMap::new(),
            orders,
        }
    }

    /// Takes the place of what was known; answers who is reached no more.
    pub(crate) fn replace(&mut self, targets: HashMap<WorkerKey, Target>) -> Vec<WorkerKey> {
        let before = std::mem::replace(&mut self.targets, targets);
        before
            .into_keys()
            .filter(|worker| !self.targets.contains_key(worker))
            .collect()
    }

    /// Where a worker listens.
    pub(crate) fn target(&self, worker: &WorkerKey) -> Option<&Target> {
        self.targets.get(worker)
    }

    pub(crate) fn create(
        &self,
        live: &Live,
        dispatch: &DispatchId,
        target: &Target,
        envelope: &pb::SignedEnvelope,
    ) {
        let id = dispatch.queue_id();
        let queue = queue_of(&self.queues, &id);
        let entry = Entry {
            run: live.run,
            task: live.task,
            attempt: live.attempt_id,
            id,
            queue: queue.clone(),
        };
        let task = NewTask {
            queue,
            name: id.to_string(),
            tenant: live.tenant.to_string(),
            url: target.url.to_string(),
            body: envelope.encode_to_vec().into(),
            not_before: None,
        };
        // The other side lives as long as the process.
        let _ = self.orders.send(Order::Create(entry, Box::new(task)));
    }

    /// Nobody shall start it any more.
    pub(crate) fn drop_entry(&self, dispatch: &DispatchId) {
        let id = dispatch.queue_id();
        let _ = self
            .orders
            .send(Order::Drop(queue_of(&self.queues, &id), id));
    }
}

impl Target {
    pub(crate) fn key(&self) -> &[u8; 32] {
        &self.key
    }
}

/// Names of the queues that envelopes are spread over.
pub(crate) fn queue_names(count: u8) -> Vec<Arc<str>> {
    (0..count.max(1))
        .map(|number| format!("dispatch-{number}").into())
        .collect()
}

/// An entry is always in the same queue, whoever asks.
pub(crate) fn queue_of(queues: &[Arc<str>], id: &QueueId) -> Arc<str> {
    let digest = servo_model::Digest::of(id.to_string());
    queues[usize::from(digest.as_bytes()[0]) % queues.len()].clone()
}

/// Gives the queue what gathered, and tells the engine what it took.
async fn enqueue(engine: Engine, queue: PostgresQueue, mut inbox: mpsc::UnboundedReceiver<Order>) {
    let mut orders = Vec::new();
    while inbox.recv_many(&mut orders, ENQUEUED_AT_ONCE_MAX).await > 0 {
        let (mut entries, mut dropped) = (Vec::new(), HashMap::new());
        for order in orders.drain(..) {
            match order {
                Order::Create(entry, task) => entries.push((entry, *task)),
                Order::Drop(queue, id) => {
                    dropped
                        .entry(queue)
                        .or_insert_with(Vec::new)
                        .push(id.to_string());
                }
            }
        }
        create(&engine, &queue, entries).await;
        for (name, ids) in dropped {
            if let Err(error) = queue.delete(&name, &ids).await {
                warn!(%error, "cancelled envelopes stay in the queue; their starts are refused");
            }
        }
    }
}

/// Tries until the queue has them: the same names again are the same entries. One that it refuses is left out, and its
/// task is ready again when nobody starts it.
async fn create(engine: &Engine, queue: &PostgresQueue, entries: Vec<(Entry, NewTask)>) {
    let (mut entries, mut tasks): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
    while !tasks.is_empty() {
        match queue.create(&tasks).await {
            Ok(_) => return engine.tell(Message::Enqueued(entries)),
            Err(error) if error.is_transient() => tokio::time::sleep(AGAIN_AFTER).await,
            Err(QueueError::BadTask { name, field, fault }) => {
                warn!(name, field, fault, "the queue refuses an envelope");
                tasks.retain(|task| task.name != name);
                entries.retain(|entry| entry.id.to_string() != name);
            }
            Err(error) => {
                warn!(%error, "the queue refuses envelopes; their tasks are ready again when nobody starts them");
                return;
            }
        }
    }
}

/// Reads who is to be pushed to.
pub(crate) async fn look(
    store: Store,
    engine: Engine,
    signer: Signer,
    allowed: Arc<[String]>,
) -> Result<(), StoreError> {
    let mut rows = store::push_workers(store.loops()).await?;
    // What an operator allowed once may have been taken back.
    rows.retain(|row| allows(&allowed, &row.push_url));
    engine.tell(Message::Reach(
        rows.into_iter()
            .filter_map(|row| reached(row, &signer))
            .collect(),
    ));
    Ok(())
}

/// A row that cannot be read is nobody.
fn reached(row: store::PushWorker, signer: &Signer) -> Option<Reached> {
    let id = WorkerId::from_bytes(*row.worker_id.as_bytes());
    let tenant = match row.tenant.as_str() {
        rpc::EVERYBODY => None,
        tenant => Some(tenant.parse().ok()?),
    };
    let info = pb::WorkerInfo::decode(&*row.info).ok()?;
    let mut worker = wire::worker(id, &row.session, tenant, &info, 0).ok()?;
    worker.draining = row.command != 0;
    let key = signer.worker_key(&row.tenant, id, &row.session);
    Some(Reached {
        worker,
        target: Target {
            url: row.push_url.into(),
            key,
        },
    })
}

#[cfg(test)]
mod tests {
    use servo_queue::QueueSettings;

    use super::*;
    use crate::loops::engine::tests::{World, listening};

    fn created(number: u8, url: &str) -> (Entry, NewTask) {
        let (run, attempt) = (
            RunId::from_bytes([number; 16]),
            AttemptId::from_bytes([number; 16]),
        );
        let id = DispatchId::new(&run, &"n/a:materialize".parse().unwrap(), 1).queue_id();
        let task = NewTask {
            queue: "dispatch-0".into(),
            name: id.to_string(),
            tenant: "acme".to_owned(),
            url: url.to_owned(),
            body: b"body".as_slice().into(),
            not_before: None,
        };
        let place = Task {
            ordinal: 0,
            map_index: None,
        };
        (
            Entry {
                run,
                task: place,
                attempt,
                id,
                queue: "dispatch-0".into(),
            },
            task,
        )
    }

    #[tokio::test]
    async fn what_the_queue_refuses_takes_nobody_along() {
        let world = World::start().await;
        let queue =
            PostgresQueue::new(world.store.clone(), [QueueSettings::new("dispatch-0")]).unwrap();
        queue.ensure().await.unwrap();
        let (engine, mut told) = listening();
        let far = format!("http://worker/{}", "x".repeat(servo_queue::URL_BYTES_MAX));
        let batch = vec![
            created(1, "http://worker/"),
            created(2, &far),
            created(3, "http://worker/"),
        ];
        create(&engine, &queue, batch).await;
        let Some(Message::Enqueued(entries)) = told.recv().await else {
            panic!("nothing was taken")
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
