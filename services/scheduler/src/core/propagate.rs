//! How a task's end travels on, and when a run has ended.

use servo_model::edges::EdgeResolution;
use servo_model::states::{RunCause, RunState, TaskCause, TaskState};

use super::fold::Fold;
use super::run::StoppedBy;
use servo_model::TaskRef;

impl Fold<'_> {
    /// Tells everybody who waits for this task, and for those that end by it, and so on. A list instead of calls
    /// within calls: a chain of ten thousand must not need a deep stack.
    pub(super) fn settle(&mut self, first: TaskRef) {
        let mut ended = vec![first];
        while let Some(task_ref) = ended.pop() {
            let Some(resolution) = self.task_row(task_ref).resolution() else {
                continue;
            };
            match task_ref.map_index {
                Some(_) => self.settle_child(task_ref.ordinal, resolution, &mut ended),
                None => self.settle_waiters(task_ref.ordinal, resolution, &mut ended),
            }
        }
        self.judge_run();
    }

    fn settle_waiters(
        &mut self,
        ordinal: u32,
        resolution: EdgeResolution,
        ended: &mut Vec<TaskRef>,
    ) {
        let plan = self.plan();
        for waiter in plan.waiters(ordinal) {
            let tally = &mut self.run.upstreams[*waiter as usize];
            tally.resolve(resolution);
            let Some(cause) = tally.as_upstreams() else {
                continue;
            };
            let task_ref = TaskRef::planned(*waiter);
            if self.task_row(task_ref).state != TaskState::Blocked
                || self.is_mapped_already(*waiter)
            {
                continue;
            }
            let task = plan.task(*waiter);
            let cause = match cause {
                TaskCause::UpstreamsSucceeded if task.up_to_date => TaskCause::UpToDate,
                cause => cause,
            };
            match (cause, task.mapped_over) {
                (TaskCause::UpstreamsSucceeded, Some(over)) => self.map(*waiter, over, ended),
                _ => {
                    if self.step(task_ref, cause) {
                        ended.push(task_ref);
                    }
                }
            }
        }
    }

    /// The run ends when nothing of it can move any more.
    pub(super) fn judge_run(&mut self) {
        if self.run.counts().open() > 0 || self.run.state == RunState::Pending {
            return;
        }
        let cause = match (self.run.state, self.run.stopped_by, self.run.tally()) {
            (RunState::Cancelling, Some(StoppedBy::Time), _) => RunCause::TimeoutCompleted,
            (RunState::Cancelling, ..) => RunCause::CancelCompleted,
            (_, _, (1.., _)) => RunCause::TasksFailed,
            (_, _, (_, 1..)) => RunCause::TasksCancelled,
            _ => RunCause::TasksSucceeded,
        };
        // A terminal run has no row for any cause.
        let _ = self.run_on(cause);
    }
}
