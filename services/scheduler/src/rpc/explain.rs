//! Explain: why tasks are not running. Rows say what a run knows; about ready tasks the dispatcher is asked.

use servo_model::TaskRef;
use std::collections::{BTreeMap, BTreeSet};

use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_model::limits::ENVELOPES_PER_MESSAGE_MAX;
use servo_model::states::{Machine, RunState, TaskState};
use servo_proto::v1 as pb;
use servo_store::{TenantTx, query};

use super::{Scheduler, answer, get_run, run_limit, tasks};
use crate::core::{Plan, TaskRow, Wait, wait_of};
use crate::store::StoredTask;
use crate::wire::{self, RunRecord};

/// How many upstreams an explanation names.
const BLOCKERS_MAX: usize = 10;

pub(super) async fn explain(
    scheduler: &Scheduler,
    request: pb::ExplainRequest,
) -> Result<pb::ExplainResponse, Error> {
    let size = page_size(request.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let list = [
        "explain",
        &request.tenant,
        &request.workspace,
        &request.run_id,
    ];
    let first = request.page_token.is_empty();
    let after = tasks::after(&scheduler.tokens, &list, &request.page_token)?;
    let mut tx = scheduler
        .store
        .requests()
        .begin(&request.tenant)
        .await
        .map_err(answer::store)?;
    let row = get_run::row(&mut tx, &request.workspace, &request.run_id).await?;
    let plan = get_run::plan(scheduler, &request.tenant, &request.workspace, &row).await?;
    let state = RunState::from_code(row.state).ok_or_else(|| {
        Error::new(
            Reason::Internal,
            "the run is in a state that this version does not know",
        )
    })?;
    if let Some(reason) = &row.set_aside {
        return Ok(pb::ExplainResponse {
            explanations: vec![set_aside(reason)],
            ..Default::default()
        });
    }
    let Some(plan) = plan else {
        return match request.task_id.as_str() {
            "" => {
                let explanations =
                    vec![run_limit::of_run(scheduler, tx, &request, state, &row).await?];
                Ok(pb::ExplainResponse {
                    explanations,
                    ..Default::default()
                })
            }
            task_id => Err(answer::task_not_found(&request.run_id, task_id)),
        };
    };
    let (mut waiting, more) = match request.task_id.as_str() {
        "" => open_tasks(&mut tx, &row, after, size).await?,
        task_id => {
            let found = tasks::find(&mut tx, &row, &plan, task_id).await?;
            let (_, found) =
                found.ok_or_else(|| answer::task_not_found(&request.run_id, task_id))?;
            (vec![found.task], false)
        }
    };
    let ends = ended_upstreams(&mut tx, &row, &plan, &waiting).await?;
    tx.commit().await.map_err(answer::store)?;
    let next = waiting
        .last()
        .filter(|_| more)
        .map(|task| format!("{}.{}", task.ordinal, task.item));
    let explained = Explained {
        plan: &plan,
        upstreams: &ends,
        run: state,
    };
    let mut explanations: Vec<pb::Explanation> = waiting
        .iter()
        .filter_map(|task| explained.task(task))
        .collect();
    waiting.retain(|task| task.state == TaskState::Ready.code());
    ask_dispatcher(scheduler, &request, &plan, &waiting, &mut explanations).await?;
    if request.task_id.is_empty() && first {
        explanations.insert(0, of_run(state));
    }
    Ok(pb::ExplainResponse {
        explanations,
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

/// A page of the tasks that have not ended, and whether there are more.
async fn open_tasks(
    tx: &mut TenantTx,
    row: &RunRecord,
    (ordinal, item): (i32, i32),
    size: usize,
) -> Result<(Vec<StoredTask>, bool), Error> {
    let select = query(include_str!("../store/open_tasks.sql"))
        .bind(row.run_number)
        .bind(ordinal)
        .bind(item)
        .bind(size as i64 + 1);
    let mut rows: Vec<StoredTask> = tx.all(select).await.map_err(answer::store)?;
    let more = rows.len() > size;
    rows.truncate(size);
    Ok((rows, more))
}

/// How the upstreams of these tasks stand.
async fn ended_upstreams(
    tx: &mut TenantTx,
    row: &RunRecord,
    plan: &Plan,
    waiting: &[StoredTask],
) -> Result<BTreeMap<u32, TaskRow>, Error> {
    let blocked = waiting
        .iter()
        .filter(|task| task.state <= TaskState::Blocked.code());
    let upstreams: BTreeSet<i32> = blocked
        .filter_map(|task| plan.tasks.get(task.ordinal.unsigned_abs() as usize))
        .flat_map(|planned| planned.upstream.iter().map(|up| up.cast_signed()))
        .collect();
    if upstreams.is_empty() {
        return Ok(BTreeMap::new());
    }
    let select = query(include_str!("../store/tasks_by_ordinal.sql"))
        .bind(row.run_number)
        .bind(upstreams.into_iter().collect::<Vec<_>>());
    let rows: Vec<StoredTask> = tx.all(select).await.map_err(answer::store)?;
    Ok(rows
        .iter()
        .filter_map(|task| Some((task.task_ref().ordinal, task.task_row()?)))
        .collect())
}

/// Puts the dispatcher's word in the place of what was only known to be ready.
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
    let request = pb::ExplainAdmissionRequest {
        tenant: request.tenant.clone(),
        workspace: request.workspace.clone(),
        run_id: request.run_id.clone(),
        tasks,
    };
    let answer = scheduler
        .dispatcher
        .clone()
        .explain_admission(request)
        .await;
    let message = match answer {
        Ok(answer) => answer.into_inner().explanations,
        Err(status) => {
            for explanation in unknown {
                explanation.message = format!(
                    "it is ready; who admits it did not answer why it waits ({})",
                    status.message()
                );
            }
            return Ok(());
        }
    };
    for ((explanation, message), task) in unknown.iter_mut().zip(message).zip(ready) {
        let key = wire::task_key(plan, task.task_ref());
        **explanation = pb::Explanation {
            task_id: key.id().to_string(),
            task_key: key.to_string(),
            ..message
        };
    }
    Ok(())
}

fn set_aside(reason: &str) -> pb::Explanation {
    let message = format!(
        "the run is set aside and nothing of it goes on: {reason}; an operator must look at it"
    );
    pb::Explanation {
        reason: pb::WaitReason::SetAside.into(),
        message,
        ..Default::default()
    }
}

pub(super) fn of_run(state: RunState) -> pb::Explanation {
    use pb::WaitReason as Why;
    let (reason, message) = match state {
        RunState::Pending => (Why::Planning, "the run has no plan yet".to_owned()),
        RunState::Running => (Why::Running, "the run is under way".to_owned()),
        RunState::Paused => (
            Why::RunPaused,
            "the run is paused; ResumeRun lets it go on".to_owned(),
        ),
        RunState::Cancelling => (
            Why::Cancelling,
            "the run is being stopped and waits for its workers".to_owned(),
        ),
        ended => (Why::Ended, format!("the run has ended: {ended}")),
    };
    pb::Explanation {
        reason: reason.into(),
        message,
        ..Default::default()
    }
}

struct Explained<'a> {
    plan: &'a Plan,
    upstreams: &'a BTreeMap<u32, TaskRow>,
    run: RunState,
}

impl Explained<'_> {
    fn task(&self, task: &StoredTask) -> Option<pb::Explanation> {
        let (task_ref, task_row) = (task.task_ref(), task.task_row()?);
        let planned = self.plan.tasks.get(task_ref.ordinal as usize)?;
        // A child waits for nothing that its parent did not wait for.
        let ended = |up: u32| {
            task_ref.map_index.is_some()
                || self
                    .upstreams
                    .get(&up)
                    .is_some_and(|up| up.state.is_terminal())
        };
        let wait = wait_of(self.run, planned, &task_row, ended);
        let key = wire::task_key(self.plan, task_ref);
        Some(pb::Explanation {
            task_id: key.id().to_string(),
            task_key: key.to_string(),
            state: i32::from(task_row.state.code()),
            ..self.say(task_ref, &task_row, wait)
        })
    }

    fn say(&self, task_ref: TaskRef, task_row: &TaskRow, wait: Wait) -> pb::Explanation {
        use pb::WaitReason as Why;
        let (reason, message) = match &wait {
            Wait::Running => (Why::Running, format!("attempt {} runs", task_row.attempt)),
            Wait::Ended => (Why::Ended, format!("it has ended: {}", task_row.state)),
            Wait::Cancelling => (
                Why::Cancelling,
                format!(
                    "attempt {} was told to stop and has not confirmed it",
                    task_row.attempt
                ),
            ),
            Wait::RunPaused => (
                Why::RunPaused,
                "it is ready, but its run is paused".to_owned(),
            ),
            Wait::Upstream(open) => (Why::Upstream, self.upstream_sentence(open)),
            Wait::Items(over) => (
                Why::Items,
                format!("it is mapped over the items of {}", self.standing(*over)),
            ),
            Wait::Children => (
                Why::Running,
                format!(
                    "the children of {} run",
                    wire::task_key(self.plan, task_ref)
                ),
            ),
            Wait::RetryDelay { until } => (
                Why::RetryDelay,
                format!(
                    "failure {}; the next attempt follows{}",
                    task_row.failures,
                    at(*until)
                ),
            ),
            Wait::WorkerStart { until } => {
                let given_up = at(*until);
                (
                    Why::WorkerStart,
                    format!(
                        "attempt {} waits for its worker; given up{given_up}",
                        task_row.attempt
                    ),
                )
            }
            Wait::Admission => (Why::FairShare, "it is ready".to_owned()),
        };
        let blockers = match &wait {
            Wait::Upstream(open) => open
                .iter()
                .take(BLOCKERS_MAX)
                .map(|up| self.blocker(*up))
                .collect(),
            Wait::Items(over) => vec![self.blocker(*over)],
            _ => Vec::new(),
        };
        let until_time = match wait {
            Wait::RetryDelay { until } | Wait::WorkerStart { until } => until.map(wire::timestamp),
            _ => None,
        };
        pb::Explanation {
            reason: reason.into(),
            message,
            blockers,
            until_time,
            ..Default::default()
        }
    }

    fn upstream_sentence(&self, open: &[u32]) -> String {
        let Some(first) = open.first() else {
            return String::new();
        };
        match open.len() - 1 {
            0 => format!("waits for upstream {}", self.standing(*first)),
            others => format!(
                "waits for upstream {} and {others} more",
                self.standing(*first)
            ),
        }
    }

    /// "shop/orders:materialize, which is RUNNING"
    fn standing(&self, ordinal: u32) -> String {
        let state = self
            .upstreams
            .get(&ordinal)
            .map_or(TaskState::Planned, |task_row| task_row.state);
        format!("{}, which is {state}", self.plan.task(ordinal).key)
    }

    fn blocker(&self, ordinal: u32) -> pb::Blocker {
        let state = self
            .upstreams
            .get(&ordinal)
            .map_or(TaskState::Planned, |task_row| task_row.state);
        pb::Blocker {
            kind: "task".to_owned(),
            id: self.plan.task(ordinal).key.id().to_string(),
            detail: format!("{} is {state}", self.plan.task(ordinal).key),
        }
    }
}

/// " at 2026-05-01T00:00:00Z"
fn at(until: Option<crate::core::Time>) -> String {
    until.map_or_else(String::new, |until| {
        format!(" at {}", wire::timestamp(until))
    })
}
