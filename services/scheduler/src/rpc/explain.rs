//! Explain: why tasks are not running. The rows explain most tasks; the dispatcher explains ready
//! ones.

use servo_mesh::{Error, Reason};
use servo_model::limits::ENVELOPES_PER_MESSAGE_MAX;
use servo_model::states::{RunState, TaskState};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;

use super::Scheduler;
use super::support::{errors, pages, parse};
use crate::core::Plan;
use crate::reads::explain::{self as reads, Explainer};
use crate::reads::{runs, tasks};
use crate::store::tasks as store;
use crate::store::tasks::StoredTask;
use crate::wire;

pub(super) async fn explain(
    scheduler: &Scheduler,
    request: pb::ExplainRequest,
) -> Result<pb::ExplainResponse, Error> {
    let tenant = parse::tenant(&request.tenant)?;
    let size = pages::size(request.page_size)?;
    let list = [
        "explain",
        &request.tenant,
        &request.workspace,
        &request.run_id,
    ];
    let is_first_page = request.page_token.is_empty();
    let cursor = tasks::cursor(&scheduler.tokens, &list, &request.page_token)?;
    let mut tx = scheduler
        .reads
        .store
        .requests()
        .begin(&tenant)
        .await
        .map_err(errors::store)?;
    let run = runs::find_record(&mut tx, &request.workspace, &request.run_id).await?;
    let plan = runs::find_plan(&scheduler.reads, &tenant, &request.workspace, &run).await?;
    let state = RunState::from_code(run.state).ok_or_else(|| {
        Error::new(
            Reason::Internal,
            "the state of the run is unknown to this version",
        )
    })?;
    if let Some(reason) = &run.set_aside {
        return Ok(only(reads::set_aside(reason)));
    }
    let Some(plan) = plan else {
        return match request.task_id.as_str() {
            "" => {
                let limits = scheduler.limits_of(&tenant);
                reads::explain_queued_run(tx, &tenant, limits, state, &run)
                    .await
                    .map(only)
            }
            task_id => Err(errors::task_not_found(&request.run_id, task_id)),
        };
    };
    let (mut waiting, more) = match request.task_id.as_str() {
        "" => {
            let mut rows = store::list_open(&mut tx, run.run_number, cursor, size + 1)
                .await
                .map_err(errors::store)?;
            let more = rows.len() > size;
            rows.truncate(size);
            (rows, more)
        }
        task_id => {
            let found = tasks::find(&mut tx, &run, &plan, task_id).await?;
            let (_, found) =
                found.ok_or_else(|| errors::task_not_found(&request.run_id, task_id))?;
            (vec![found.task], false)
        }
    };
    let upstreams = reads::find_upstreams(&mut tx, &run, &plan, &waiting).await?;
    tx.commit().await.map_err(errors::store)?;
    let next = waiting
        .last()
        .filter(|_| more)
        .map(|task| format!("{}.{}", task.ordinal, task.item));
    let explainer = Explainer {
        plan: &plan,
        upstreams: &upstreams,
        run: state,
    };
    let mut explanations: Vec<pb::Explanation> = waiting
        .iter()
        .filter_map(|task| explainer.task(task))
        .collect();
    waiting.retain(|task| task.state == TaskState::Ready.code());
    ask_dispatcher(scheduler, &request, &plan, &waiting, &mut explanations).await?;
    if request.task_id.is_empty() && is_first_page {
        explanations.insert(0, reads::of_run(state));
    }
    Ok(pb::ExplainResponse {
        explanations,
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

fn only(explanation: pb::Explanation) -> pb::ExplainResponse {
    pb::ExplainResponse {
        explanations: vec![explanation],
        ..Default::default()
    }
}

/// Replaces the explanations of ready tasks by those of the dispatcher that admits them.
async fn ask_dispatcher(
    scheduler: &Scheduler,
    request: &pb::ExplainRequest,
    plan: &Plan,
    ready: &[StoredTask],
    explanations: &mut [pb::Explanation],
) -> Result<(), Error> {
    let waits =
        |explanation: &&mut pb::Explanation| explanation.reason() == pb::WaitReason::FairShare;
    let mut unknown: Vec<&mut pb::Explanation> = explanations.iter_mut().filter(waits).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let tasks = ready
        .iter()
        .take(ENVELOPES_PER_MESSAGE_MAX)
        .map(|task| wire::task_ref_to_proto(task.task_ref()))
        .collect();
    let admission = mesh_pb::ExplainAdmissionRequest {
        tenant: request.tenant.clone(),
        workspace: request.workspace.clone(),
        run_id: request.run_id.clone(),
        tasks,
    };
    let answer = scheduler
        .dispatcher
        .clone()
        .explain_admission(admission)
        .await;
    let explained = match answer {
        Ok(answer) => answer.into_inner().explanations,
        Err(status) => {
            for explanation in unknown {
                explanation.message = format!(
                    "the task is ready; the dispatcher did not answer why it waits ({})",
                    status.message()
                );
            }
            return Ok(());
        }
    };
    for ((explanation, explained), task) in unknown.iter_mut().zip(explained).zip(ready) {
        let key = plan.task_key(task.task_ref());
        **explanation = pb::Explanation {
            task_id: key.id().to_string(),
            task_key: key.to_string(),
            ..explained
        };
    }
    Ok(())
}
