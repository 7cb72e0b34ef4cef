//! Due times of a lane's runs and tasks. There is no tick: the lane sleeps until the earliest one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use servo_model::dispatch_id::TaskTimer;
use servo_model::idempotency::IdempotencyKey;
use servo_model::{AttemptId, RunId, TaskRef, TimerId, Timestamp};
use servo_proto::v1::event::Body;
use servo_proto::{proto_time, v1 as pb};
use servo_store::StoreError;
use tokio::sync::oneshot;

use super::command::{Command, RunEvent, Submission, event_id};
use super::lane::Lane;
use crate::core::{Run, TimerKind, due_of};
use crate::store::heartbeats;
use crate::wire;

/// How many timers one flush fires.
const FIRED_PER_FLUSH_MAX: usize = 1_024;
/// Heaps below this size are not pruned.
const PRUNED_ENTRIES_MIN: usize = 4_096;
/// The delay of the next check when heartbeats could not be read.
const RECHECK: Duration = Duration::from_secs(1);

/// An entry may be out of date when it becomes due: it only says when to check a run or task.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: BinaryHeap<Reverse<(Timestamp, RunId, Option<TaskRef>)>>,
    /// How many entries remained after the last pruning.
    kept: usize,
}

impl Timers {
    /// Whether most entries may be obsolete: a run that ended leaves its deadline in the heap.
    fn needs_pruning(&self) -> bool {
        self.due.len() > 2 * self.kept.max(PRUNED_ENTRIES_MIN)
    }

    fn retain(&mut self, is_needed: impl Fn(RunId, Option<TaskRef>) -> bool) {
        self.due
            .retain(|Reverse((_, run, task_ref))| is_needed(*run, *task_ref));
        self.due.shrink_to(2 * self.due.len());
        self.kept = self.due.len();
    }

    pub(super) fn arm(&mut self, at: Timestamp, run: RunId, task_ref: Option<TaskRef>) {
        self.due.push(Reverse((at, run, task_ref)));
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    fn pop(&mut self, now: Timestamp) -> Option<(RunId, Option<TaskRef>)> {
        let Reverse((at, ..)) = self.due.peek()?;
        if *at > now {
            return None;
        }
        self.due
            .pop()
            .map(|Reverse((_, run, task_ref))| (run, task_ref))
    }
}

/// A timer that fires unless newer evidence postpones it.
struct DueTimer {
    run: RunId,
    task_ref: Option<TaskRef>,
    attempt: Option<AttemptId>,
    kind: TimerKind,
    at: Timestamp,
    evidence: Evidence,
}

/// The evidence on which an attempt is declared lost.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    last_beat: Option<Timestamp>,
    /// Since when all callback instances accept heartbeats.
    healthy_since: Option<Timestamp>,
}

impl Evidence {
    /// The time from which the attempt's silence counts: its last heartbeat, or the end of the last
    /// outage in which its heartbeats could not be stored.
    fn silent_since(self) -> Option<Timestamp> {
        self.last_beat.max(self.healthy_since)
    }
}

impl Lane {
    /// Removes the entries of ended runs and tasks once most entries may be obsolete.
    pub(super) fn prune_timers(&mut self) {
        if self.timers.needs_pruning() {
            let shards = &self.shards;
            self.timers.retain(|run, task_ref| {
                let run = shards
                    .get(&run.shard())
                    .and_then(|held| held.runs.get(&run));
                run.is_some_and(|run| {
                    task_ref.is_none_or(|task_ref| {
                        run.task_row(task_ref)
                            .is_some_and(|task_row| task_row.due_at.is_some())
                    })
                })
            });
        }
    }

    /// Arms all timers of a run that was just loaded.
    pub(super) fn arm_run(&mut self, run: &Run) {
        let id = run.header.run_id;
        if let Some(deadline) = run.header.deadline.filter(|_| run.ended_at.is_none()) {
            self.timers.arm(deadline, id, None);
        }
        let Some(plan) = &run.plan else { return };
        for (task_ref, task_row) in run.task_rows() {
            if let Some(due) = due_of(task_row, plan.settings(task_ref.ordinal), None) {
                self.timers.arm(due.at, id, Some(task_ref));
            }
        }
    }

