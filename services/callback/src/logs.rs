//! Lines that workers send, stored together; whoever follows a run's log hears that there are more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use servo_model::{AttemptId, RunId};
use servo_store::{LoopStore, Store, query};
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

const BATCHES_PER_FLUSH_MAX: usize = 256;
/// What one attempt may write to this instance.
const LINES_PER_ATTEMPT_MAX: usize = 1_000_000;
const BYTES_PER_ATTEMPT_MAX: usize = 256 << 20;
/// Attempts that are counted for at once; beyond it counting begins anew.
const ATTEMPTS_COUNTED_MAX: usize = 50_000;

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
    written: Arc<Mutex<HashMap<AttemptId, Written>>>,
}

/// What an attempt has written so far.
#[derive(Debug, Default, Clone, Copy)]
struct Written {
    lines: usize,
    bytes: usize,
}

impl Written {
    /// Counts it in if there is room.
    fn take(&mut self, lines: usize, bytes: usize) -> bool {
        let more = Written {
            lines: self.lines + lines,
            bytes: self.bytes + bytes,
        };
        let fits = more.lines <= LINES_PER_ATTEMPT_MAX && more.bytes <= BYTES_PER_ATTEMPT_MAX;
        if fits {
            *self = more;
        }
        fits
    }
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
        Logs {
            inbox,
            bells,
            written: Arc::default(),
        }
    }

    /// Whether the attempt may write so much more. A repeated call counts twice; that is as good as exact for a limit
    /// that keeps one attempt from filling the store.
    pub(crate) fn has_room(&self, attempt: AttemptId, lines: usize, bytes: usize) -> bool {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= ATTEMPTS_COUNTED_MAX {
            written.clear();
        }
        written.entry(attempt).or_default().take(lines, bytes)
    }

    /// Rings whenever this instance has stored lines of the run; bells of those who left are taken down.
    pub(crate) fn listen(&self, run: RunId) -> watch::Receiver<()> {
        let mut bells = self.bells.0.lock().unwrap_or_else(PoisonError::into_inner);
        bells.retain(|_, bell| bell.receiver_count() > 0);
        let run = Uuid::from_bytes(*run.as_bytes());
        bells
            .entry(run)
            .or_insert_with(|| watch::Sender::new(()))
            .subscribe()
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
            .bind(
                lines
                    .iter()
                    .map(|l| l.workspace.as_str())
                    .collect::<Vec<_>>(),
            )
            .bind(lines.iter().map(|l| l.run).collect::<Vec<_>>())
            .bind(lines.iter().map(|l| l.attempt).collect::<Vec<_>>())
            .bind(lines.iter().map(|l| l.session).collect::<Vec<_>>())
            .bind(lines.iter().map(|l| l.sequence).collect::<Vec<_>>())
            .bind(lines.iter().map(|l| l.lines.as_slice()).collect::<Vec<_>>());
        let stored = loops
            .execute(insert)
            .await
            .map(|_| ())
            .map_err(|error| error.to_string());
        bells.ring(lines.iter().map(|lines| lines.run));
        for reply in replies {
            let _ = reply.send(stored.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_writes_so_much_and_no_more() {
        let mut written = Written::default();
        assert!(written.take(1, BYTES_PER_ATTEMPT_MAX));
        assert!(!written.take(1, 1), "too many bytes");
        assert!(written.take(LINES_PER_ATTEMPT_MAX - 1, 0));
        assert!(!written.take(1, 0), "too many lines");
    }
}
