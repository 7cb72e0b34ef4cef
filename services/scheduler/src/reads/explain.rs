//! Why tasks are not running, according to the rows.

use std::collections::{BTreeMap, BTreeSet};

use servo_mesh::Error;
use servo_model::states::{Machine, RunState, TaskState};
use servo_model::{TaskRef, Timestamp};
use servo_proto::{proto_time, v1 as pb};
use servo_store::TenantTx;

use super::errors;
pub(crate) use super::run_limit::explain_queued_run;
use crate::core::{Plan, TaskRow, Wait, wait_of};
use crate::store::runs::RunRecord;
use crate::store::tasks::{self, StoredTask};

/// How many upstreams an explanation names.
const BLOCKERS_MAX: usize = 10;

/// The upstreams of these tasks, as far as the tasks are blocked.
pub(crate) async fn find_upstreams(
    tx: &mut TenantTx,
    run: &RunRecord,
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
    let rows = tasks::find_by_ordinals(tx, run.run_number, upstreams.into_iter().collect())
        .await
        .map_err(errors::store)?;
    Ok(rows
        .iter()
        .filter_map(|task| Some((task.task_ref().ordinal, task.task_row()?)))
        .collect())
}

pub(crate) fn set_aside(reason: &str) -> pb::Explanation {
    let message = format!("the run is set aside: {reason}; an operator must look at it");
    pb::Explanation {
        reason: pb::WaitReason::SetAside.into(),
        message,
        ..Default::default()
    }
}

pub(crate) fn of_run(state: RunState) -> pb::Explanation {
    use pb::WaitReason as Why;
    let (reason, message) = match state {
        RunState::Pending => (Why::Planning, "the run has no plan yet".to_owned()),
        RunState::Running => (Why::Running, "the run is running".to_owned()),
        RunState::Paused => (
            Why::RunPaused,
            "the run is paused; ResumeRun continues it".to_owned(),
        ),
        RunState::Cancelling => (
            Why::Cancelling,
            "the run is being cancelled and waits for its workers".to_owned(),
        ),
        ended => (Why::Ended, format!("the run has ended: {ended}")),
    };
    pb::Explanation {
        reason: reason.into(),
        message,
        ..Default::default()
    }
}

pub(crate) struct Explainer<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) upstreams: &'a BTreeMap<u32, TaskRow>,
    pub(crate) run: RunState,
}

impl Explainer<'_> {
    pub(crate) fn task(&self, task: &StoredTask) -> Option<pb::Explanation> {
        let (task_ref, task_row) = (task.task_ref(), task.task_row()?);
        let planned = self.plan.tasks.get(task_ref.ordinal as usize)?;
        // The upstreams of a mapped task ended before it was created.
        let ended = |up: u32| {
            task_ref.map_index.is_some()
                || self
                    .upstreams
                    .get(&up)
                    .is_some_and(|up| up.state.is_terminal())
        };
        let wait = wait_of(self.run, planned, &task_row, ended);
        let key = self.plan.task_key(task_ref);
        Some(pb::Explanation {
            task_id: key.id().to_string(),
            task_key: key.to_string(),
            state: i32::from(task_row.state.code()),
            ..self.explanation(task_ref, &task_row, wait)
        })
    }

    fn explanation(&self, task_ref: TaskRef, task_row: &TaskRow, wait: Wait) -> pb::Explanation {
        use pb::WaitReason as Why;
        let (reason, message) = match &wait {
            Wait::Running => (Why::Running, format!("attempt {} runs", task_row.attempt)),
            Wait::Ended => (
                Why::Ended,
                format!("the task has ended: {}", task_row.state),
            ),
            Wait::Cancelling => (
                Why::Cancelling,
                format!(
                    "attempt {} was asked to stop and has not confirmed it",
                    task_row.attempt
                ),
            ),
            Wait::RunPaused => (
                Why::RunPaused,
                "the task is ready, but its run is paused".to_owned(),
            ),
            Wait::Upstream(open) => (Why::Upstream, self.upstream_sentence(open)),
            Wait::Items(over) => (
                Why::Items,
                format!(
                    "the task waits for the items of {}",
                    self.key_and_state(*over)
                ),
            ),
            Wait::Children => (
                Why::Running,
                format!("the children of {} run", self.plan.task_key(task_ref)),
            ),
            Wait::RetryDelay { until } => (
                Why::RetryDelay,
                format!(
                    "failure {}; the next attempt starts{}",
                    task_row.failures,
                    at(*until)
                ),
            ),
            Wait::WorkerStart { until } => {
                let expires = at(*until);
                (
                    Why::WorkerStart,
                    format!(
                        "attempt {} waits for its worker to start it; it expires{expires}",
                        task_row.attempt
                    ),
                )
            }
            Wait::Admission => (Why::FairShare, "the task is ready".to_owned()),
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
            Wait::RetryDelay { until } | Wait::WorkerStart { until } => until.map(proto_time),
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
            0 => format!("waits for upstream {}", self.key_and_state(*first)),
            others => format!(
                "waits for upstream {} and {others} more",
                self.key_and_state(*first)
            ),
        }
    }

    /// "shop/orders:materialize, which is RUNNING"
    fn key_and_state(&self, ordinal: u32) -> String {
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
fn at(until: Option<Timestamp>) -> String {
    until.map_or_else(String::new, |until| format!(" at {}", proto_time(until)))
}