    pub(super) async fn fire_timers(&mut self) {
        let clock = match self.clock {
            Some(clock) => Ok(clock),
            None => self.read_clock().await,
        };
        // Without the database nothing could be stored either.
        let Ok(now) = clock.map(|clock| clock.now()) else {
            return;
        };
        let mut due_timers = Vec::new();
        while let Some((run, task_ref)) = self.timers.pop(now) {
            due_timers.extend(self.check_due(run, task_ref, Evidence::default(), now));
            if due_timers.len() == FIRED_PER_FLUSH_MAX {
                break;
            }
        }
        let due_timers = self.confirm_silence(due_timers, now).await;
        let submissions = due_timers
            .iter()
            .filter_map(|timer| self.timer_submission(timer))
            .collect();
        self.flush(submissions).await;
    }

    /// Checks the heartbeat timers against the stored heartbeats and the health of the callback
    /// service. Without that evidence no attempt is declared lost; its timer is armed again.
    async fn confirm_silence(
        &mut self,
        due_timers: Vec<DueTimer>,
        now: Timestamp,
    ) -> Vec<DueTimer> {
        let (silent, mut others): (Vec<_>, Vec<_>) = due_timers
            .into_iter()
            .partition(|timer| timer.kind == TimerKind::Heartbeat);
        if silent.is_empty() {
            return others;
        }
        let evidence = self.heartbeat_evidence(&silent).await;
        for timer in silent {
            match &evidence {
                Ok(Some((since, beats))) => {
                    let last_beat = timer
                        .attempt
                        .and_then(|attempt| beats.get(&attempt))
                        .copied();
                    let evidence = Evidence {
                        last_beat,
                        healthy_since: Some(*since),
                    };
                    others.extend(self.check_due(timer.run, timer.task_ref, evidence, now));
                }
                Ok(None) | Err(_) => self
                    .timers
                    .arm(now.plus(RECHECK), timer.run, timer.task_ref),
            }
        }
        others
    }

    /// Returns since when the callback service is healthy and the last heartbeats; `None` while it
    /// is not healthy.
    async fn heartbeat_evidence(
        &self,
        silent: &[DueTimer],
    ) -> Result<Option<(Timestamp, HashMap<AttemptId, Timestamp>)>, StoreError> {
        let Some(since) = heartbeats::callbacks_healthy_since(&self.loops).await? else {
            return Ok(None);
        };
        let attempts = silent.iter().filter_map(|timer| timer.attempt);
        let beats = heartbeats::list_last(&self.loops, attempts).await?;
        Ok(Some((since, beats)))
    }

    /// Returns the timer if it is due, and arms it again otherwise.
    fn check_due(
        &mut self,
        run_id: RunId,
        task_ref: Option<TaskRef>,
        evidence: Evidence,
        now: Timestamp,
    ) -> Option<DueTimer> {
        let run = self.shards.get(&run_id.shard())?.runs.get(&run_id)?;
        let (attempt, due) = match task_ref {
            None => (
                None,
                (
                    TimerKind::RunDuration,
                    run.header.deadline.filter(|_| run.ended_at.is_none())?,
                ),
            ),
            Some(task_ref) => {
                let task_row = run.task_row(task_ref)?;
                let due = due_of(
                    task_row,
                    run.plan.as_ref()?.settings(task_ref.ordinal),
                    evidence.silent_since(),
                )?;
                (task_row.attempt_id, (due.kind, due.at))
            }
        };
        let (kind, at) = due;
        if at > now {
            self.timers.arm(at, run_id, task_ref);
            return None;
        }
        Some(DueTimer {
            run: run_id,
            task_ref,
            attempt,
            kind,
            at,
            evidence,
        })
    }

