//! Reading the inputs of tasks outside the engine. Requests that arrive during a read form the next
//! batch.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use servo_model::{AttemptId, Digest};
use servo_store::{LoopStore, StoreError};
use tokio::sync::mpsc;
use tracing::{error, warn};

use super::{Engine, Message};
use crate::core::WorkerKey;
use crate::inputs::{self, EnvelopeInputs, InputList, VersionPart};
use crate::store;
use crate::stored_plan::StoredPlan;

/// Reads that wait. Beyond that a read is dropped, and its task becomes ready again after the start
/// deadline.
const JOBS_QUEUED_MAX: usize = 65_536;
/// Tasks whose inputs are read by one statement.
const JOBS_PER_BATCH_MAX: usize = 256;
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// Failures after which a read is given up, counting only those during which the database answered
/// other statements.
const FAILURES_MAX: u32 = 2;

/// An attempt, its plan and the ordinal of its task.
type Read = (AttemptId, Arc<StoredPlan>, u32);

enum Job {
    Read(Read),
    StoreList(AttemptId, String, EnvelopeInputs),
}

/// How far the lookup for an attempt is. It starts before the claim is answered.
enum Lookup {
    Requested,
    /// The claim was accepted, and only the inputs are missing for the envelope to this worker.
    Awaited(WorkerKey),
    Done(EnvelopeInputs),
}

/// The engine's side of the reader.
pub(crate) struct InputReader {
    jobs: mpsc::Sender<Job>,
    lookups: HashMap<AttemptId, Lookup>,
}

impl InputReader {
    pub(crate) fn start(engine: Engine, loops: LoopStore) -> InputReader {
        let (jobs, inbox) = mpsc::channel(JOBS_QUEUED_MAX);
        servo_actor::spawn("input reader", run(engine, loops, inbox));
        InputReader {
            jobs,
            lookups: HashMap::new(),
        }
    }

    /// Starts reading the inputs of a task that is being claimed.
    pub(crate) fn prefetch(&mut self, attempt: AttemptId, stored: Arc<StoredPlan>, ordinal: u32) {
        self.enqueue(
            attempt,
            Lookup::Requested,
            Job::Read((attempt, stored, ordinal)),
        );
    }

    /// Returns the inputs if they were read already. Otherwise the engine receives `InputsResolved`
    /// when they are.
    pub(crate) fn take_or_read(
        &mut self,
        worker: WorkerKey,
        attempt: AttemptId,
        stored: Arc<StoredPlan>,
        ordinal: u32,
    ) -> Option<EnvelopeInputs> {
        match self.lookups.remove(&attempt) {
            Some(Lookup::Done(found)) => return Some(found),
            Some(Lookup::Requested | Lookup::Awaited(_)) => {
                self.lookups.insert(attempt, Lookup::Awaited(worker));
            }
            None => self.enqueue(
                attempt,
                Lookup::Awaited(worker),
                Job::Read((attempt, stored, ordinal)),
            ),
        }
        None
    }

    /// Stores a list of inputs that does not fit into an envelope. The engine receives
    /// `InputsResolved` when it is done.
    pub(crate) fn store_list(
        &mut self,
        worker: WorkerKey,
        attempt: AttemptId,
        uri: String,
        found: EnvelopeInputs,
    ) {
        self.enqueue(
            attempt,
            Lookup::Awaited(worker),
            Job::StoreList(attempt, uri, found),
        );
    }

    /// Keeps the result for the envelope, or returns it with the worker whose envelope waits for
    /// it.
    pub(crate) fn resolved(
        &mut self,
        attempt: AttemptId,
        found: EnvelopeInputs,
    ) -> Option<(WorkerKey, EnvelopeInputs)> {
        match self.lookups.remove(&attempt)? {
            Lookup::Awaited(worker) => return Some((worker, found)),
            Lookup::Requested | Lookup::Done(_) => {
                self.lookups.insert(attempt, Lookup::Done(found))
            }
        };
        None
    }

    /// Returns whether an envelope was waiting for the inputs that could not be read. If none was,
    /// the claim is not answered yet and nothing is reported; the read is repeated when the
    /// envelope is built.
    pub(crate) fn failed(&mut self, attempt: AttemptId) -> bool {
        matches!(self.lookups.remove(&attempt), Some(Lookup::Awaited(_)))
    }

    /// Returns whether an envelope waits for its inputs.
    pub(crate) fn is_awaited(&self, attempt: AttemptId) -> bool {
        matches!(self.lookups.get(&attempt), Some(Lookup::Awaited(_)))
    }

    /// Drops the lookups of attempts that are no longer live.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(AttemptId) -> bool) {
        self.lookups.retain(|attempt, _| is_wanted(*attempt));
    }

    fn enqueue(&mut self, attempt: AttemptId, lookup: Lookup, job: Job) {
        if self.jobs.try_send(job).is_ok() {
            self.lookups.insert(attempt, lookup);
        } else {
            error!(%attempt, "too many reads of inputs are queued; the task becomes ready again after the start deadline");
        }
    }
}

async fn run(engine: Engine, loops: LoopStore, mut inbox: mpsc::Receiver<Job>) {
    let mut jobs = Vec::new();
    while inbox.recv_many(&mut jobs, JOBS_PER_BATCH_MAX).await > 0 {
        let mut reads = Vec::new();
        for job in jobs.drain(..) {
            match job {
                Job::Read(read) => reads.push(read),
                Job::StoreList(attempt, uri, found) => {
                    store_list(&engine, attempt, uri, found).await
                }
            }
        }
        read_batch(&engine, &loops, reads).await;
    }
}

