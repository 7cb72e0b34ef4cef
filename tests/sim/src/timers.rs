//! Due times of a scheduler's lane: a model of `shards/timers.rs`.

use std::collections::BTreeSet;

use servo_model::{Epoch, RunId, TaskRef, Timestamp};
use servo_scheduler::core::{Event, Run, TimerKind, due_of};

use crate::MS;
use crate::bugs::Bug;
use crate::env::{Env, Message, ProcessId};
use crate::ledger::{Body, Key, NewEvent};
use crate::scheduler::{Command, Job, Reply, Scheduler, Submission, ToScheduler};

/// An entry may be out of date when it becomes due: it only says when to check.
#[derive(Debug, Default)]
pub struct Timers {
    due: BTreeSet<(Timestamp, RunId, Option<TaskRef>)>,
    /// When the lane wakes up next.
    wake_at: Option<Timestamp>,
    /// How much too early entries become due; 0 without a bug.
    ahead: i64,
}

impl Timers {
    pub fn ahead_by(ahead: i64) -> Timers {
        Timers {
            ahead,
            ..Timers::default()
        }
    }

    pub fn arm(&mut self, at: Timestamp, run: RunId, task_ref: Option<TaskRef>) {
        self.due.insert((at.plus_us(-self.ahead), run, task_ref));
    }

    /// Arms all timers of a run that was just loaded.
    pub fn arm_run(&mut self, run: &Run) {
        let id = run.header.run_id;
        if let Some(deadline) = run.header.deadline.filter(|_| run.ended_at.is_none()) {
            self.arm(deadline, id, None);
        }
        let Some(plan) = &run.plan else { return };
        for (task_ref, task_row) in run.task_rows() {
            if let Some(due) = due_of(task_row, plan.settings(task_ref.ordinal), None) {
                self.arm(due.at, id, Some(task_ref));
            }
        }
    }

    /// Schedules the wake-up for the earliest entry.
    pub fn arm_wake_up(&mut self, env: &mut Env, process_id: ProcessId) {
        let ProcessId::Scheduler(me) = process_id else {
            return;
        };
        let Some((next, ..)) = self.due.first() else {
            return;
        };
        let at = (*next).max(env.now.plus_us(MS));
        if self
            .wake_at
            .is_none_or(|wake_at| wake_at <= env.now || at < wake_at)
        {
            self.wake_at = Some(at);
            env.later(
                at.us_since(env.now),
                process_id,
                Message::Scheduler(me, ToScheduler::Wake),
            );
        }
    }

    fn pop(&mut self, env: &Env) -> Option<(RunId, Option<TaskRef>)> {
        let (at, ..) = self.due.first()?;
        if *at > env.now {
            return None;
        }
        self.due
            .pop_first()
            .map(|(_, run, task_ref)| (run, task_ref))
    }
}

impl Scheduler {
    pub fn fire_timers(&mut self, env: &mut Env) {
        if env.database_is_down() {
            return;
        }
        let mut submissions = Vec::new();
        while let Some((run, task_ref)) = self.timers.pop(env) {
            submissions.extend(self.check_due(run, task_ref, env));
        }
        if !submissions.is_empty() {
            self.jobs.push_back(Job::Submissions {
                submissions,
                since: env.now,
            });
        }
    }

    /// Returns the submission of a due timer, and arms it again otherwise.
    fn check_due(
        &mut self,
        run_id: RunId,
        task_ref: Option<TaskRef>,
        env: &mut Env,
    ) -> Option<Submission> {
        let run = self.shards.get(&run_id.shard())?.runs.get(&run_id)?;
        let (attempt, kind, at) = match task_ref {
            None => (
                None,
                TimerKind::RunDuration,
                run.header.deadline.filter(|_| run.ended_at.is_none())?,
            ),
            Some(task_ref) => {
                let task_row = run.task_row(task_ref)?;
                let beat = task_row
                    .attempt_id
                    .and_then(|id| env.beats.get(&id)?.last().copied());
                let due = due_of(
                    task_row,
                    run.plan.as_ref()?.settings(task_ref.ordinal),
                    beat,
                )?;
                (task_row.attempt_id, due.kind, due.at)
            }
        };
        let due_at = match (env.bug, kind) {
            (
                Bug::EarlyTimer,
                TimerKind::DispatchAck | TimerKind::Heartbeat | TimerKind::Execution,
            )
            | (Bug::RetryWithoutDelay, TimerKind::Retry) => at.plus_us(-self.timers.ahead),
            _ => at,
        };
        if due_at > env.now {
            let again = due_at.plus_us(self.timers.ahead);
            self.timers.arm(again, run_id, task_ref);
            return None;
        }
        let shard = run_id.shard();
        let event = NewEvent {
            id: env.number(),
            shard,
            run: run_id,
            key: Key::Timer(run_id, task_ref, kind, attempt, at.unix_seconds()),
            body: Body::Core(Event::TimerFired {
                kind,
                task: task_ref,
                attempt_id: attempt,
            }),
            admission_epoch: Epoch::NEVER,
            judged_at: env.now,
        };
        Some(Submission {
            shard,
            commands: vec![Command::Event(event)],
            reply: Reply::Nobody,
        })
    }
}
