//! Why a task is not running: the first of the reasons that prevent it.

use servo_model::Timestamp;
use servo_model::states::{RunState, TaskState};

use super::plan::PlannedTask;
use super::task_row::TaskRow;

/// The reason, as far as the run knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    Running,
    Ended,
    /// The attempt was asked to stop.
    Cancelling,
    RunPaused,
    /// These upstreams have not ended.
    Upstream(Vec<u32>),
    /// The upstream that provides the items has not ended.
    Items(u32),
    /// Its mapped tasks are running.
    Children,
    RetryDelay {
        until: Option<Timestamp>,
    },
    /// The attempt was delivered and is not started yet.
    WorkerStart {
        until: Option<Timestamp>,
    },
    /// The task is ready; the dispatcher knows why it is not admitted.
    Admission,
}

/// `ended` returns whether an upstream has ended.
pub fn wait_of(
    run: RunState,
    planned: &PlannedTask,
    task_row: &TaskRow,
    ended: impl Fn(u32) -> bool,
) -> Wait {
    if task_row.cancelling && task_row.state.has_attempt() {
        return Wait::Cancelling;
    }
    match task_row.state {
        TaskState::Planned | TaskState::Blocked => blocked(planned, ended),
        TaskState::Ready if run == RunState::Paused => Wait::RunPaused,
        TaskState::Ready => Wait::Admission,
        TaskState::Queued | TaskState::Dispatched => Wait::WorkerStart {
            until: task_row.due_at,
        },
        TaskState::Running => Wait::Running,
        TaskState::RetryWait => Wait::RetryDelay {
            until: task_row.due_at,
        },
        TaskState::Succeeded | TaskState::Failed | TaskState::Skipped | TaskState::Cancelled => {
            Wait::Ended
        }
    }
}

fn blocked(planned: &PlannedTask, ended: impl Fn(u32) -> bool) -> Wait {
    let open: Vec<u32> = planned
        .upstream
        .iter()
        .copied()
        .filter(|up| !ended(*up))
        .collect();
    match (planned.mapped_over, open.is_empty()) {
        (_, true) => Wait::Children,
        (Some(over), false) if open == [over] => Wait::Items(over),
        (_, false) => Wait::Upstream(open),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: Timestamp = Timestamp::from_unix_us(7);

    fn task_row(state: TaskState) -> TaskRow {
        TaskRow {
            state,
            due_at: Some(DUE),
            ..TaskRow::planned(Timestamp::UNIX_EPOCH)
        }
    }

    fn planned(upstream: &[u32], mapped_over: Option<u32>) -> PlannedTask {
        PlannedTask {
            key: "a/b:materialize".parse().unwrap(),
            asset: 0,
            partition_key: "".into(),
            upstream: upstream.into(),
            mapped_over,
            up_to_date: false,
        }
    }

    #[test]
    fn a_blocked_task_waits_for_its_open_upstreams() {
        let wait = |task: &PlannedTask| {
            wait_of(
                RunState::Running,
                task,
                &task_row(TaskState::Blocked),
                |up| up == 1,
            )
        };
        assert_eq!(wait(&planned(&[0, 1, 2], None)), Wait::Upstream(vec![0, 2]));
        assert_eq!(wait(&planned(&[0, 1], Some(0))), Wait::Items(0));
        assert_eq!(wait(&planned(&[0, 2], Some(0))), Wait::Upstream(vec![0, 2]));
        assert_eq!(wait(&planned(&[1], Some(1))), Wait::Children);
    }

    #[test]
    fn every_other_state_has_its_reason() {
        let wait = |run, state| wait_of(run, &planned(&[], None), &task_row(state), |_| true);
        let running = |state| wait(RunState::Running, state);
        assert_eq!(running(TaskState::Ready), Wait::Admission);
        assert_eq!(wait(RunState::Paused, TaskState::Ready), Wait::RunPaused);
        assert_eq!(
            running(TaskState::Queued),
            Wait::WorkerStart { until: Some(DUE) }
        );
        assert_eq!(
            running(TaskState::RetryWait),
            Wait::RetryDelay { until: Some(DUE) }
        );
        assert_eq!(wait(RunState::Paused, TaskState::Running), Wait::Running);
        assert_eq!(running(TaskState::Skipped), Wait::Ended);
        let stopping = TaskRow {
            cancelling: true,
            ..task_row(TaskState::Running)
        };
        assert_eq!(
            wait_of(RunState::Cancelling, &planned(&[], None), &stopping, |_| {
                true
            }),
            Wait::Cancelling
        );
    }
}
