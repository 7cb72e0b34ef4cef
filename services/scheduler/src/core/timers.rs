//! Due times of tasks and runs, and the effect of their timers.

use servo_model::limits::HEARTBEAT_INTERVAL;
use servo_model::retry::ErrorCategory;
use servo_model::states::{RunCause, TaskCause, TaskState};
use servo_model::{AttemptId, Timestamp};

use super::event::TimerKind;
use super::finish::RetryHint;
use super::fold::{Fold, Folded};
use super::plan::AssetSettings;
use super::run::StoppedBy;
use super::task_row::TaskRow;
use super::verdict::{Refusal, Verdict};
use servo_model::TaskRef;

/// The next timer of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub kind: TimerKind,
    pub at: Timestamp,
}

/// The next timer of a task. `silent_since` is the time from which its attempt's silence counts.
pub fn due_of(
    task_row: &TaskRow,
    settings: &AssetSettings,
    silent_since: Option<Timestamp>,
) -> Option<Due> {
    let due_at = task_row.due_at?;
    match task_row.state {
        TaskState::RetryWait => Some(Due {
            kind: TimerKind::Retry,
            at: due_at,
        }),
        TaskState::Queued | TaskState::Dispatched => Some(Due {
            kind: TimerKind::DispatchAck,
            at: due_at,
        }),
        TaskState::Running => {
            let last_sign = silent_since
                .max(task_row.started_at)
                .unwrap_or(task_row.changed_at);
            let silence = last_sign.plus_us(settings.heartbeat_us);
            Some(if silence < due_at {
                Due {
                    kind: TimerKind::Heartbeat,
                    at: silence,
                }
            } else {
                Due {
                    kind: TimerKind::Execution,
                    at: due_at,
                }
            })
        }
        _ => None,
    }
}

/// The time from which an attempt may be ended by force: after two missed heartbeats, or after half
/// of the heartbeat timeout if that is shorter.
pub fn force_from(
    task_row: &TaskRow,
    settings: &AssetSettings,
    silent_since: Option<Timestamp>,
) -> Timestamp {
    let beats = i64::try_from(2 * HEARTBEAT_INTERVAL.as_micros()).unwrap_or(i64::MAX);
    let last_sign = [silent_since, task_row.started_at, task_row.claimed_at]
        .into_iter()
        .flatten()
        .max();
    last_sign
        .unwrap_or(task_row.changed_at)
        .plus_us(beats.min(settings.heartbeat_us / 2))
}

impl Fold<'_> {
    pub(super) fn timer(
        &mut self,
        kind: TimerKind,
        task: Option<TaskRef>,
        attempt: Option<&AttemptId>,
    ) -> Folded {
        match (kind, task, attempt) {
            (TimerKind::RunDuration, ..) => self.run_too_long(),
            (TimerKind::Retry, Some(task), Some(attempt)) => self.retry_due(task, attempt),
            (kind, Some(task), Some(attempt)) => self.attempt_overdue(kind, task, attempt),
            _ => Err(Refusal::TaskUnknown),
        }
    }

    fn run_too_long(&mut self) -> Folded {
        self.run_transition(RunCause::DurationPassed)?;
        self.stop(StoppedBy::Time);
        Ok(Verdict::Folded)
    }

    fn retry_due(&mut self, task: TaskRef, attempt: &AttemptId) -> Folded {
        let task_row = self.run.task_row(task).ok_or(Refusal::TaskUnknown)?;
        if task_row.state != TaskState::RetryWait || task_row.attempt_id.as_ref() != Some(attempt) {
            return Err(Refusal::StaleAttempt);
        }
        self.step(task, TaskCause::RetryDue);
        Ok(Verdict::Folded)
    }

    fn attempt_overdue(&mut self, kind: TimerKind, task: TaskRef, attempt: &AttemptId) -> Folded {
        let task_row = self.active(task, attempt)?;
        let picked_up = task_row.state == TaskState::Running;
        let cancelling = task_row.cancelling;
        // A start that was folded earlier cancels the dispatch timer.
        if (kind == TimerKind::DispatchAck) == picked_up {
            return Err(Refusal::NotDue);
        }
        match (cancelling, kind) {
            (true, _) => {
                self.step(task, TaskCause::CancelUnanswered);
            }
            (false, TimerKind::DispatchAck) => {
                self.step(task, TaskCause::NotPickedUp);
            }
            (false, TimerKind::Heartbeat) => {
                let lost = (TaskCause::LostWithRetry, TaskCause::LostForGood);
                self.failed(
                    task,
                    &RetryHint::of(ErrorCategory::Infrastructure),
                    lost,
                    "its worker went silent",
                );
            }
            (false, _) => {
                let late = (TaskCause::TimedOutWithRetry, TaskCause::TimedOutForGood);
                self.failed(
                    task,
                    &RetryHint::of(ErrorCategory::Timeout),
                    late,
                    "it ran longer than its timeout",
                );
            }
        }
        self.settle(task);
        Ok(Verdict::Folded)
    }
}