/// Reads all in one statement. If that fails, reads them one by one in a separate task, so that one
/// bad task does not delay the others.
async fn read_batch(engine: &Engine, loops: &LoopStore, reads: Vec<Read>) {
    if reads.is_empty() {
        return;
    }
    match find_with_retry(loops, &reads).await {
        Ok(found) => engine.send(Message::InputsResolved(found)).await,
        Err(error) => {
            warn!(%error, tasks = reads.len(), "failed to read the inputs of a batch; reading them one by one");
            let each = read_each(engine.clone(), loops.clone(), reads);
            servo_actor::spawn_task("single input reads", each);
        }
    }
}

async fn read_each(engine: Engine, loops: LoopStore, reads: Vec<Read>) {
    for read in reads {
        match find_with_retry(&loops, std::slice::from_ref(&read)).await {
            Ok(found) => engine.send(Message::InputsResolved(found)).await,
            Err(error) => {
                let reason = format!(
                    "the inputs cannot be looked up: {error}; read fewer partitions at once"
                );
                engine.send(Message::Undeliverable(read.0, reason)).await;
            }
        }
    }
}

/// Retries until the failure must be caused by these tasks. While the database answers no other
/// statement either, the failure says nothing about them.
async fn find_with_retry(
    loops: &LoopStore,
    reads: &[Read],
) -> Result<Vec<(AttemptId, EnvelopeInputs)>, StoreError> {
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
        warn!(%error, "failed to read the inputs of tasks; retrying");
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

async fn find_once(
    loops: &LoopStore,
    reads: &[Read],
) -> Result<Vec<(AttemptId, EnvelopeInputs)>, StoreError> {
    let mut partitions = Vec::new();
    let mut counts = Vec::with_capacity(reads.len());
    for (_, stored, ordinal) in reads {
        let before = partitions.len();
        partitions.extend(inputs::input_partitions(
            stored,
            inputs::planned_inputs(stored, *ordinal),
        ));
        counts.push(partitions.len() - before);
        partitions.extend(inputs::compared_partition(stored, *ordinal));
    }
    let mut found = inputs::find(loops, &partitions).await?.into_iter();
    let resolve = |((attempt, stored, ordinal), count): (&Read, usize)| {
        let versions = found.by_ref().take(count).collect();
        let inputs = InputList::Inline(inputs::resolve(
            inputs::planned_inputs(stored, *ordinal),
            versions,
        ));
        let compared = inputs::compared_partition(stored, *ordinal).and_then(|_| found.next());
        // The outputs of mapped tasks together are not a version that a single task's output can be
        // compared with.
        let whole = compared
            .into_iter()
            .flatten()
            .find(|version| version.part == VersionPart::Whole);
        (
            *attempt,
            EnvelopeInputs {
                inputs,
                previous: whole.map(inputs::previous),
            },
        )
    };
    Ok(reads.iter().zip(counts).map(resolve).collect())
}

async fn store_list(engine: &Engine, attempt: AttemptId, uri: String, found: EnvelopeInputs) {
    let EnvelopeInputs { inputs, previous } = found;
    let Some(path) = uri.strip_prefix("file://").map(PathBuf::from) else {
        let reason = "the list of inputs is too long for an envelope, and longer lists are stored \
                      below a file:// base only: set attempts.output_base to one, or read fewer \
                      partitions at once";
        let reason = reason.to_owned();
        return engine.send(Message::Undeliverable(attempt, reason)).await;
    };
    let lines = match inputs::json_lines(&inputs.into_list()) {
        Ok(lines) => lines,
        Err(error) => {
            let reason = format!("the list of inputs cannot be encoded: {error}");
            return engine.send(Message::Undeliverable(attempt, reason)).await;
        }
    };
    let digest = Digest::of(&lines).to_string();
    match write_file(&path, lines).await {
        Ok(()) => {
            let inputs = InputList::Stored { uri, digest };
            let found = EnvelopeInputs { inputs, previous };
            engine
                .send(Message::InputsResolved(vec![(attempt, found)]))
                .await;
        }
        Err(error) => {
            error!(%error, uri, "failed to store a list of inputs; the task becomes ready again after the start deadline")
        }
    }
}

async fn write_file(path: &Path, lines: String) -> std::io::Result<()> {
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
    use crate::engine::tests::message_capture;
    use crate::stored_plan::PinnedVersions;

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
            workspace: "prod".to_owned(),
            assets: vec![pb::PlannedAsset::default()],
            tasks,
            ..Default::default()
        };
        let admission = Arc::new(crate::core::AdmissionPlan {
            assets: Vec::new(),
            tasks: Vec::new(),
        });
        let stored = StoredPlan {
            tenant: "acme".parse().unwrap(),
            plan,
            pinned: PinnedVersions::new(),
            admission,
            bytes: 0,
        };
        (AttemptId::from_bytes([number; 16]), Arc::new(stored), 0)
    }

    #[tokio::test]
    async fn task_with_unreadable_inputs_does_not_delay_others() {
        let database = TestDatabase::create().await.unwrap();
        let config = DatabaseConfig::new(database.service_url(), database.password());
        let store = Store::connect(servo_model::Service::Dispatcher, &config).unwrap();
        let (engine, mut messages) = message_capture();
        let reads = vec![reading(1, "k=s:1"), reading(2, "\0"), reading(3, "k=s:1")];
        read_batch(&engine, store.loops(), reads).await;
        let (mut found, mut given_up) = (Vec::new(), Vec::new());
        while found.len() + given_up.len() < 3 {
            match messages.recv().await.unwrap() {
                Message::InputsResolved(inputs) => {
                    found.extend(inputs.into_iter().map(|(attempt, _)| attempt))
                }
                Message::Undeliverable(attempt, reason) => {
                    assert!(
                        reason.starts_with("the inputs cannot be looked up"),
                        "{reason}"
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
