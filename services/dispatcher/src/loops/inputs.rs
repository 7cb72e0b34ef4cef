//! Reading of inputs beside the engine: while one read is under way the next gathers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use servo_model::{AttemptId, Digest, WorkerId};
use servo_store::LoopStore;
use tokio::sync::mpsc;
use tracing::{error, warn};

use super::engine::{Engine, Message};
use crate::envelope::StoredPlan;
use crate::inputs::{self, Found, Inputs};

/// Tasks whose inputs are read by one statement at most.
const TASKS_AT_ONCE_MAX: usize = 256;
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// An attempt whose envelope waits for its inputs.
pub(crate) struct Waiting {
    pub(crate) worker: WorkerId,
    pub(crate) attempt: AttemptId,
}

enum Order {
    Read(Waiting, Arc<StoredPlan>, u32),
    Store(Waiting, String, Found),
}

/// The engine's side.
pub(crate) struct Reading {
    orders: mpsc::UnboundedSender<Order>,
}

impl Reading {
    pub(crate) fn start(engine: Engine, loops: LoopStore) -> Reading {
        let (orders, inbox) = mpsc::unbounded_channel();
        tokio::spawn(work(engine, loops, inbox));
        Reading { orders }
    }

    /// Looks up what the task reads; the engine will hear of it.
    pub(crate) fn read(&self, waiting: Waiting, stored: Arc<StoredPlan>, ordinal: u32) {
        // The other side lives as long as the process.
        let _ = self.orders.send(Order::Read(waiting, stored, ordinal));
    }

    /// Puts inputs that no envelope can hold where the worker finds them.
    pub(crate) fn store(&self, waiting: Waiting, uri: String, found: Found) {
        let _ = self.orders.send(Order::Store(waiting, uri, found));
    }
}

async fn work(engine: Engine, loops: LoopStore, mut inbox: mpsc::UnboundedReceiver<Order>) {
    let mut orders = Vec::new();
    while inbox.recv_many(&mut orders, TASKS_AT_ONCE_MAX).await > 0 {
        let mut reads = Vec::new();
        for order in orders.drain(..) {
            match order {
                Order::Read(waiting, stored, ordinal) => reads.push((waiting, stored, ordinal)),
                Order::Store(waiting, uri, found) => keep(&engine, waiting, uri, found).await,
            }
        }
        read(&engine, &loops, reads).await;
    }
}

async fn read(engine: &Engine, loops: &LoopStore, reads: Vec<(Waiting, Arc<StoredPlan>, u32)>) {
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
    let resolve = |((waiting, stored, ordinal), count): ((Waiting, Arc<StoredPlan>, u32), usize)| {
        let versions = found.by_ref().take(count).collect();
        let inputs = Inputs::Inline(inputs::resolved(inputs::planned(&stored, ordinal), versions));
        let compared = inputs::compared(&stored, ordinal).and_then(|_| found.next());
        (waiting, Found { inputs, previous: compared.flatten().map(inputs::previous) })
    };
    engine.tell(Message::Inputs(reads.into_iter().zip(counts).map(resolve).collect()));
}

async fn keep(engine: &Engine, waiting: Waiting, uri: String, found: Found) {
    let Found { inputs, previous } = found;
    let Some(path) = uri.strip_prefix("file://").map(PathBuf::from) else {
        return error!(uri, "inputs are too many for an envelope and can only be kept below a file:// base");
    };
    let lines = match inputs::json_lines(&inputs.into_list()) {
        Ok(lines) => lines,
        Err(error) => return error!(%error, uri, "inputs cannot be written down"),
    };
    let digest = Digest::of(&lines).to_string();
    match write(&path, lines).await {
        Ok(()) => {
            let inputs = Inputs::Stored { uri, digest };
            engine.tell(Message::Inputs(vec![(waiting, Found { inputs, previous })]));
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
