//! Explain: why tasks are not running. Rows say what a run knows; about ready tasks the dispatcher is asked.

use std::collections::{BTreeMap, BTreeSet};

use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_model::limits::ENVELOPES_PER_MESSAGE_MAX;
use servo_model::states::{Machine, RunState, TaskState};
use servo_proto::v1;
use servo_store::{TenantTx, query};

use super::{Scheduler, answer, get_run, run_limit, tasks};
use crate::core::{Cell, Graph, Slot, Wait, wait_of};
use crate::store::StoredTask;
use crate::wire::{self, RunRow};

/// How many upstreams an explanation names.
const BLOCKERS_MAX: usize = 10;

pub(super) async fn explain(
    scheduler: &Scheduler,
    asked: v1::ExplainRequest,
) -> Result<v1::ExplainResponse, Error> {
    let size = page_size(asked.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let list = ["explain", &asked.tenant, &asked.workspace, &asked.run_id];
    let first = asked.page_token.is_empty();
    let after = tasks::after(&scheduler.tokens, &list, &asked.page_token)?;
    let mut tx = scheduler
        .store
        .requests()
        .begin(&asked.tenant)
        .await
        .map_err(answer::store)?;
    let row = get_run::row(&mut tx, &asked.workspace, &asked.run_id).await?;
    let graph = get_run::graph(scheduler, &asked.tenant, &asked.workspace, &row).await?;
    let state = RunState::from_code(row.state).ok_or_else(|| {
        Error::new(
            Reason::Internal,
            "the run is in a state that this version does not know",
        )
    })?;
    if let Some(reason) = &row.set_aside {
        return Ok(v1::ExplainResponse {
            explanations: vec![set_aside(reason)],
            ..Default::default()
        });
    }
    let Some(graph) = graph else {
        return match asked.task_id.as_str() {
            "" => {
                let explanations =
                    vec![run_limit::of_run(scheduler, tx, &asked, state, &row).await?];
                Ok(v1::ExplainResponse {
                    explanations,
                    ..Default::default()
                })
            }
            task_id => Err(answer::task_not_found(&asked.run_id, task_id)),
        };
    };
    let (mut waiting, more) = match asked.task_id.as_str() {
        "" => open_tasks(&mut tx, &row, after, size).await?,
        task_id => {
            let found = tasks::find(&mut tx, &row, &graph, task_id).await?;
            let (_, found) = found.ok_or_else(|| answer::task_not_found(&asked.run_id, task_id))?;
            (vec![found.task], false)
        }
    };
    let ends = ended_upstreams(&mut tx, &row, &graph, &waiting).await?;
    tx.commit().await.map_err(answer::store)?;
    let next = waiting
        .last()
        .filter(|_| more)
        .map(|task| format!("{}.{}", task.ordinal, task.item));
    let explained = Explained {
        graph: &graph,
        upstreams: &ends,
        run: state,
    };
    let mut explanations: Vec<v1::Explanation> = waiting
        .iter()
        .filter_map(|task| explained.task(task))
        .collect();
    waiting.retain(|task| task.state == TaskState::Ready.code());
    ask_dispatcher(scheduler, &asked, &graph, &waiting, &mut explanations).await?;
    if asked.task_id.is_empty() && first {
        explanations.insert(0, of_run(state));
    }
    Ok(v1::ExplainResponse {
        explanations,
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

/// A page of the tasks that have not ended, and whether there are more.
async fn open_tasks(
    tx: &mut TenantTx,
    row: &RunRow,
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
    row: &RunRow,
    graph: &Graph,
    waiting: &[StoredTask],
) -> Result<BTreeMap<u32, Cell>, Error> {
    let blocked = waiting
        .iter()
        .filter(|task| task.state <= TaskState::Blocked.code());
    let upstreams: BTreeSet<i32> = blocked
        .filter_map(|task| graph.tasks.get(task.ordinal.unsigned_abs() as usize))
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
        .filter_map(|task| Some((task.slot().ordinal, task.cell()?)))
        .collect())
}

/// Puts the dispatcher's word in the place of what was only known to be ready.
async fn ask_dispatcher(
    scheduler: &Scheduler,
    asked: &v1::ExplainRequest,
    graph: &Graph,
    ready: &[StoredTask],
    explanations: &mut [v1::Explanation],
) -> Result<(), Error> {
    let waits =
        |explanation: &&mut v1::Explanation| explanation.reason() == v1::WaitReason::FairShare;
    let mut unknown: Vec<&mut v1::Explanation> = explanations.iter_mut().filter(waits).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let tasks = ready
        .iter()
        .take(ENVELOPES_PER_MESSAGE_MAX)
        .map(|task| wire::task_ref(task.slot()))
        .collect();
    let request = v1::ExplainAdmissionRequest {
        tenant: asked.tenant.clone(),
        workspace: asked.workspace.clone(),
        run_id: asked.run_id.clone(),
        tasks,
    };
    let answer = scheduler
        .dispatcher
        .clone()
        .explain_admission(request)
        .await;
    let told = match answer {
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
    for ((explanation, told), task) in unknown.iter_mut().zip(told).zip(ready) {
        let key = wire::task_key(graph, task.slot());
        **explanation = v1::Explanation {
            task_id: key.id().to_string(),
            task_key: key.to_string(),
            ..told
        };
    }
    Ok(())
}

fn set_aside(reason: &str) -> v1::Explanation {
    let message = format!(
        "the run is set aside and nothing of it goes on: {reason}; an operator must look at it"
    );
    v1::Explanation {
        reason: v1::WaitReason::SetAside.into(),
        message,
        ..Default::default()
    }
}

pub(super) fn of_run(state: RunState) -> v1::Explanation {
    use v1::WaitReason as Why;
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
    v1::Explanation {
        reason: reason.into(),
        message,
        ..Default::default()
    }
}

struct Explained<'a> {
    graph: &'a Graph,
    upstreams: &'a BTreeMap<u32, Cell>,
    run: RunState,
}

impl Explained<'_> {
    fn task(&self, task: &StoredTask) -> Option<v1::Explanation> {
        let (slot, cell) = (task.slot(), task.cell()?);
        let planned = self.graph.tasks.get(slot.ordinal as usize)?;
        // A child waits for nothing that its parent did not wait for.
        let ended = |up: u32| {
            slot.item.is_some()
                || self
                    .upstreams
                    .get(&up)
                    .is_some_and(|up| up.state.is_terminal())
        };
        let wait = wait_of(self.run, planned, &cell, ended);
        let key = wire::task_key(self.graph, slot);
        Some(v1::Explanation {
            task_id: key.id().to_string(),
            task_key: key.to_string(),
            state: i32::from(cell.state.code()),
            ..self.say(slot, &cell, wait)
        })
    }

    fn say(&self, slot: Slot, cell: &Cell, wait: Wait) -> v1::Explanation {
        use v1::WaitReason as Why;
        let (reason, message) = match &wait {
            Wait::Running => (Why::Running, format!("attempt {} runs", cell.attempt)),
            Wait::Ended => (Why::Ended, format!("it has ended: {}", cell.state)),
            Wait::Cancelling => (
                Why::Cancelling,
                format!(
                    "attempt {} was told to stop and has not confirmed it",
                    cell.attempt
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
                format!("the children of {} run", wire::task_key(self.graph, slot)),
            ),
            Wait::RetryDelay { until } => (
                Why::RetryDelay,
                format!(
                    "failure {}; the next attempt follows{}",
                    cell.failures,
                    at(*until)
                ),
            ),
            Wait::WorkerStart { until } => {
                let given_up = at(*until);
                (
                    Why::WorkerStart,
                    format!(
                        "attempt {} waits for its worker; given up{given_up}",
                        cell.attempt
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
        v1::Explanation {
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
            .map_or(TaskState::Planned, |cell| cell.state);
        format!("{}, which is {state}", self.graph.task(ordinal).key)
    }

    fn blocker(&self, ordinal: u32) -> v1::Blocker {
        let state = self
            .upstreams
            .get(&ordinal)
            .map_or(TaskState::Planned, |cell| cell.state);
        v1::Blocker {
            kind: "task".to_owned(),
            id: self.graph.task(ordinal).key.id().to_string(),
            detail: format!("{} is {state}", self.graph.task(ordinal).key),
        }
    }
}

/// " at 2026-05-01T00:00:00Z"
fn at(until: Option<crate::core::Time>) -> String {
    until.map_or_else(String::new, |until| {
        format!(" at {}", wire::timestamp(until))
    })
}
