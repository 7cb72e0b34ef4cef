//! Lines that workers send, stored together; whoever follows a run's log hears that there are more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use servo_model::RunId;
use servo_store::{LoopStore, Store, query};
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

const BATCHES_PER_FLUSH_MAX: usize = 256;

/// Lines of one call, encoded as `servo.v1.AppendLogsRequest` without its names.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) tenant: String,
    pub(crate) workspace: String,
    pub(crate) run: Uuid,
    pub(crate) attempt: Uuid,
    pub(crate) session: i64,
    pub(crate) sequence: i64,
    pub(crate) lines: Vec<u8>,
}

type Reply = oneshot::Sender<Result<(), String>>;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Logs {
    inbox: mpsc::UnboundedSender<(Lines, Reply)>,
    bells: Bells,
}

/// Rings for those who follow a run.
#[derive(Debug, Clone, Default)]
struct Bells(Arc<Mutex<HashMap<Uuid, watch::Sender<()>>>>);

impl Bells {
    fn ring(&self, runs: impl Iterator<Item = Uuid>) {
        let bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if bells.is_empty() {
            return;
        }
        for bell in runs.filter_map(|run| bells.get(&run)) {
            bell.send_replace(());
        }
    }
}

impl Logs {
    pub(crate) fn start(store: &Store) -> Logs {
        let (inbox, lines) = mpsc::unbounded_channel();
        let bells = Bells::default();
        tokio::spawn(run(store.loops().clone(), lines, bells.clone()));
        Logs { inbox, bells }
    }

    /// Rings whenever this instance has stored lines of the run; bells of those who left are taken down.
    pub(crate) fn listen(&self, run: RunId) -> watch::Receiver<()> {
        let mut bells = self.bells.0.lock().unwrap_or_else(PoisonError::into_inner);
        bells.retain(|_, bell| bell.receiver_count() > 0);
        let run = Uuid::from_bytes(*run.as_bytes());
        bells.entry(run).or_insert_with(|| watch::Sender::new(())).subscribe()
    }

    /// Answers once the lines are stored. Lines that are stored already are not stored again.
    pub(crate) async fn append(&self, lines: Lines) -> Result<(), String> {
        let (reply, stored) = oneshot::channel();
        let stopping = || "the callback service is stopping; repeat the call".to_owned();
        self.inbox.send((lines, reply)).map_err(|_| stopping())?;
        stored.await.map_err(|_| stopping())?
    }
}

async fn run(loops: LoopStore, mut inbox: mpsc::UnboundedReceiver<(Lines, Reply)>, bells: Bells) {
    while let Some(first) = inbox.recv().await {
        tokio::task::yield_now().await;
        let mut gathered = vec![first];
        while gathered.len() < BATCHES_PER_FLUSH_MAX
            && let Ok(more) = inbox.try_recv()
        {
            gathered.push(more);
        }
        let (lines, replies): (Vec<Lines>, Vec<Reply>) = gathered.into_iter().unzip();
        let insert = query(include_str!("store/append_logs.sql"))
            .bind(lines.iter().map(|l| l.tenant.as_str()).collect::<Vec<_>>())
            .bind(lines.iter().map(|l| l.workspace.as_str()).collect::<Vec<_>>())
            .bind(lines.iter().map(|l| l.run).collect::<Vec<_>>())
            .bind(lines.iter().map(|l| l.attempt).collect::<Vec<_>>())
            .bind(lines.iter().map(|l| l.session).collect::<Vec<_>>())
            .bind(lines.iter().map(|l| l.sequence).collect::<Vec<_>>())
            .bind(lines.iter().map(|l| l.lines.as_slice()).collect::<Vec<_>>());
        let stored = loops.execute(insert).await.map(|_| ()).map_err(|error| error.to_string());
        bells.ring(lines.iter().map(|lines| lines.run));
        for reply in replies {
            let _ = reply.send(stored.clone());
        }
    }
}
