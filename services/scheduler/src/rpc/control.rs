//! CancelRun, PauseRun and ResumeRun.

use std::sync::Arc;

use servo_mesh::{Caller, Error, Reason};
use servo_model::idempotency::IdempotencyKey;
use servo_model::{RunId, states::RunState};
use servo_proto::v1;
use servo_proto::v1::event::Body;
use ulid::Ulid;

use super::trigger_run::event_id;
use super::{Scheduler, answer, get_run};
use crate::core::{Refusal, Verdict};
use crate::shards::{Ask, DoneAs, RunEvent};

/// How often a change is tried again that another one overtook.
const RACES_MAX: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Cancel,
    Pause,
    Resume,
}

/// What is to be done with which run.
pub(super) struct Order {
    deed: Deed,
    run_id: String,
    /// 0 takes any.
    expected_version: u64,
    comment: String,
}

impl Order {
    pub(super) fn new(deed: Deed, run_id: &str, expected_version: u64, comment: &str) -> Order {
        Order { deed, run_id: run_id.to_owned(), expected_version, comment: comment.to_owned() }
    }
}

/// The run after it, and the event that records it.
pub(super) async fn control(
    scheduler: &Scheduler,
    caller: &Caller,
    tenant: &str,
    workspace: &str,
    order: Order,
) -> Result<(v1::Run, String), Error> {
    let run_id = answer::run_id(&order.run_id)?;
    let actor = v1::Actor { principal: caller.principal.clone(), comment: order.comment.clone() };
    for _ in 0..RACES_MAX {
        let run = get_run::find(scheduler, tenant, workspace, &order.run_id).await?;
        if order.expected_version != 0 && order.expected_version != run.version {
            return Err(stale(&order, run.version));
        }
        let event = event(&order, run_id, tenant, run.version + 1, actor.clone());
        let done = scheduler
            .shards
            .submit(run_id.shard(), vec![Ask::Event(event)])
            .await
            .map_err(answer::not_done)?;
        let Some(done) = done.into_iter().next() else { break };
        match done.verdict {
            DoneAs::Core(Verdict::Folded | Verdict::Duplicate) => {
                let run = get_run::find(scheduler, tenant, workspace, &order.run_id).await?;
                return Ok((run, Ulid::from(done.event_id.as_u128()).to_string()));
            }
            DoneAs::Core(Verdict::Refused(Refusal::Version(_))) => {}
            DoneAs::Core(Verdict::Refused(Refusal::RunIs(state))) => return Err(unfit(&order, state)),
            DoneAs::RunUnknown => return Err(answer::run_not_found(&order.run_id)),
            other => return Err(Error::new(Reason::Internal, format!("the shard answered {other:?}"))),
        }
    }
    Err(Error::new(Reason::VersionConflict, "others keep changing this run; read it and try again"))
}

fn event(order: &Order, run_id: RunId, tenant: &str, version: u64, actor: v1::Actor) -> Arc<RunEvent> {
    let (run, requested_by) = (run_id.to_string(), Some(actor));
    let body = match order.deed {
        Deed::Cancel => Body::RunCancelRequested(v1::RunCancelRequested {
            run_id: run,
            version,
            requested_by,
            by_system: false,
        }),
        Deed::Pause => Body::RunPaused(v1::RunPaused { run_id: run, version, requested_by }),
        Deed::Resume => Body::RunResumed(v1::RunResumed { run_id: run, version, requested_by }),
    };
    Arc::new(RunEvent {
        tenant: tenant.to_owned(),
        run_id,
        event_id: event_id(),
        idempotency_key: IdempotencyKey::run_control(&run_id, version).to_string(),
        body,
        trace: None,
    })
}

fn stale(order: &Order, version: u64) -> Error {
    let message = format!(
        "expected_version is {}, but run {} is at version {version}; read it and decide again",
        order.expected_version, order.run_id
    );
    Error::new(Reason::VersionConflict, message).with("version", version.to_string())
}

fn unfit(order: &Order, state: RunState) -> Error {
    let deed = match order.deed {
        Deed::Cancel => "cancelled",
        Deed::Pause => "paused",
        Deed::Resume => "resumed",
    };
    Error::new(Reason::InvalidState, format!("run {} is {state} and cannot be {deed}", order.run_id))
        .with("state", state.name())
}
