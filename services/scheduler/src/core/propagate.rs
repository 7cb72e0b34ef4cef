//! Propagating the end of a task to its downstream tasks, and ending the run.

use servo_model::edges::EdgeResolution;
use servo_model::states::{RunCause, RunState, TaskCause, TaskState};

use super::fold::Fold;
use super::run::StoppedBy;
use servo_model::TaskRef;

impl Fold<'_> {
    /// Resolves the edges from this task, from the tasks that end because of it, and so on. Uses a
    /// list instead of recursion, because a chain may have ten thousand tasks.
    pub(super) fn settle(&mut self, first: TaskRef) {
        let mut to_settle = vec![first];
        while let Some(task_ref) = to_settle.pop() {
            let Some(resolution) = self.task_row(task_ref).resolution() else {
                continue;
            };
            match task_ref.map_index {
                Some(_) => self.settle_child(task_ref.ordinal, resolution, &mut to_settle),
                None => self.settle_downstream(task_ref.ordinal, resolution, &mut to_settle),
            }
        }
        self.end_if_complete();
    }

    fn settle_downstream(
        &mut self,
        ordinal: u32,
        resolution: EdgeResolution,
        to_settle: &mut Vec<TaskRef>,
    ) {
        let plan = self.plan();
        for downstream_task in plan.downstream(ordinal) {
            let tally = &mut self.run.upstreams[*downstream_task as usize];
            tally.resolve(resolution);
            let Some(cause) = tally.as_upstreams() else {
                continue;
            };
            let task_ref = TaskRef::planned(*downstream_task);
            if self.task_row(task_ref).state != TaskState::Blocked
                || self.is_mapped_already(*downstream_task)
            {
                continue;
            }
            let task = plan.task(*downstream_task);
            let cause = match cause {
                TaskCause::UpstreamsSucceeded if task.up_to_date => TaskCause::UpToDate,
                cause => cause,
            };
            match (cause, task.mapped_over) {
                (TaskCause::UpstreamsSucceeded, Some(over)) => {
                    self.map(*downstream_task, over, to_settle)
                }
                _ => {
                    if self.step(task_ref, cause) {
                        to_settle.push(task_ref);
                    }
                }
            }
        }
    }

    /// Ends the run when all of its tasks have ended.
    pub(super) fn end_if_complete(&mut self) {
        if self.run.counts().open() > 0 || self.run.state == RunState::Pending {
            return;
        }
        let ended = self.run.failed_and_cancelled();
        let cause = match (self.run.state, self.run.stopped_by) {
            (RunState::Cancelling, Some(StoppedBy::Time)) => RunCause::TimeoutCompleted,
            (RunState::Cancelling, _) => RunCause::CancelCompleted,
            _ if ended.failed > 0 => RunCause::TasksFailed,
            _ if ended.cancelled > 0 => RunCause::TasksCancelled,
            _ => RunCause::TasksSucceeded,
        };
        // A terminal run has no transition for any cause.
        let _ = self.run_transition(cause);
    }
}
