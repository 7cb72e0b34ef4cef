//! The end of an attempt and its effect on the task.

use servo_model::retry::ErrorCategory;
use servo_model::states::{Machine, TaskCause, TaskState};
use servo_model::{AttemptId, DispatchId, Operation};

use super::changes::{Materialized, PartitionUpdate, Promotion, RecordedCheck};
use super::event::{Finished, Outcome};
use super::fold::{Fold, Folded};
use super::plan::AssetSettings;
use super::verdict::{Refusal, Verdict};
use servo_model::TaskRef;

/// The delay before a task that its worker returned is offered again, so that a worker which
/// returns everything does not spin.
const RETURNED_DELAY_US: i64 = 1_000_000;

impl Fold<'_> {
    pub(super) fn finished(&mut self, finished: &Finished) -> Folded {
        let task = finished.task;
        let task_row = match self.active(task, &finished.attempt_id) {
            Ok(task_row) => task_row,
            Err(refusal) => return self.repeated(finished, refusal),
        };
        if task_row
            .session
            .is_some_and(|session| session != finished.session)
        {
            return Err(Refusal::AlreadyStarted);
        }
        let cancelling = task_row.cancelling;
        let task_row = self.task_row(task);
        task_row.session = Some(finished.session);
        task_row.worker = finished.worker.or(task_row.worker);
        task_row.started_at = finished.started_at.or(task_row.started_at);
        if !finished.error.is_empty() {
            self.changes.errors.push((task, finished.error.clone()));
        }
        self.record_checks(finished);
        Ok(if cancelling {
            self.ended_while_cancelling(finished)
        } else {
            self.ended(finished)
        })
    }

    /// The attempt has ended before. The same outcome is a duplicate; another outcome is a
    /// conflict.
    fn repeated(&self, finished: &Finished, refusal: Refusal) -> Folded {
        let Some(task_row) = self.run.task_row(finished.task) else {
            return Err(refusal);
        };
        if task_row.attempt_id != Some(finished.attempt_id)
            || task_row.session != Some(finished.session)
        {
            return Err(refusal);
        }
        let same = match finished.outcome {
            Outcome::Succeeded | Outcome::Quarantined { .. } => {
                task_row.state == TaskState::Succeeded
            }
            Outcome::Skipped => task_row.state == TaskState::Skipped,
            Outcome::CheckFailed => task_row.state == TaskState::Failed,
            Outcome::Failed { .. } => {
                matches!(task_row.state, TaskState::Failed | TaskState::RetryWait)
            }
            Outcome::Cancelled => task_row.state == TaskState::Cancelled,
            Outcome::Interrupted => task_row.state == TaskState::RetryWait,
        };
        if same {
            Ok(Verdict::Duplicate)
        } else {
            Err(Refusal::OutcomeConflict)
        }
    }

    fn ended_while_cancelling(&mut self, finished: &Finished) -> Verdict {
        let confirmed = matches!(finished.outcome, Outcome::Cancelled | Outcome::Interrupted);
        let cause = if confirmed {
            TaskCause::CancelConfirmed
        } else {
            TaskCause::FinishedAfterCancel
        };
        self.step(finished.task, cause);
        self.record_outputs(finished, Promotion::Late);
        self.settle(finished.task);
        if confirmed {
            Verdict::Folded
        } else {
            Verdict::Late
        }
    }

    fn ended(&mut self, finished: &Finished) -> Verdict {
        let task = finished.task;
        match &finished.outcome {
            Outcome::Succeeded => {
                self.succeeded(finished, TaskCause::Succeeded, Promotion::Promoted)
            }
            Outcome::Quarantined { has_good_version } => {
                let cause = if *has_good_version {
                    TaskCause::Succeeded
                } else {
                    TaskCause::SucceededWithheld
                };
                self.succeeded(finished, cause, Promotion::Quarantined);
            }
            Outcome::CheckFailed => {
                self.failed_for_good(task, TaskCause::CheckFailed, &finished.message)
            }
            Outcome::Skipped => {
                self.step(task, TaskCause::SkippedItself);
            }
            Outcome::Failed {
                category,
                error_type,
                retriable,
            } => {
                let cause = match category {
                    ErrorCategory::Timeout => {
                        (TaskCause::TimedOutWithRetry, TaskCause::TimedOutForGood)
                    }
                    _ => (TaskCause::FailedWithRetry, TaskCause::FailedForGood),
                };
                let hint = RetryHint {
                    category: *category,
                    error_type,
                    retriable: *retriable,
                };
                self.failed(task, &hint, cause, &finished.message);
            }
            // The attempt was not asked to stop, so its worker returned it.
            Outcome::Cancelled | Outcome::Interrupted => {
                self.wait(task, TaskCause::Interrupted, RETURNED_DELAY_US)
            }
        }
        self.settle(task);
        Verdict::Folded
    }

    fn succeeded(&mut self, finished: &Finished, cause: TaskCause, promotion: Promotion) {
        if let Some(items) = &finished.items {
            self.run.items.insert(finished.task.ordinal, items.clone());
        }
        self.step(finished.task, cause);
        self.record_outputs(finished, promotion);
        self.record_partitions(finished.task, promotion == Promotion::Promoted);
    }

    /// Counts the failure; the retry policy decides whether it was the last one.
    pub(super) fn failed(
        &mut self,
        task: TaskRef,
        hint: &RetryHint<'_>,
        (again, for_good): (TaskCause, TaskCause),
        message: &str,
    ) {
        let plan = self.plan();
        let task_row = self.task_row(task);
        task_row.failures += 1;
        let (failures, attempt) = (task_row.failures, task_row.attempt_id);
        let delay =
            attempt.and_then(|id| hint.delay_ms(plan.settings(task.ordinal), failures, &id));
        match delay {
            Some(delay_ms) => self.wait(
                task,
                again,
                i64::try_from(delay_ms).unwrap_or(i64::MAX / 1_000) * 1_000,
            ),
            None => self.failed_for_good(task, for_good, message),
        }
    }

    fn failed_for_good(&mut self, task: TaskRef, cause: TaskCause, message: &str) {
        self.step(task, cause);
        self.record_partitions(task, false);
        let key = self.plan().task_key(task);
        let error = (task.ordinal, format!("{key}: {message}"));
        // The error of the first task in plan order is kept, so that the order of failures does not
        // matter.
        if self.run.error.as_ref().is_none_or(|kept| error < *kept) {
            self.run.error = Some(error);
            self.changes.run = true;
        }
    }

    fn wait(&mut self, task: TaskRef, cause: TaskCause, delay_us: i64) {
        if self.step(task, cause) {
            self.task_row(task).due_at = Some(self.at.plus_us(delay_us));
            self.changes.due.push(task);
        }
    }

    /// Records the check results in any case, because a failed check explains the outcome.
    fn record_checks(&mut self, finished: &Finished) {
        let at = self.at;
        self.changes
            .checks
            .extend(
                (0..)
                    .zip(&finished.checks)
                    .map(|(index, found)| RecordedCheck {
                        task_ref: finished.task,
                        attempt_id: finished.attempt_id,
                        index,
                        found: found.clone(),
                        at,
                    }),
            );
    }

    fn record_outputs(&mut self, finished: &Finished, promotion: Promotion) {
        let at = self.at;
        self.changes
            .materialized
            .extend(finished.outputs.iter().map(|made| Materialized {
                task_ref: finished.task,
                attempt_id: finished.attempt_id,
                asset_key: made.asset_key.clone(),
                partition_key: made.partition_key.clone(),
                promotion,
                output: made.output.clone(),
                at,
            }));
    }

    /// Leaves out mapped tasks, because their parent's partition is complete only when all of them
    /// are.
    fn record_partitions(&mut self, task: TaskRef, promoted: bool) {
        if let (Some(attempt_id), None) = (self.task_row(task).attempt_id, task.map_index) {
            self.record_partition(task, attempt_id, promoted);
        }
    }

    /// Records the end of a mapped parent, with its last mapped task or without any. The parent has
    /// no attempt, so its materialization gets the id of attempt 0 and an empty output; its content
    /// are the materializations of its mapped tasks.
    pub(super) fn record_mapped(&mut self, parent: u32) {
        let task = TaskRef::planned(parent);
        let plan = self.plan();
        let (planned, settings) = (plan.task(parent), plan.settings(parent));
        let parent_id = DispatchId::new(&self.run.header.run_id, &planned.key, 0).attempt_id();
        let at = self.at;
        let task_row = self.task_row(task);
        task_row.attempt_id = Some(parent_id);
        let succeeded = task_row.state == TaskState::Succeeded;
        if succeeded && planned.key.operation() == Operation::Materialize {
            self.changes
                .materialized
                .extend(settings.makes().map(|asset_key| Materialized {
                    task_ref: task,
                    attempt_id: parent_id,
                    asset_key: asset_key.to_string(),
                    partition_key: planned.partition_key.to_string(),
                    promotion: Promotion::Promoted,
                    output: Vec::new(),
                    at,
                }));
        }
        self.record_partition(task, parent_id, succeeded);
    }

    /// Records the end of an attempt for every partition it writes; checks write none.
    fn record_partition(&mut self, task: TaskRef, attempt_id: AttemptId, promoted: bool) {
        let plan = self.plan();
        let (planned, settings) = (plan.task(task.ordinal), plan.settings(task.ordinal));
        let task_row = self.task_row(task);
        if planned.key.operation() != Operation::Materialize || !task_row.state.is_terminal() {
            return;
        }
        let (state, at) = (task_row.state, task_row.changed_at);
        self.changes
            .partitions
            .extend(settings.makes().map(|asset_key| PartitionUpdate {
                asset_key: asset_key.to_string(),
                partition_key: planned.partition_key.to_string(),
                attempt_id,
                at,
                state,
                promoted,
                code_version: settings.code_version.to_string(),
            }));
    }
}

/// The information of an error about a retry.
pub(super) struct RetryHint<'a> {
    pub(super) category: ErrorCategory,
    pub(super) error_type: &'a str,
    pub(super) retriable: Option<bool>,
}

impl RetryHint<'_> {
    pub(super) const fn of(category: ErrorCategory) -> RetryHint<'static> {
        RetryHint {
            category,
            error_type: "",
            retriable: None,
        }
    }

    /// Milliseconds until the retry, or `None` for no retry.
    fn delay_ms(
        &self,
        settings: &AssetSettings,
        failures: u32,
        attempt: &AttemptId,
    ) -> Option<u64> {
        let named = |types: &[String]| types.iter().any(|name| name == self.error_type);
        if named(&settings.never_types) || self.retriable == Some(false) {
            return None;
        }
        let requested = named(&settings.retry_types) || self.retriable == Some(true);
        let retriable_error = requested || settings.retry.retry_on.contains(&self.category);
        let left = failures < settings.retry.max_attempts;
        (retriable_error && left).then(|| settings.retry.delay_ms(failures, attempt))
    }
}
