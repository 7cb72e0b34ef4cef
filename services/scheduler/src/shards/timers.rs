//! Due times of a lane's tasks, without a tick: the lane sleeps until the earliest.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use servo_model::dispatch_id::TaskTimer;
use servo_model::idempotency::IdempotencyKey;
use servo_model::{AttemptId, RunId, TaskRef, TimerId};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::{StoreError, Timestamp, query};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::command::{Command, RunEvent, Submission};
use super::lane::Lane;
use crate::core::{Run, Time, TimerKind, due_of};
use crate::wire;

/// How many verdicts one flush carries.
const FIRED_PER_FLUSH_MAX: usize = 1_024;
/// Fewer are not worth looking through.
const ENTRIES_LOOKED_THROUGH_MIN: usize = 4_096;
/// When beats could not be read.
const LOOK_AGAIN_US: Time = 1_000_000;

/// What is armed may be out of date by the time it falls: it only says when to look.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: BinaryHeap<Reverse<(Time, RunId, Option<TaskRef>)>>,
    /// How many were wanted when it was last looked through.
    wanted: usize,
}

impl Timers {
    /// Whether it may hold mostly what nobody waits for any more: a run that ended leaves its deadline behind.
    fn is_overgrown(&self) -> bool {
        self.due.len() > 2 * self.wanted.max(ENTRIES_LOOKED_THROUGH_MIN)
    }

    fn keep_only(&mut self, is_wanted: impl Fn(RunId, Option<TaskRef>) -> bool) {
        self.due
            .retain(|Reverse((_, run, task_ref))| is_wanted(*run, *task_ref));
        self.due.shrink_to(2 * self.due.len());
        self.wanted = self.due.len();
    }

    pub(super) fn arm(&mut self, at: Time, run: RunId, task_ref: Option<TaskRef>) {
        self.due.push(Reverse((at, run, task_ref)));
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    fn pop(&mut self, now: Time) -> Option<(RunId, Option<TaskRef>)> {
        let Reverse((at, ..)) = self.due.peek()?;
        if *at > now {
            return None;
        }
        self.due
            .pop()
            .map(|Reverse((_, run, task_ref))| (run, task_ref))
    }
}

/// A verdict that is due if what is known is all there is.
struct DueTimer {
    run: RunId,
    task_ref: Option<TaskRef>,
    attempt: Option<AttemptId>,
    kind: TimerKind,
    at: Time,
    evidence: Evidence,
}

/// What a verdict about silence stands on.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    last_beat: Option<Time>,
    /// Since when beats could be heard.
    healthy_since: Option<Time>,
}

impl Evidence {
    /// Until when nothing can be said of the attempt: its last beat, or what it sent while nobody could hear.
    fn heard(self) -> Option<Time> {
        self.last_beat.max(self.healthy_since)
    }
}

