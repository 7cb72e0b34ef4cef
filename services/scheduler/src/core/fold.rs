//! Applying one event to its run. An event that does not fit the run's state changes nothing and
//! returns the reason.

use std::sync::Arc;

use servo_model::edges::ResolutionCounts;
use servo_model::states::{Machine, RunCause, RunState, TaskCause, TaskState};
use servo_model::{AttemptId, DispatchId, Timestamp};

use super::changes::{Changes, TaskChange};
use super::event::{Event, Session};
use super::plan::Plan;
use super::run::{Run, StoppedBy};
use super::task_row::TaskRow;
use super::verdict::{Refusal, Verdict};
use servo_model::TaskRef;

/// Applies an event that is recorded at `at`; a fold uses no other time. New events, events that
/// other services appended and rebuilds all use this function, so that they agree.
pub fn fold(run: &mut Run, event: &Event, at: Timestamp, changes: &mut Changes) -> Verdict {
    let mut fold = Fold { run, at, changes };
    let folded = match event {
        Event::PlanCreated { plan } => fold.begin(plan),
        Event::PlanFailed { message } => fold.fail_planning(message),
        Event::DispatchRequested {
            task,
            attempt,
            attempt_id,
            worker,
            pushed,
            ack_us,
        } => fold.claim(*task, *attempt, *attempt_id, *worker, *pushed, *ack_us),
        Event::DispatchEnqueued { task, attempt_id } => fold.enqueued(*task, attempt_id),
        Event::TaskStarted {
            task,
            attempt_id,
            worker,
            session,
        } => fold.started(*task, attempt_id, *worker, *session),
        Event::TaskFinished(finished) => fold.finished(finished),
        Event::TimerFired {
            kind,
            task,
            attempt_id,
        } => fold.timer(*kind, *task, attempt_id.as_ref()),
        Event::CancelRequested { version, by_system } => fold.cancel(*version, *by_system),
        Event::Paused { version } => fold.pause(*version),
        Event::Resumed { version } => fold.resume(*version),
        Event::ForceCancelled {
            task,
            attempt_id,
            version,
        } => fold.force_cancel(*task, attempt_id, *version),
    };
    folded.unwrap_or_else(Verdict::Refused)
}

pub(super) type Folded = Result<Verdict, Refusal>;

/// A run while one event is applied to it.
pub(super) struct Fold<'a> {
    pub(super) run: &'a mut Run,
    pub(super) at: Timestamp,
    pub(super) changes: &'a mut Changes,
}

