//! ExplainAdmission: why ready tasks wait, from the memory of the instance that admits them.

use servo_mesh::{Caller, Error};
use servo_model::TaskRef;
use servo_model::limits::ENVELOPES_PER_MESSAGE_MAX;
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;
use servo_service::request::tenant;

use super::Dispatcher;
use super::support::forward::{holder_elsewhere, unwrap_response};
use super::support::parse::parse_run_id;
use crate::core::{Admission, Wait};

pub(super) async fn explain_admission(
    dispatcher: &Dispatcher,
    caller: &Caller,
    request: mesh_pb::ExplainAdmissionRequest,
) -> Result<mesh_pb::ExplainAdmissionResponse, Error> {
    let tenant = tenant(&request.tenant)?;
    if let Some(mut holder) = holder_elsewhere(dispatcher, &tenant, caller).await? {
        return unwrap_response(holder.explain_admission(request).await);
    }
    let run = parse_run_id(&request.run_id)?;
    if request.tasks.len() > ENVELOPES_PER_MESSAGE_MAX {
        let rule = format!(
            "{} are too many; at most {ENVELOPES_PER_MESSAGE_MAX}",
            request.tasks.len()
        );
        return Err(Error::bad_field("tasks", rule));
    }
    let explanations = dispatcher.engine.query(move |admission, _| {
        let explain = |task: &pb::TaskRef| {
            let task = TaskRef {
                ordinal: task.ordinal,
                map_index: task.map_index,
            };
            explanation(admission, admission.explain(&tenant, run, task))
        };
        request.tasks.iter().map(explain).collect()
    });
    Ok(mesh_pb::ExplainAdmissionResponse {
        explanations: explanations.await?,
    })
}

/// Describes the obstacle in words and numbers.
fn explanation(admission: &Admission, wait: Wait) -> pb::Explanation {
    use pb::WaitReason as Reason;
    let waiting = |reason: Reason, message: String| pb::Explanation {
        state: pb::TaskState::Ready.into(),
        reason: reason.into(),
        message,
        ..pb::Explanation::default()
    };
    match wait {
        Wait::NotReady => waiting(
            Reason::WorkerStart,
            "the task is claimed, or is being sent again".to_owned(),
        ),
        Wait::LimitsUnknown => waiting(
            Reason::TaskLimit,
            "the quota service has not sent the limits yet".to_owned(),
        ),
        Wait::LiveUnknown => waiting(
            Reason::TaskLimit,
            "some execution shards have not reported their live attempts yet".to_owned(),
        ),
        Wait::Suspended => waiting(Reason::Suspended, "the tenant is suspended".to_owned()),
        Wait::PlanNotLoaded => waiting(
            Reason::Planning,
            "the run's plan is being loaded".to_owned(),
        ),
        Wait::Paused(pause) => {
            let message = format!(
                "dispatch is paused ({}); ResumeDispatch ends it",
                pause.pause_id
            );
            blocked_by(
                waiting(Reason::DispatchPaused, message),
                "pause",
                [pause.pause_id.to_string()],
            )
        }
        Wait::BudgetSpent(budget) => {
            let message = format!("budget {budget} is spent for this period");
            blocked_by(
                waiting(Reason::BudgetSpent, message),
                "budget",
                [budget.to_string()],
            )
        }
        Wait::TaskLimit { limit, used } => {
            let message = format!("{used} of {limit} attempts of the tenant are live");
            within(waiting(Reason::TaskLimit, message), limit, used)
        }
        Wait::QueueLimit { limit, used } => {
            let message = format!(
                "max_queued_tasks is {limit}: {used} attempts of the tenant are in the queue"
            );
            within(waiting(Reason::TaskLimit, message), limit, used)
        }
        Wait::PoolFull {
            pool,
            limit,
            used,
            holders,
        } => {
            let message = format!("pool {pool} has {used} of {limit} slots taken");
            let mut full = within(waiting(Reason::PoolFull, message), limit, used);
            full.blockers.push(blocker("pool", pool.to_string()));
            full.blockers.extend(
                holders
                    .iter()
                    .map(|attempt| slot_holder(admission, *attempt)),
            );
            full
        }
        Wait::BackfillCap { limit, used } => {
            let message = format!(
                "backfills hold {used} of the {limit} slots that they may hold while other runs wait"
            );
            within(waiting(Reason::BackfillCap, message), limit, used)
        }
        Wait::NoWorker => waiting(
            Reason::NoWorker,
            "no worker of this tenant is connected".to_owned(),
        ),
        Wait::NoCapableWorker { missing } => {
            let missing: Vec<String> = missing.iter().map(|name| name.to_string()).collect();
            let message = if missing.is_empty() {
                "no connected worker matches the task's workspace, pool and resources".to_owned()
            } else {
                format!("no connected worker has {}", missing.join(", "))
            };
            blocked_by(
                waiting(Reason::NoCapableWorker, message),
                "capability",
                missing,
            )
        }
        Wait::FairShare { before } => {
            let message =
                format!("no worker has a free slot; {before} tasks of the tenant are before it");
            let position = u32::try_from(before).unwrap_or(u32::MAX);
            pb::Explanation {
                position,
                ..waiting(Reason::FairShare, message)
            }
        }
    }
}

fn within(explanation: pb::Explanation, limit: u32, used: u32) -> pb::Explanation {
    pb::Explanation {
        limit: limit.into(),
        used: used.into(),
        ..explanation
    }
}

fn blocked_by(
    mut explanation: pb::Explanation,
    kind: &str,
    ids: impl IntoIterator<Item = String>,
) -> pb::Explanation {
    explanation
        .blockers
        .extend(ids.into_iter().map(|id| blocker(kind, id)));
    explanation
}

fn blocker(kind: &str, id: String) -> pb::Blocker {
    pb::Blocker {
        kind: kind.to_owned(),
        id,
        detail: String::new(),
    }
}

fn slot_holder(admission: &Admission, attempt: servo_model::AttemptId) -> pb::Blocker {
    let detail = admission.live(attempt).map(|live| {
        let held = servo_mesh::now().since(live.since).as_secs_f64();
        format!(
            "task {} of {}, for {held:.0} s",
            live.task.ordinal, live.run
        )
    });
    pb::Blocker {
        detail: detail.unwrap_or_default(),
        ..blocker("attempt", attempt.to_string())
    }
}
