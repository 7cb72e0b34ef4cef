//! Reading of inputs beside the engine: while one read is under way the next gathers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use servo_model::{AttemptId, Digest, WorkerId};
use servo_store::LoopStore;
use tokio::sync::mpsc;
use tracing::{error, warn};

use super::engine::{Engine, Message};
use crate::envelope::StoredPlan;
use crate::inputs::{self, Found, Inputs, Part};

/// Tasks whose inputs are read by one statement at most.
const TASKS_AT_ONCE_MAX: usize = 256;
const AGAIN_AFTER: Duration = Duration::from_millis(200);

enum Order {
    Read(AttemptId, Arc<StoredPlan>, u32),
    Store(AttemptId, String, Found),
}

/// How far the inputs of an attempt are. They are looked up while its claim is under way.
enum Looked {
    Asked,
    /// The claim counts: all that is missing for its worker's envelope.
    Awaited(WorkerId),
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
        Reading { orders, looked: HashMap::new() }
    }

    /// Looks up what a task reads that is being claimed.
    pub(crate) fn begin(&mut self, attempt: AttemptId, stored: Arc<StoredPlan>, ordinal: u32) {
        self.order(attempt, Looked::Asked, Order::Read(attempt, stored, ordinal));
    }

    /// What the task reads, or `None` and the engine will hear of it.
    pub(crate) fn take(
        &mut self,
        worker: WorkerId,
        attempt: AttemptId,
        stored: Arc<StoredPlan>,
        ordinal: u32,
    ) -> Option<Found> {
        match self.looked.remove(&attempt) {
            Some(Looked::Found(found)) => return Some(found),
            Some(Looked::Asked | Looked::Awaited(_)) => {
                self.looked.insert(attempt, Looked::Awaited(worker));
            }
            None => self.order(attempt, Looked::Awaited(worker), Order::Read(attempt, stored, ordinal)),
        }
        None
    }

    /// Puts inputs that no envelope can hold where the worker finds them; the engine will hear of it.
    pub(crate) fn store(&mut self, worker: WorkerId, attempt: AttemptId, uri: String, found: Found) {
        self.order(attempt, Looked::Awaited(worker), Order::Store(attempt, uri, found));
    }

    /// Keeps what was found for the envelope, or answers for which worker's it was awaited.
    pub(crate) fn found(&mut self, attempt: AttemptId, found: Found) -> Option<(WorkerId, Found)> {
        match self.looked.remove(&attempt)? {
            Looked::Awaited(worker) => return Some((worker, found)),
            Looked::Asked | Looked::Found(_) => self.looked.insert(attempt, Looked::Found(found)),
        };
        None
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
                Order::Read(attempt, stored, ordinal) => reads.push((attempt, stored, ordinal)),
                Order::Store(attempt, uri, found) => keep(&engine, attempt, uri, found).await,
            }
        }
        read(&engine, &loops, reads).await;
    }
}

async fn read(engine: &Engine, loops: &LoopStore, reads: Vec<(AttemptId, Arc<StoredPlan>, u32)>) {
    let mut wanted = Vec::new();
    let mut counts = Vec::with_capacity(reads.len());
    for (_, stored, ordinal) in &reads {
        let before = wanted.len();
        wanted.extend(inputs::wanted(&stored.plan, &stored.taken_over, inputs::planned(stored, *ordinal)));
        counts.push(wanted.len() - before);
        wanted.extend(inputs::compared(stored, *ordinal));
    }
    if wanted.is_empty() {
        return;
    }
    let found = loop {
        match inputs::find(loops, &wanted).await {
            Ok(found) => break found,
            Err(error) => {
                warn!(%error, "cannot read what tasks need, trying again");
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        }
    };
    let mut found = found.into_iter();
    let resolve = |((attempt, stored, ordinal), count): ((AttemptId, Arc<StoredPlan>, u32), usize)| {
        let versions = found.by_ref().take(count).collect();
        let inputs = Inputs::Inline(inputs::resolved(inputs::planned(&stored, ordinal), versions));
        let compared = inputs::compared(&stored, ordinal).and_then(|_| found.next());
        // What children made together is no version that one of them could be compared with.
        let whole = compared.into_iter().flatten().find(|version| version.part == Part::Whole);
        (attempt, Found { inputs, previous: whole.map(inputs::previous) })
    };
    engine.tell(Message::Inputs(reads.into_iter().zip(counts).map(resolve).collect()));
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