impl Fold<'_> {
    fn begin(&mut self, plan: &Arc<Plan>) -> Folded {
        if self.run.plan.is_some() {
            return Ok(Verdict::Duplicate);
        }
        self.run_transition(RunCause::Started)?;
        self.run.started_at = Some(self.at);
        self.run.task_rows = vec![TaskRow::planned(self.at); plan.tasks.len()];
        self.run.upstreams = plan
            .tasks
            .iter()
            .map(|task| ResolutionCounts::of(task.upstream.len() as u32))
            .collect();
        self.run.plan = Some(plan.clone());
        let ordinals = 0..plan.tasks.len() as u32;
        for ordinal in ordinals.clone() {
            self.run.recount(None, TaskState::Planned);
            self.changes.created.push(TaskRef::planned(ordinal));
            self.step(TaskRef::planned(ordinal), TaskCause::RunStarted);
        }
        for ordinal in ordinals.filter(|ordinal| plan.task(*ordinal).upstream.is_empty()) {
            self.begin_root(TaskRef::planned(ordinal), plan.task(ordinal).up_to_date);
        }
        self.end_if_complete();
        Ok(Verdict::Folded)
    }

    fn begin_root(&mut self, root: TaskRef, up_to_date: bool) {
        if up_to_date {
            self.step(root, TaskCause::UpToDate);
            self.settle(root);
        } else {
            self.step(root, TaskCause::UpstreamsSucceeded);
        }
    }

    fn fail_planning(&mut self, message: &str) -> Folded {
        self.run_transition(RunCause::PlanFailed)?;
        self.run.error = Some((0, message.to_owned()));
        Ok(Verdict::Folded)
    }

    fn claim(
        &mut self,
        task: TaskRef,
        attempt: u32,
        attempt_id: AttemptId,
        worker: Option<[u8; 16]>,
        pushed: bool,
        ack_us: i64,
    ) -> Folded {
        let task_row = self.run.task_row(task).ok_or(Refusal::TaskUnknown)?;
        if task_row.is_active(&attempt_id) {
            return Ok(Verdict::Duplicate);
        }
        if !self.run.admits() {
            return Err(Refusal::RunIs(self.run.state));
        }
        // Numbers may be skipped, see `TaskRow::next_attempt`.
        if task_row.state != TaskState::Ready || attempt <= task_row.attempt {
            return Err(Refusal::TaskNotReady(attempt));
        }
        let at = self.at;
        let task_row = self.task_row(task);
        task_row.attempt = attempt;
        task_row.attempt_id = Some(attempt_id);
        task_row.worker = worker;
        task_row.pushed = pushed;
        task_row.session = None;
        task_row.started_at = None;
        task_row.claimed_at = Some(at);
        task_row.due_at = Some(at.plus_us(ack_us));
        self.step(task, TaskCause::Claimed);
        self.changes.due.push(task);
        Ok(Verdict::Folded)
    }

    fn enqueued(&mut self, task: TaskRef, attempt_id: &AttemptId) -> Folded {
        self.active(task, attempt_id)?;
        if self.step(task, TaskCause::Enqueued) {
            Ok(Verdict::Folded)
        } else {
            Ok(Verdict::Duplicate)
        }
    }

    fn started(
        &mut self,
        task: TaskRef,
        attempt_id: &AttemptId,
        worker: Option<[u8; 16]>,
        session: Session,
    ) -> Folded {
        let task_row = self.active(task, attempt_id)?;
        if task_row.cancelling {
            return Err(Refusal::AttemptCancelled);
        }
        if task_row.state == TaskState::Running {
            return if task_row.session == Some(session) {
                Ok(Verdict::Duplicate)
            } else {
                Err(Refusal::AlreadyStarted)
            };
        }
        let at = self.at;
        let execution_us = self.plan().settings(task.ordinal).execution_us;
        let task_row = self.task_row(task);
        task_row.session = Some(session);
        task_row.worker = worker.or(task_row.worker);
        task_row.started_at = Some(at);
        task_row.due_at = Some(at.plus_us(execution_us));
        self.step(task, TaskCause::Started);
        self.changes.due.push(task);
        Ok(Verdict::Folded)
    }

    fn cancel(&mut self, version: u64, by_system: bool) -> Folded {
        // A second cancel is a duplicate, whatever version it expects.
        if self.run.state == RunState::Cancelling {
            return Ok(Verdict::Duplicate);
        }
        self.expect_version(version)?;
        self.run_transition(if by_system {
            RunCause::CancelledBySystem
        } else {
            RunCause::CancelledByUser
        })?;
        self.run.version = version;
        self.stop(StoppedBy::Principal);
        Ok(Verdict::Folded)
    }

    /// Ends tasks without an attempt at once. Attempts in flight are asked to stop and keep their
    /// slot until they have.
    pub(super) fn stop(&mut self, by: StoppedBy) {
        self.run.stopped_by = Some(by);
        self.changes.withdrawn = true;
        let cause = match by {
            StoppedBy::Principal => TaskCause::RunCancelled,
            StoppedBy::Time => TaskCause::RunTimedOut,
        };
        let open = self
            .run
            .task_rows()
            .filter(|(_, task_row)| !task_row.state.is_terminal());
        for task_ref in open.map(|(task_ref, _)| task_ref).collect::<Vec<_>>() {
            if self.step(task_ref, cause) && self.task_row(task_ref).state.has_attempt() {
                self.task_row(task_ref).cancelling = true;
                self.changes.cancelling.push(task_ref);
            }
        }
        self.end_if_complete();
    }

    fn pause(&mut self, version: u64) -> Folded {
        if self.run.state == RunState::Paused {
            return Ok(Verdict::Duplicate);
        }
        self.expect_version(version)?;
        self.run_transition(RunCause::PauseRequested)?;
        self.run.version = version;
        self.changes.withdrawn = true;
        Ok(Verdict::Folded)
    }

    fn resume(&mut self, version: u64) -> Folded {
        if self.run.state == RunState::Running {
            return Ok(Verdict::Duplicate);
        }
        self.expect_version(version)?;
        self.run_transition(RunCause::ResumeRequested)?;
        self.run.version = version;
        let ready = self
            .run
            .task_rows()
            .filter(|(_, task_row)| task_row.state == TaskState::Ready);
        self.changes
            .ready
            .extend(ready.map(|(task_ref, _)| task_ref));
        Ok(Verdict::Folded)
    }

    fn force_cancel(&mut self, task: TaskRef, attempt_id: &AttemptId, version: u64) -> Folded {
        if self
            .run
            .task_row(task)
            .ok_or(Refusal::TaskUnknown)?
            .attempt_id
            != Some(*attempt_id)
        {
            return Err(Refusal::StaleAttempt);
        }
        self.active(task, attempt_id)
            .map_err(|_| Refusal::NoAttempt)?;
        self.expect_version(version)?;
        self.run.version = version;
        self.changes.run = true;
        self.step(task, TaskCause::ForceCancelled);
        self.settle(task);
        Ok(Verdict::Folded)
    }

    fn expect_version(&self, version: u64) -> Result<(), Refusal> {
        let expected = self.run.version + 1;
        if version == expected {
            Ok(())
        } else {
            Err(Refusal::Version(self.run.version))
        }
    }

    /// Returns the task's row if this attempt is the active one.
    pub(super) fn active(
        &self,
        task: TaskRef,
        attempt_id: &AttemptId,
    ) -> Result<&TaskRow, Refusal> {
        let task_row = self.run.task_row(task).ok_or(Refusal::TaskUnknown)?;
        if task_row.is_active(attempt_id) {
            return Ok(task_row);
        }
        if self.was_attempt(task, task_row, attempt_id) {
            Err(Refusal::StaleAttempt)
        } else {
            Err(Refusal::AttemptUnknown)
        }
    }

    /// Recognizes a past attempt by its id, because attempt ids are derived from their number.
    fn was_attempt(&self, task: TaskRef, task_row: &TaskRow, attempt_id: &AttemptId) -> bool {
        let Some(plan) = &self.run.plan else {
            return false;
        };
        let key = plan.task_key(task);
        let id = |attempt| DispatchId::new(&self.run.header.run_id, &key, attempt).attempt_id();
        (1..=task_row.attempt)
            .rev()
            .any(|attempt| id(attempt) == *attempt_id)
    }

    pub(super) fn plan(&self) -> Arc<Plan> {
        self.run
            .plan
            .clone()
            .expect("a task row exists only with a plan")
    }

    pub(super) fn task_row(&mut self, task_ref: TaskRef) -> &mut TaskRow {
        self.run
            .task_row_mut(task_ref)
            .expect("the task was looked up before")
    }

    pub(super) fn run_transition(&mut self, cause: RunCause) -> Result<(), Refusal> {
        let from = self.run.state;
        if !self.run.on(cause, self.at) {
            return Err(Refusal::RunIs(from));
        }
        self.changes.run = true;
        self.changes
            .run_history
            .push((Some(from), self.run.state, self.run.reason));
        self.changes.withdrawn |= self.run.state.is_terminal();
        Ok(())
    }

    /// Looks up the transition of a task in the closed table and records its effects. Returns
    /// `false` when the table has no transition for the cause.
    pub(super) fn step(&mut self, task_ref: TaskRef, cause: TaskCause) -> bool {
        let at = self.at;
        let task_row = self.task_row(task_ref);
        let from = task_row.state;
        let Some((to, reason)) = from.on(cause) else {
            return false;
        };
        task_row.state = to;
        task_row.reason = reason;
        task_row.changed_at = at;
        if to.is_terminal() {
            task_row.ended_at = Some(at);
            task_row.due_at = None;
            task_row.cancelling = false;
        }
        if to == TaskState::Ready {
            task_row.first_ready_at = task_row.first_ready_at.or(Some(at));
            task_row.due_at = None;
            self.changes.ready.push(task_ref);
        }
        let task_row = self.task_row(task_ref);
        let (attempt, attempt_id, held_from) =
            (task_row.attempt, task_row.attempt_id, task_row.claimed_at);
        if from.has_attempt() && !to.has_attempt() {
            let held = at.us_since(held_from.unwrap_or(at));
            self.changes
                .ended
                .extend(attempt_id.map(|attempt_id| (attempt_id, held)));
        }
        self.run.recount(Some(from), to);
        self.changes.changed.push(task_ref);
        self.changes.history.push(TaskChange {
            task_ref,
            from,
            to,
            reason,
            attempt,
        });
        true
    }
}
