//! Which runs exist already, looked up for many callers at once: while one look is under way the next gathers.

use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_model::RunId;
use servo_store::{LoopStore, StoreError};
use tokio::sync::{mpsc, oneshot};

use crate::store::{ExistingRun, find_runs};

const LOOKS_PER_STATEMENT_MAX: usize = 512;

/// A run by its id, and by the call that may have asked for it under another.
#[derive(Debug)]
pub(crate) struct RunQuery {
    pub tenant: String,
    pub workspace: String,
    pub run_id: RunId,
    pub request_id: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct RunMatch {
    pub by_id: Option<ExistingRun>,
    pub by_request: Option<ExistingRun>,
}

type Reply = oneshot::Sender<Result<RunMatch, Arc<StoreError>>>;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct RunLookup {
    looks: mpsc::UnboundedSender<(RunQuery, Reply)>,
}

impl RunLookup {
    pub(crate) fn start(loops: LoopStore) -> RunLookup {
        let (looks, inbox) = mpsc::unbounded_channel();
        tokio::spawn(run(loops, inbox));
        RunLookup { looks }
    }

    pub(crate) async fn find(&self, wanted: RunQuery) -> Result<RunMatch, Error> {
        let (reply, answer) = oneshot::channel();
        let stopping = || Error::new(Reason::NotReady, "the scheduler is stopping; call again");
        self.looks.send((wanted, reply)).map_err(|_| stopping())?;
        let found = answer.await.map_err(|_| stopping())?;
        found.map_err(|error| {
            Error::new(
                Reason::NotReady,
                format!("the store does not answer: {error}"),
            )
        })
    }
}

async fn run(loops: LoopStore, mut inbox: mpsc::UnboundedReceiver<(RunQuery, Reply)>) {
    while let Some(first) = inbox.recv().await {
        tokio::task::yield_now().await;
        let mut gathered = vec![first];
        while gathered.len() < LOOKS_PER_STATEMENT_MAX
            && let Ok(more) = inbox.try_recv()
        {
            gathered.push(more);
        }
        let (wanted, replies): (Vec<RunQuery>, Vec<Reply>) = gathered.into_iter().unzip();
        match find_runs(&loops, &wanted).await {
            Ok(found) => replies
                .into_iter()
                .zip(found)
                .for_each(|(reply, found)| drop(reply.send(Ok(found)))),
            Err(error) => {
                let error = Arc::new(error);
                replies
                    .into_iter()
                    .for_each(|reply| drop(reply.send(Err(error.clone()))));
            }
        }
    }
}
