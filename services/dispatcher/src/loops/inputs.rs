//! Reading of inputs beside the engine: while one read is under way the next gathers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use servo_model::{AttemptId, Digest};
use servo_store::{LoopStore, StoreError};
use tokio::sync::mpsc;
use tracing::{error, warn};

use super::engine::{Engine, Message};
use crate::core::WorkerKey;
use crate::envelope::StoredPlan;
use crate::inputs::{self, Found, Inputs, Part};
use crate::store;

/// Tasks whose inputs are read by one statement at most.
const TASKS_AT_ONCE_MAX: usize = 256;
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How often a read fails, while others are answered, until it is given up.
const FAILURES_MAX: u32 = 2;

/// An attempt, its plan, and the place of its task there.
type Read = (AttemptId, Arc<StoredPlan>, u32);

enum Order {
    Read(Read),
    Store(AttemptId, String, Found),
}

/// How far the inputs of an attempt are. They are looked up while its claim is under way.
enum Looked {
    Asked,
    /// The claim counts: all that is missing for its worker's envelope.
    Awaited(WorkerKey),
    Found(Found),
}

/// The engine's side.
pub(crate) struct Reading {
    orders: mpsc::UnboundedSender<Order>,
    looked: HashMap<AttemptId, Looked>,
}

impl Reading {
    pub(crate) fn start(engine: Engine, loops: LoopStore) -> Reading {
        let (orders, inbox) = mpsc::unbounded_channel();
        tokio::spawn(work(engine, loops, inbox));
        Reading {
            orders,
            looked: HashMap::new(),
        }
    }

    /// Looks up what a task reads that is being claimed.
    pub(crate) fn begin(&mut self, attempt: AttemptId, stored: Arc<StoredPlan>, ordinal: u32) {
        self.order(
            attempt,
            Looked::Asked,
            Order::Read((attempt, stored, ordinal)),
        );
    }

    /// What the task reads, or `None` and the engine will hear of it.
    pub(crate) fn take(
        &mut self,
        worker: WorkerKey,
        attempt: AttemptId,
        stored: Arc<StoredPlan>,
        ordinal: u32,
    ) -> Option<Found> {
        match self.looked.remove(&attempt) {
            Some(Looked::Found(found)) => return Some(found),
            Some(Looked::Asked | Looked::Awaited(_)) => {
                self.looked.insert(attempt, Looked::Awaited(worker));
            }
            None => self.order(
                attempt,
                Looked::Awaited(worker),
                Order::Read((attempt, stored, ordinal)),
            ),
        }
        None
    }

    /// Puts inputs that no envelope can hold where the worker finds them; the engine will hear of it.
    pub(crate) fn store(
        &mut self,
        worker: WorkerKey,
        attempt: AttemptId,
        uri: String,
        found: Found,
    ) {
        self.order(
            attempt,
            Looked::Awaited(worker),
            Order::Store(attempt, uri, found),
        );
    }

    /// Keeps what was found for the envelope, or answers for which worker's it was awaited.
    pub(crate) fn found(&mut self, attempt: AttemptId, found: Found) -> Option<(WorkerKey, Found)> {
        match self.looked.remove(&attempt)? {
            Looked::Awaited(worker) => return Some((worker, found)),
            Looked::Asked | Looked::Found(_) => self.looked.insert(attempt, Looked::Found(found)),
        };
        None
    }

    /// Whether an envelope waited for what cannot be had. Where none did, it is tried once more when one does: nothing is
    /// told of a claim that has no answer yet.
    pub(crate) fn failed(&mut self, attempt: AttemptId) -> bool {
        matches!(self.looked.remove(&attempt), Some(Looked::Awaited(_)))
    }

    /// Whether an envelope waits for what its task reads.
    pub(crate) fn is_awaited(&self, attempt: AttemptId) -> bool {
        matches!(self.looked.get(&attempt), Some(Looked::Awaited(_)))
    }

    /// Forgets attempts that came to nothing.
    pub(crate) fn keep_only(&mut self, is_wanted: impl Fn(AttemptId) -> bool) {
        self.looked.retain(|attempt, _| is_wanted(*attempt));
    }

    fn order(&mut self, attempt: AttemptId, looked: Looked, order: Order) {
        self.looked.insert(attempt, looked);
        // The other side lives as long as the process.
        let _ = self.orders.send(order);
    }
}

async fn work(engine: Engine, loops: LoopStore, mut inbox: mpsc::UnboundedReceiver<Order>) {
    let mut orders = Vec::new();
    while inbox.recv_many(&mut orders, TASKS_AT_ONCE_MAX).await > 0 {
        let mut reads = Vec::new();
        for order in orders.drain(..) {
            match order {
                Order::Read(read) => reads.push(read),
                Order::Store(attempt, uri, found) => keep(&engine, attempt, uri, found).await,
            }
        }
        read(&engine, &loops, reads).await;
    }
}

/// What cannot be read together is read one by one beside the others, so that nobody waits for a task that is not its own.
async fn read(engine: &Engine, loops: &LoopStore, reads: Vec<Read>) {
    if reads.is_empty() {
        return;
    }
    match find(loops, &reads).await {
        Ok(found) => engine.tell(Message::Inputs(found)),
        Err(error) => {
            warn!(%error, tasks = reads.len(), "cannot read together what tasks need, reading one by one");
            tokio::spawn(read_each(engine.clone(), loops.clone(), reads));
        }
    }
}

async fn read_each(engine: Engine, loops: LoopStore, reads: Vec<Read>) {
    for read in reads {
        match find(&loops, std::slice::from_ref(&read)).await {
            Ok(found) => engine.tell(Message::Inputs(found)),
            Err(error) => {
                let why = format!(
                    "what it reads cannot be looked up: {error}; read fewer partitions at once"
                );
                engine.tell(Message::Undeliverable(read.0, why));
            }
        }
    }
}

