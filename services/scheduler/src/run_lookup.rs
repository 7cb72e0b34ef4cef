//! Which runs exist already. Queries that arrive during a statement are answered by the next one.

use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_model::states::RunState;
use servo_model::{Digest, RunId};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::{LoopStore, StoreError};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::store::run_lookup as store;
pub(crate) use crate::store::run_lookup::RunQuery;
use crate::wire;

const QUERIES_PER_STATEMENT_MAX: usize = 512;

/// An existing run, as far as a new request under its key needs it.
#[derive(Debug)]
pub(crate) struct ExistingRun {
    pub run_id: RunId,
    pub run_number: i64,
    pub state: RunState,
    pub requested: pb::RunRequested,
    /// The id of RunRequested.
    pub event_id: Uuid,
    pub plan_id: Option<Digest>,
    pub deployment_id: String,
}

/// The runs that match a query.
#[derive(Debug, Default)]
pub(crate) struct RunMatch {
    pub by_id: Option<ExistingRun>,
    pub by_request: Option<ExistingRun>,
}

type Reply = oneshot::Sender<Result<RunMatch, Arc<StoreError>>>;

/// The handle of the lookup actor. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct RunLookup {
    queries: mpsc::UnboundedSender<(RunQuery, Reply)>,
}

impl RunLookup {
    pub(crate) fn start(loops: LoopStore) -> RunLookup {
        let (queries, inbox) = mpsc::unbounded_channel();
        tokio::spawn(run(loops, inbox));
        RunLookup { queries }
    }

    pub(crate) async fn find(&self, query: RunQuery) -> Result<RunMatch, Error> {
        let (reply, answer) = oneshot::channel();
        let stopping = || Error::new(Reason::NotReady, "the scheduler is stopping; call again");
        self.queries.send((query, reply)).map_err(|_| stopping())?;
        let found = answer.await.map_err(|_| stopping())?;
        found.map_err(|error| {
            Error::new(
                Reason::NotReady,
                format!("the store does not answer: {error}"),
            )
        })
    }
}

/// Answers the queries in their order, with one statement.
pub(crate) async fn find_runs(
    loops: &LoopStore,
    queries: &[RunQuery],
) -> Result<Vec<RunMatch>, StoreError> {
    let mut matches: Vec<RunMatch> = queries.iter().map(|_| RunMatch::default()).collect();
    for row in store::find(loops, queries).await? {
        let query = usize::try_from(row.place - 1)
            .ok()
            .and_then(|index| matches.get_mut(index));
        let Some(found) = query else { continue };
        if row.by_request {
            found.by_request = existing_run(row).or(found.by_request.take());
        } else {
            found.by_id = existing_run(row);
        }
    }
    Ok(matches)
}

/// `None` for a row of another version, which is treated as unknown; the shard's holder refuses a second
/// run.
fn existing_run(row: store::FoundRun) -> Option<ExistingRun> {
    let Ok((Body::RunRequested(requested), _)) = wire::body_of(&row.request) else {
        return None;
    };
    Some(ExistingRun {
        run_id: RunId::from_bytes(row.run_id.into_bytes()),
        run_number: row.run_number,
        state: RunState::from_code(row.state)?,
        requested,
        event_id: row.request_event_id,
        plan_id: row
            .plan_id
            .and_then(|id| <[u8; 32]>::try_from(id).ok())
            .map(Digest::from_bytes),
        deployment_id: row.deployment_id.unwrap_or_default(),
    })
}

async fn run(loops: LoopStore, mut inbox: mpsc::UnboundedReceiver<(RunQuery, Reply)>) {
    while let Some(first) = inbox.recv().await {
        tokio::task::yield_now().await;
        let mut batch = vec![first];
        while batch.len() < QUERIES_PER_STATEMENT_MAX
            && let Ok(more) = inbox.try_recv()
        {
            batch.push(more);
        }
        let (queries, replies): (Vec<RunQuery>, Vec<Reply>) = batch.into_iter().unzip();
        match find_runs(&loops, &queries).await {
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
