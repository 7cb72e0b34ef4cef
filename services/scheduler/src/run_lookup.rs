//! Which runs exist already. Queries that arrive during a statement are answered by the next one.

use std::sync::Arc;

use servo_actor::{BatchHandler, Batcher, Limits};
use servo_mesh::Error;
use servo_model::states::RunState;
use servo_model::{Digest, RunId};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_service::errors;
use servo_store::{LoopStore, StoreError};
use uuid::Uuid;

use crate::store::run_lookup as store;
pub(crate) use crate::store::run_lookup::RunQuery;
use crate::wire;

const QUERIES_PER_STATEMENT_MAX: usize = 512;
/// Queries that wait; a caller beyond it waits for capacity.
const QUERIES_QUEUED_MAX: usize = 16_384;

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

/// The handle of the lookup actor. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct RunLookup {
    batcher: Batcher<RunQuery, Answer>,
}

type Answer = Result<RunMatch, Arc<StoreError>>;

impl RunLookup {
    pub(crate) fn start(loops: LoopStore) -> RunLookup {
        let limits = Limits::items(QUERIES_PER_STATEMENT_MAX, QUERIES_QUEUED_MAX);
        RunLookup {
            batcher: Batcher::start("run lookup", limits, Finder { loops }),
        }
    }

    pub(crate) async fn find(&self, query: RunQuery) -> Result<RunMatch, Error> {
        let found = self.batcher.call(query).await;
        found
            .map_err(errors::stopped)?
            .map_err(|error| errors::shared(&error))
    }
}

struct Finder {
    loops: LoopStore,
}

impl BatchHandler for Finder {
    type Item = RunQuery;
    type Answer = Answer;

    async fn run(&mut self, queries: Vec<RunQuery>) -> Vec<Answer> {
        match find_runs(&self.loops, &queries).await {
            Ok(found) => found.into_iter().map(Ok).collect(),
            Err(error) => {
                let error = Arc::new(error);
                queries.iter().map(|_| Err(error.clone())).collect()
            }
        }
    }
}

/// Answers the queries in their order, with one statement.
pub(crate) async fn find_runs(
    loops: &LoopStore,
    queries: &[RunQuery],
) -> Result<Vec<RunMatch>, StoreError> {
    let mut matches: Vec<RunMatch> = queries.iter().map(|_| RunMatch::default()).collect();
    for row in store::find(loops, queries).await? {
        let query = usize::try_from(row.number - 1)
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

/// `None` for a row of another version, which is treated as unknown; the shard's holder refuses a
/// second run.
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
