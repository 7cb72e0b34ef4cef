//! Lines that workers send, stored together.

use servo_store::{LoopStore, Store, query};
use tokio::sync::{mpsc, oneshot};
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
}

impl Logs {
    pub(crate) fn start(store: &Store) -> Logs {
        let (inbox, lines) = mpsc::unbounded_channel();
        tokio::spawn(run(store.loops().clone(), lines));
        Logs { inbox }
    }

    /// Answers once the lines are stored. Lines that are stored already are not stored again.
    pub(crate) async fn append(&self, lines: Lines) -> Result<(), String> {
        let (reply, stored) = oneshot::channel();
        let stopping = || "the callback service is stopping; repeat the call".to_owned();
        self.inbox.send((lines, reply)).map_err(|_| stopping())?;
        stored.await.map_err(|_| stopping())?
    }
}

async fn run(loops: LoopStore, mut inbox: mpsc::UnboundedReceiver<(Lines, Reply)>) {
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
        for reply in replies {
            let _ = reply.send(stored.clone());
        }
    }
}