    fn timer_submission(&self, timer: &DueTimer) -> Option<Submission> {
        let run = self.shards.get(&timer.run.shard())?.runs.get(&timer.run)?;
        let timer_id = timer_id(run, timer)?;
        let body = Body::TimerFired(pb::TimerFired {
            run_id: timer.run.to_string(),
            task: timer.task_ref.map(wire::task_ref_to_proto),
            attempt_id: timer.attempt.map_or_else(String::new, |id| id.to_string()),
            timer_id: timer_id.to_string(),
            kind: kind_to_proto(timer.kind).into(),
            due_time: Some(proto_time(timer.at)),
            last_heartbeat_time: timer.evidence.last_beat.map(proto_time),
            callbacks_healthy_since: timer.evidence.healthy_since.map(proto_time),
        });
        let event = RunEvent {
            tenant: run.header.tenant.clone(),
            run_id: timer.run,
            event_id: event_id(),
            idempotency_key: IdempotencyKey::timer_fired(&timer_id).to_string(),
            body,
            trace: None,
        };
        let (reply, _) = oneshot::channel();
        Some(Submission {
            shard: timer.run.shard(),
            commands: vec![Command::Event(Arc::new(event))],
            reply,
        })
    }
}

fn timer_id(run: &Run, timer: &DueTimer) -> Option<TimerId> {
    let due_second = timer.at.unix_seconds();
    let Some(task_ref) = timer.task_ref else {
        return Some(TimerId::run(&timer.run, due_second));
    };
    let kind = match timer.kind {
        TimerKind::Retry => TaskTimer::Retry,
        TimerKind::DispatchAck => TaskTimer::DispatchAck,
        TimerKind::Heartbeat => TaskTimer::Heartbeat,
        TimerKind::Execution => TaskTimer::Execution,
        TimerKind::RunDuration => return None,
    };
    let key = run.plan.as_ref()?.task_key(task_ref);
    Some(TimerId::task(
        kind,
        &timer.run,
        &key,
        run.task_row(task_ref)?.attempt,
        due_second,
    ))
}

fn kind_to_proto(kind: TimerKind) -> pb::TimerKind {
    match kind {
        TimerKind::Retry => pb::TimerKind::Retry,
        TimerKind::DispatchAck => pb::TimerKind::DispatchAck,
        TimerKind::Heartbeat => pb::TimerKind::Heartbeat,
        TimerKind::Execution => pb::TimerKind::Execution,
        TimerKind::RunDuration => pb::TimerKind::RunDuration,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: i64) -> Timestamp {
        Timestamp::from_unix_us(us)
    }

    #[test]
    fn f10_a_due_timer_is_found_among_many_that_are_not_due() {
        let mut timers = Timers::default();
        let run = |n: u32| RunId::from_bytes(u128::from(n).to_be_bytes());
        (0..20_000).for_each(|n| timers.arm(at(1_000 + i64::from(n)), run(n), None));
        timers.arm(at(7), run(20_000), Some(TaskRef::planned(3)));
        assert_eq!(timers.next(), Some(at(7)));
        assert_eq!(
            timers.pop(at(500)),
            Some((run(20_000), Some(TaskRef::planned(3))))
        );
        assert_eq!(timers.pop(at(500)), None, "no timer fires early");
    }

    #[test]
    fn obsolete_entries_are_pruned() {
        let mut timers = Timers::default();
        let run = |n: u32| RunId::from_bytes(u128::from(n).to_be_bytes());
        for n in 0..50_000 {
            timers.arm(at(1_000 + i64::from(n)), run(n), None);
            if timers.needs_pruning() {
                timers.retain(|id, _| id == run(7) || id == run(n));
            }
        }
        assert!(
            timers.due.len() <= 2 * PRUNED_ENTRIES_MIN + 1,
            "{}",
            timers.due.len()
        );
        assert_eq!(timers.next(), Some(at(1_007)));
    }
}
