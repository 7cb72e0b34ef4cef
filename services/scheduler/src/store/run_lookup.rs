//! Runs by their id or by the call that asked for them.

use servo_model::states::RunState;
use servo_model::{Digest, RunId};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::{LoopStore, StoreError, query};
use uuid::Uuid;

use crate::run_lookup::{RunMatch, RunQuery};
use crate::wire;

/// A run that exists, as far as a new request under its key must know it.
#[derive(Debug)]
pub(crate) struct ExistingRun {
    pub run_id: RunId,
    pub run_number: i64,
    pub state: RunState,
    pub requested: pb::RunRequested,
    /// The event that asked for it.
    pub event_id: Uuid,
    pub plan_id: Option<Digest>,
    pub deployment_id: String,
}

type Row = (
    i64,
    bool,
    Uuid,
    i64,
    i16,
    Vec<u8>,
    Uuid,
    Option<Vec<u8>>,
    Option<String>,
);

/// Answers in the order of the wishes, with one statement.
pub(crate) async fn find_runs(
    loops: &LoopStore,
    wanted: &[RunQuery],
) -> Result<Vec<RunMatch>, StoreError> {
    let ids = wanted
        .iter()
        .map(|run| Uuid::from_bytes(*run.run_id.as_bytes()));
    let select = query(include_str!("known_runs.sql"))
        .bind(
            wanted
                .iter()
                .map(|run| run.tenant.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(ids.collect::<Vec<_>>())
        .bind(
            wanted
                .iter()
                .map(|run| run.workspace.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(
            wanted
                .iter()
                .map(|run| run.request_id.as_deref())
                .collect::<Vec<_>>(),
        );
    let rows: Vec<Row> = loops.all(select).await?;
    let mut found: Vec<RunMatch> = wanted.iter().map(|_| RunMatch::default()).collect();
    for row in rows {
        let place = usize::try_from(row.0 - 1)
            .ok()
            .and_then(|place| found.get_mut(place));
        let (Some(place), by_request) = (place, row.1) else {
            continue;
        };
        let run = known(row);
        if by_request {
            place.by_request = run.or(place.by_request.take());
        } else {
            place.by_id = run;
        }
    }
    Ok(found)
}

/// A row that another version wrote is as good as unknown here; its shard's holder refuses a second one.
fn known(
    (_, _, run_id, run_number, state, request, event_id, plan_id, deployment_id): Row,
) -> Option<ExistingRun> {
    let Ok((Body::RunRequested(requested), _)) = wire::body_of(&request) else {
        return None;
    };
    Some(ExistingRun {
        run_id: RunId::from_bytes(run_id.into_bytes()),
        run_number,
        state: RunState::from_code(state)?,
        requested,
        event_id,
        plan_id: plan_id
            .and_then(|id| <[u8; 32]>::try_from(id).ok())
            .map(Digest::from_bytes),
        deployment_id: deployment_id.unwrap_or_default(),
    })
}
