//! Due times of a scheduler's lane: the model of its heap and of how verdicts are confirmed.

use std::collections::BTreeSet;

use servo_model::RunId;
use servo_scheduler::core::{Event, Run, Slot, Time, TimerKind, due_of};

use crate::MS;
use crate::bugs::Bug;
use crate::env::{Env, Message, Place};
use crate::ledger::{Body, Key, NewEvent};
use crate::scheduler::{Ask, Job, Reply, Scheduler, ToScheduler, Work};

/// What is armed may be out of date by the time it falls: it only says when to look.
#[derive(Debug, Default)]
pub struct Timers {
    due: BTreeSet<(Time, RunId, Option<Slot>)>,
    /// When the lane wakes up next.
    wake_at: Option<Time>,
    /// How much too early everything is looked at; 0 but for a bug.
    ahead: Time,
}

impl Timers {
    pub fn ahead_by(ahead: Time) -> Timers {
        Timers {
            ahead,
            ..Timers::default()
        }
    }

    pub fn arm(&mut self, at: Time, run: RunId, slot: Option<Slot>) {
        self.due.insert((at - self.ahead, run, slot));
    }

    /// Arms everything of a run that was just loaded or begun.
    pub fn arm_run(&mut self, run: &Run) {
        let id = run.header.run_id;
        if let Some(deadline) = run.header.deadline.filter(|_| run.ended_at.is_none()) {
            self.arm(deadline, id, None);
        }
        let Some(graph) = &run.graph else { return };
        for (slot, cell) in run.cells() {
            if let Some(due) = due_of(cell, graph.settings(slot.ordinal), None) {
                self.arm(due.at, id, Some(slot));
            }
        }
    }

    /// Sleeps until the earliest.
    pub fn wake(&mut self, env: &mut Env, place: Place) {
        let Place::Scheduler(me) = place else { return };
        let Some((next, ..)) = self.due.first() else {
            return;
        };
        let at = (*next).max(env.now + MS);
        if self.wake_at.is_none_or(|wake| wake <= env.now || at < wake) {
            self.wake_at = Some(at);
            env.later(
                at - env.now,
                place,
                Message::Scheduler(me, ToScheduler::Wake),
            );
        }
    }

    fn pop(&mut self, env: &Env) -> Option<(RunId, Option<Slot>)> {
        let (at, ..) = self.due.first()?;
        if *at > env.now {
            return None;
        }
        self.due.pop_first().map(|(_, run, slot)| (run, slot))
    }
}

impl Scheduler {
    pub fn fire_timers(&mut self, env: &mut Env) {
        if env.database_is_down() {
            return;
        }
        let mut works = Vec::new();
        while let Some((run, slot)) = self.timers.pop(env) {
            works.extend(self.judge(run, slot, env));
        }
        if !works.is_empty() {
            self.jobs.push_back(Job::Works {
                works,
                since: env.now,
            });
        }
    }

    /// What falls now, or arms it again for when it will.
    fn judge(&mut self, run_id: RunId, slot: Option<Slot>, env: &mut Env) -> Option<Work> {
        let run = self.shards.get(&run_id.shard())?.runs.get(&run_id)?;
        let (attempt, kind, at) = match slot {
            None => (
                None,
                TimerKind::RunDuration,
                run.header.deadline.filter(|_| run.ended_at.is_none())?,
            ),
            Some(slot) => {
                let cell = run.cell(slot)?;
                let beat = cell
                    .attempt_id
                    .and_then(|id| env.beats.get(&id)?.last().copied());
                let due = due_of(cell, run.graph.as_ref()?.settings(slot.ordinal), beat)?;
                (cell.attempt_id, due.kind, due.at)
            }
        };
        let falls = match (env.bug, kind) {
            (
                Bug::EarlyTimer,
                TimerKind::DispatchAck | TimerKind::Heartbeat | TimerKind::Execution,
            )
            | (Bug::RetryWithoutDelay, TimerKind::Retry) => at - self.timers.ahead,
            _ => at,
        };
        if falls > env.now {
            let again = falls + self.timers.ahead;
            self.timers.arm(again, run_id, slot);
            return None;
        }
        let shard = run_id.shard();
        let event = NewEvent {
            id: env.number(),
            shard,
            run: run_id,
            key: Key::Timer(run_id, slot, kind, attempt, at / 1_000_000),
            body: Body::Core(Event::Timer {
                kind,
                task: slot,
                attempt_id: attempt,
            }),
            admission_epoch: 0,
            judged_at: env.now,
        };
        Some(Work {
            shard,
            asks: vec![Ask::Event(event)],
            reply: Reply::Nobody,
        })
    }
}