impl Lane {
    /// Forgets what was armed for runs and tasks that have ended, once that is most of it.
    pub(super) fn prune_timers(&mut self) {
        if self.timers.is_overgrown() {
            let shards = &self.shards;
            self.timers.keep_only(|run, task_ref| {
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

    /// Arms everything of a run that was just loaded or begun.
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
            None => self.set_clock().await,
        };
        // While the database does not answer nothing can be stored either.
        let Ok(now) = clock.map(|clock| clock.now()) else {
            return;
        };
        let mut fallen = Vec::new();
        while let Some((run, task_ref)) = self.timers.pop(now) {
            fallen.extend(self.judge(run, task_ref, Evidence::default(), now));
            if fallen.len() == FIRED_PER_FLUSH_MAX {
                break;
            }
        }
        let fallen = self.confirm_silence(fallen, now).await;
        let submissions = fallen
            .iter()
            .filter_map(|verdict| self.timer_submission(verdict))
            .collect();
        self.flush(submissions).await;
    }

    /// Who seems silent may have beaten meanwhile, or against a closed door. Without an answer about that nobody is
    /// judged.
    async fn confirm_silence(&mut self, fallen: Vec<DueTimer>, now: Time) -> Vec<DueTimer> {
        let (silent, mut others): (Vec<_>, Vec<_>) = fallen
            .into_iter()
            .partition(|verdict| verdict.kind == TimerKind::Heartbeat);
        if silent.is_empty() {
            return others;
        }
        let heard = match self.callbacks_healthy_since().await {
            Ok(Some(since)) => self
                .last_beats(&silent)
                .await
                .map(|beats| Some((since, beats))),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        for verdict in silent {
            match &heard {
                Ok(Some((since, beats))) => {
                    let last_beat = verdict
                        .attempt
                        .and_then(|attempt| beats.get(&attempt))
                        .copied();
                    let evidence = Evidence {
                        last_beat,
                        healthy_since: Some(*since),
                    };
                    others.extend(self.judge(verdict.run, verdict.task_ref, evidence, now));
                }
                Ok(None) | Err(_) => {
                    self.timers
                        .arm(now + LOOK_AGAIN_US, verdict.run, verdict.task_ref)
                }
            }
        }
        others
    }

    /// Since when every instance of the callback takes beats, if they all do.
    async fn callbacks_healthy_since(&self) -> Result<Option<Time>, StoreError> {
        let select = query(include_str!("../store/callback_health.sql"));
        let rows: Vec<(Option<Timestamp>,)> = self.loops.all(select).await?;
        Ok(rows
            .into_iter()
            .find_map(|(since,)| since)
            .map(|since| since.unix_us()))
    }

    /// What falls now, or arms it again for when it will.
    fn judge(
        &mut self,
        run_id: RunId,
        task_ref: Option<TaskRef>,
        evidence: Evidence,
        now: Time,
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
                    evidence.heard(),
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

    /// The last signs of life of attempts that seem silent.
    async fn last_beats(
        &self,
        silent: &[DueTimer],
    ) -> Result<HashMap<AttemptId, Time>, StoreError> {
        let ids = silent.iter().filter_map(|verdict| verdict.attempt);
        let ids: Vec<Uuid> = ids.map(|id| Uuid::from_bytes(*id.as_bytes())).collect();
        let select = query(include_str!("../store/last_beats.sql")).bind(&ids);
        let rows: Vec<(Uuid, Timestamp)> = self.loops.all(select).await?;
        let beat =
            |(id, at): (Uuid, Timestamp)| (AttemptId::from_bytes(id.into_bytes()), at.unix_us());
        Ok(rows.into_iter().map(beat).collect())
    }

    fn timer_submission(&self, verdict: &DueTimer) -> Option<Submission> {
        let run = self
            .shards
            .get(&verdict.run.shard())?
            .runs
            .get(&verdict.run)?;
        let timer_id = timer_id(run, verdict)?;
        let body = Body::TimerFired(pb::TimerFired {
            run_id: verdict.run.to_string(),
            task: verdict.task_ref.map(wire::task_ref_to_proto),
            attempt_id: verdict
                .attempt
                .map_or_else(String::new, |id| id.to_string()),
            timer_id: timer_id.to_string(),
            kind: kind_to_proto(verdict.kind).into(),
            due_time: Some(wire::timestamp(verdict.at)),
            last_heartbeat_time: verdict.evidence.last_beat.map(wire::timestamp),
            callbacks_healthy_since: verdict.evidence.healthy_since.map(wire::timestamp),
        });
        let event = RunEvent {
            tenant: run.header.tenant.to_string(),
            run_id: verdict.run,
            event_id: Uuid::from_u128(ulid::Ulid::generate().into()),
            idempotency_key: IdempotencyKey::timer_fired(&timer_id).to_string(),
            body,
            trace: None,
        };
        let (reply, _) = oneshot::channel();
        Some(Submission {
            shard: verdict.run.shard(),
            commands: vec![Command::Event(Arc::new(event))],
            reply,
        })
    }
}

fn timer_id(run: &Run, verdict: &DueTimer) -> Option<TimerId> {
    let epoch = verdict.at / 1_000_000;
    let Some(task_ref) = verdict.task_ref else {
        return Some(TimerId::run(&verdict.run, epoch));
    };
    let kind = match verdict.kind {
        TimerKind::Retry => TaskTimer::Retry,
        TimerKind::DispatchAck => TaskTimer::DispatchAck,
        TimerKind::Heartbeat => TaskTimer::Heartbeat,
        TimerKind::Execution => TaskTimer::Execution,
        TimerKind::RunDuration => return None,
    };
    let planned = &run.plan.as_ref()?.task(task_ref.ordinal).key;
    let key = task_ref
        .map_index
        .map_or_else(|| planned.clone(), |item| planned.child(item));
    Some(TimerId::task(
        kind,
        &verdict.run,
        &key,
        run.task_row(task_ref)?.attempt,
        epoch,
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

    #[test]
    fn f10_what_is_due_is_found_however_much_is_not() {
        let mut timers = Timers::default();
        let run = |n: u32| RunId::from_bytes(u128::from(n).to_be_bytes());
        (0..20_000).for_each(|n| timers.arm(1_000 + Time::from(n), run(n), None));
        timers.arm(7, run(20_000), Some(TaskRef::planned(3)));
        assert_eq!(timers.next(), Some(7));
        assert_eq!(
            timers.pop(500),
            Some((run(20_000), Some(TaskRef::planned(3))))
        );
        assert_eq!(timers.pop(500), None, "nobody is judged before its time");
    }

    #[test]
    fn what_has_ended_leaves_nothing_behind() {
        let mut timers = Timers::default();
        let run = |n: u32| RunId::from_bytes(u128::from(n).to_be_bytes());
        for n in 0..50_000 {
            timers.arm(1_000 + Time::from(n), run(n), None);
            if timers.is_overgrown() {
                timers.keep_only(|id, _| id == run(7) || id == run(n));
            }
        }
        assert!(
            timers.due.len() <= 2 * ENTRIES_LOOKED_THROUGH_MIN + 1,
            "{}",
            timers.due.len()
        );
        assert_eq!(timers.next(), Some(1_007));
    }
}