/// Tries again until it is clear that these tasks are to blame: a database that answers nobody says nothing about them.
async fn find(loops: &LoopStore, reads: &[Read]) -> Result<Vec<(AttemptId, Found)>, StoreError> {
    let mut failures = 0;
    loop {
        let error = match find_once(loops, reads).await {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        failures += u32::from(store::heads(loops).await.is_ok());
        if failures >= FAILURES_MAX {
            return Err(error);
        }
        warn!(%error, "cannot read what tasks need, trying again");
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

async fn find_once(
    loops: &LoopStore,
    reads: &[Read],
) -> Result<Vec<(AttemptId, Found)>, StoreError> {
    let mut wanted = Vec::new();
    let mut counts = Vec::with_capacity(reads.len());
    for (_, stored, ordinal) in reads {
        let before = wanted.len();
        wanted.extend(inputs::wanted(
            &stored.plan,
            &stored.taken_over,
            inputs::planned(stored, *ordinal),
        ));
        counts.push(wanted.len() - before);
        wanted.extend(inputs::compared(stored, *ordinal));
    }
    let mut found = inputs::find(loops, &wanted).await?.into_iter();
    let resolve = |((attempt, stored, ordinal), count): (&Read, usize)| {
        let versions = found.by_ref().take(count).collect();
        let inputs = Inputs::Inline(inputs::resolved(
            inputs::planned(stored, *ordinal),
            versions,
        ));
        let compared = inputs::compared(stored, *ordinal).and_then(|_| found.next());
        // What children made together is no version that one of them could be compared with.
        let whole = compared
            .into_iter()
            .flatten()
            .find(|version| version.part == Part::Whole);
        (
            *attempt,
            Found {
                inputs,
                previous: whole.map(inputs::previous),
            },
        )
    };
    Ok(reads.iter().zip(counts).map(resolve).collect())
}

async fn keep(engine: &Engine, attempt: AttemptId, uri: String, found: Found) {
    let Found { inputs, previous } = found;
    let Some(path) = uri.strip_prefix("file://").map(PathBuf::from) else {
        let why = "what it reads is too much for an envelope, and lists of inputs are kept below a file:// base only: set \
                   dispatcher.output_base to one, or read fewer partitions at once";
        return engine.tell(Message::Undeliverable(attempt, why.to_owned()));
    };
    let lines = match inputs::json_lines(&inputs.into_list()) {
        Ok(lines) => lines,
        Err(error) => {
            let why = format!("what it reads cannot be written down: {error}");
            return engine.tell(Message::Undeliverable(attempt, why));
        }
    };
    let digest = Digest::of(&lines).to_string();
    match write(&path, lines).await {
        Ok(()) => {
            let inputs = Inputs::Stored { uri, digest };
            engine.tell(Message::Inputs(vec![(attempt, Found { inputs, previous })]));
        }
        Err(error) => {
            error!(%error, uri, "inputs cannot be kept; the task is ready again when nobody starts it")
        }
    }
}

async fn write(path: &Path, lines: String) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        tokio::fs::create_dir_all(folder).await?;
    }
    tokio::fs::write(path, lines).await
}

#[cfg(test)]
mod tests {
    use servo_local::TestDatabase;
    use servo_proto::v1 as pb;
    use servo_store::{DatabaseConfig, Store};

    use super::*;
    use crate::inputs::TakenOver;
    use crate::loops::engine::tests::listening;

    /// A task that reads one partition.
    fn reading(number: u8, partition_key: &str) -> Read {
        let input = pb::PlannedInput {
            asset_key: "n/a".to_owned(),
            partition_keys: vec![partition_key.to_owned()],
            ..Default::default()
        };
        let tasks = vec![pb::PlannedTask {
            inputs: vec![input],
            ..Default::default()
        }];
        let plan = pb::Plan {
            tenant: "acme".to_owned(),
            workspace: "prod".to_owned(),
            assets: vec![pb::PlannedAsset::default()],
            tasks,
            ..Default::default()
        };
        let shape = Arc::new(crate::core::Shape {
            assets: Vec::new(),
            tasks: Vec::new(),
        });
        let stored = StoredPlan {
            plan,
            taken_over: TakenOver::new(),
            shape,
            bytes: 0,
        };
        (AttemptId::from_bytes([number; 16]), Arc::new(stored), 0)
    }

    #[tokio::test]
    async fn a_task_whose_inputs_cannot_be_read_holds_up_nobody_else() {
        let database = TestDatabase::create().await.unwrap();
        let config = DatabaseConfig::new(database.service_url(), database.password());
        let store = Store::connect(servo_model::Service::Dispatcher, &config).unwrap();
        let (engine, mut told) = listening();
        let reads = vec![reading(1, "k=s:1"), reading(2, "\0"), reading(3, "k=s:1")];
        read(&engine, store.loops(), reads).await;
        let (mut found, mut given_up) = (Vec::new(), Vec::new());
        while found.len() + given_up.len() < 3 {
            match told.recv().await.unwrap() {
                Message::Inputs(inputs) => {
                    found.extend(inputs.into_iter().map(|(attempt, _)| attempt))
                }
                Message::Undeliverable(attempt, why) => {
                    assert!(
                        why.starts_with("what it reads cannot be looked up"),
                        "{why}"
                    );
                    given_up.push(attempt);
                }
                _ => {}
            }
        }
        let id = |number: u8| AttemptId::from_bytes([number; 16]);
        assert_eq!((found, given_up), (vec![id(1), id(3)], vec![id(2)]));
    }
}
