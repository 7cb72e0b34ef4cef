//! Checks a seed: folds the ledger again with the real core, event by event, and verifies every
//! invariant on it and on the rows that the instances wrote.

use std::collections::{BTreeMap, BTreeSet};

use servo_dispatcher::core::Limits;
use servo_model::edges::EdgeResolution;
use servo_model::states::{Machine, RunState, TaskState, TransitionReason};
use servo_model::{
    AdmissionShard, AttemptId, Epoch, Position, RunId, ShardId, Stream, TaskRef, TenantId,
    Timestamp,
};
use servo_scheduler::core::{
    Changes, Event, Promotion, Run, TaskRow, TimerKind, Verdict, due_of, fold,
};

use crate::SECOND;
use crate::env::Env;
use crate::flush::recorded_header;
use crate::ledger::{Body, Key, NewEvent, Recorded, Shard};
use crate::planned_run::POOL;

type Check = Result<(), String>;

/// Events that others appended must be folded within this time.
const FOLDED_WITHIN: i64 = 6 * SECOND;

/// Returns the first violation, with the number of the invariant.
pub fn all(env: &mut Env, limits: &Limits) -> Option<String> {
    let mut checker = Checker::default();
    let verdict = checker
        .refold(env)
        .and_then(|()| checker.compare(env))
        .and_then(|()| checker.began(env))
        .and_then(|()| checker.limits(limits));
    for reason in &checker.reasons {
        env.stats.reason(*reason);
    }
    env.stats.recorded = env
        .ledger
        .shards
        .iter()
        .map(|shard| shard.events.len() as u64)
        .sum();
    verdict.and_then(|()| promises(env)).err()
}

/// Checks that no newer dispatcher received a snapshot of the shard before this claim was stored,
/// because the snapshot would not contain it.
pub fn claim(event: &NewEvent, env: &mut Env) {
    let (Key::Dispatch(attempt), Some(planned)) = (event.key, env.planned_runs.get(&event.run))
    else {
        return;
    };
    let newest_epoch = env
        .snapshot_epochs
        .get(&(event.shard, planned.header.tenant.admission_shard()))
        .copied()
        .unwrap_or(Epoch::NEVER);
    if event.admission_epoch < newest_epoch {
        let why = format!(
            "{attempt} was claimed after the next dispatcher had received its snapshot (I2, I9)"
        );
        env.ledger.violation = Some(why);
    }
}

#[derive(Default)]
struct Checker {
    runs: BTreeMap<RunId, Run>,
    /// The same, with every event folded twice.
    doubled: BTreeMap<RunId, Run>,
    ended: BTreeSet<AttemptId>,
    /// When slots are taken and released; at equal times a release comes first.
    slots: Vec<(Timestamp, i32, TenantId, bool, Option<AttemptId>)>,
    /// The newest admission epoch that claimed, by shard of runs and admission shard.
    epochs: BTreeMap<(ShardId, AdmissionShard), Epoch>,
    reasons: Vec<TransitionReason>,
    /// The attempt that wrote each version.
    made: BTreeMap<(RunId, String, String), (TaskRef, AttemptId)>,
    /// The session whose start or outcome was folded.
    sessions: BTreeMap<AttemptId, u64>,
}

impl Checker {
    fn refold(&mut self, env: &Env) -> Check {
        for (number, shard) in Stream::Execution.shards().zip(&env.ledger.shards) {
            let mut position = Position::START;
            for recorded in &shard.events {
                position = position.next();
                if position > shard.watermark {
                    if recorded.at.plus_us(FOLDED_WITHIN) < env.now {
                        return Err(format!("{:?} was never folded (18)", recorded.event.key));
                    }
                    continue;
                }
                fenced(shard, recorded)?;
                self.event(number, position, recorded, env).map_err(|why| {
                    format!("{why}: {:?} at {number}/{position}", recorded.event.key)
                })?;
            }
        }
        Ok(())
    }

    fn event(
        &mut self,
        shard: ShardId,
        position: Position,
        recorded: &Recorded,
        env: &Env,
    ) -> Check {
        let run_id = recorded.event.run;
        let event = match &recorded.event.body {
            Body::Requested(header) => {
                if let Some(known) = self.runs.get(&run_id) {
                    let same = known.header.fingerprint == header.fingerprint;
                    return deny(same, "a request was recorded twice (12)");
                }
                let run = Run::requested(recorded_header(header, shard, position, recorded.at));
                self.reasons.push(run.reason);
                self.doubled.insert(run_id, run.clone());
                self.runs.insert(run_id, run);
                return Ok(());
            }
            Body::Core(event) => event,
        };
        if let Some(run) = self.doubled.get_mut(&run_id) {
            fold(run, event, recorded.at, &mut Changes::default());
            fold(run, event, recorded.at, &mut Changes::default());
        }
        let Some(run) = self.runs.get_mut(&run_id) else {
            return Ok(());
        };
        let before = run.clone();
        let mut changes = Changes::default();
        let verdict = fold(run, event, recorded.at, &mut changes);
        let after = run.clone();
        if matches!(verdict, Verdict::Refused(_) | Verdict::Duplicate) {
            return unchanged(&before, &after);
        }
        self.note(&after, &changes, recorded.at);
        self.accepted(&before, event, recorded, env)?;
        self.materialized(run_id, &changes)?;
        owners(&after)
    }

    /// I4: a run writes a version of each partition once.
    fn materialized(&mut self, run: RunId, changes: &Changes) -> Check {
        for made in changes
            .materialized
            .iter()
            .filter(|made| made.promotion != Promotion::Late)
        {
            let partition = (run, made.asset_key.clone(), made.partition_key.clone());
            let again = self
                .made
                .insert(partition, (made.task_ref, made.attempt_id))
                .is_some();
            deny(again, "a run wrote a partition twice (I4)")?;
        }
        Ok(())
    }

    /// I1: only one session counts for an attempt.
    fn session(&mut self, attempt: AttemptId, session: u64) -> Check {
        let first = *self.sessions.entry(attempt).or_insert(session);
        deny(
            first != session,
            "two processes counted for one attempt (I1)",
        )
    }

    /// One process executes an attempt, once; an attempt that needs permission runs in the process
    /// that got it.
    fn began(&self, env: &Env) -> Check {
        for (attempt, sessions) in &env.begun {
            let once: BTreeSet<u64> = sessions.iter().map(|(session, _)| *session).collect();
            deny(
                once.len() < sessions.len(),
                &format!("{attempt} began twice in one process (4)"),
            )?;
            let needed_permission = sessions
                .iter()
                .any(|(_, needed_permission)| *needed_permission);
            deny(
                once.len() > 1,
                &format!("two processes began {attempt} (4)"),
            )?;
            let other = self
                .sessions
                .get(attempt)
                .is_some_and(|session| !once.contains(session));
            deny(
                needed_permission && other,
                &format!("another process than the one that began {attempt} counts (I2)"),
            )?;
        }
        for ((run, ..), (task_ref, attempt)) in &self.made {
            let task_row = self.runs.get(run).and_then(|run| run.task_row(*task_ref));
            let wins = task_row.is_some_and(|task_row| {
                task_row.attempt_id == Some(*attempt) && task_row.state.is_terminal()
            });
            deny(
                !wins,
                &format!("{attempt} wrote a version but is not the final attempt (I4)"),
            )?;
        }
        Ok(())
    }

    fn note(&mut self, run: &Run, changes: &Changes, at: Timestamp) {
        self.reasons
            .extend(changes.run_history.iter().map(|(.., reason)| *reason));
        let Some(plan) = &run.plan else { return };
        for change in &changes.history {
            self.reasons.push(change.reason);
            let taken = i32::from(change.to.has_attempt()) - i32::from(change.from.has_attempt());
            if taken != 0 {
                let in_pool = &*plan.settings(change.task_ref.ordinal).pool == POOL;
                let attempt = run
                    .task_row(change.task_ref)
                    .and_then(|task_row| task_row.attempt_id);
                self.slots
                    .push((at, taken, run.header.tenant.clone(), in_pool, attempt));
            }
        }
    }

    fn accepted(&mut self, before: &Run, event: &Event, recorded: &Recorded, env: &Env) -> Check {
        if before.state.is_terminal() {
            return Err("an event was folded after its run had ended (I1)".to_owned());
        }
        match event {
            Event::DispatchRequested { task, .. } => self.claimed(
                before,
                *task,
                recorded.event.run.shard(),
                recorded.event.admission_epoch,
            ),
            Event::TaskStarted {
                task,
                attempt_id,
                session,
                ..
            } => {
                self.session(*attempt_id, *session)?;
                let cancelling = before
                    .task_row(*task)
                    .is_none_or(|task_row| task_row.cancelling);
                deny(cancelling, "an attempt was started after its cancel (I13)")
            }
            Event::TaskFinished(finished) => {
                self.session(finished.attempt_id, finished.session)?;
                self.end(finished.attempt_id)
            }
            Event::ForceCancelled { attempt_id, .. } => self.end(*attempt_id),
            Event::TimerFired {
                kind,
                task,
                attempt_id,
            } => {
                if let (Some(attempt), true) = (attempt_id, *kind != TimerKind::Retry) {
                    self.end(*attempt)?;
                }
                let due = due(before, *kind, *task, recorded.event.judged_at, env);
                deny(
                    due.is_none_or(|due| recorded.at < due),
                    "a timer fired early (9)",
                )
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, attempt: AttemptId) -> Check {
        deny(!self.ended.insert(attempt), "an attempt ended twice (I1)")
    }

    fn claimed(&mut self, before: &Run, task: TaskRef, shard: ShardId, epoch: Epoch) -> Check {
        let Some(plan) = &before.plan else {
            return Err("claimed without a plan (I8)".to_owned());
        };
        let end = |up: &u32| {
            before
                .task_row(TaskRef::planned(*up))
                .and_then(TaskRow::resolution)
        };
        let succeeded = |up: &u32| end(up) == Some(EdgeResolution::Success);
        let waits = !plan.task(task.ordinal).upstream.iter().all(succeeded);
        deny(
            waits,
            "a task was claimed before its upstreams succeeded (I8, 6)",
        )?;
        let newest = self
            .epochs
            .entry((shard, before.header.tenant.admission_shard()))
            .or_default();
        let stale = epoch < *newest;
        *newest = (*newest).max(epoch);
        deny(
            stale,
            "a claim under a lost admission lease was accepted (I2, I15)",
        )
    }

    /// I5, 2 and 10: the rows equal the fold of the ledger, with and without duplicates.
    fn compare(&self, env: &Env) -> Check {
        for (run_id, run) in &self.runs {
            let Some(row) = env.ledger.rows.get(run_id) else {
                return Err(format!("{run_id} has no row (I5)"));
            };
            if let Some(other) = row.differs_from(run) {
                return Err(format!("rows and ledger differ (I5): {run_id} {other}"));
            }
            if let Some(other) = row.differs_from(&self.doubled[run_id]) {
                return Err(format!(
                    "a duplicate made a difference (2): {run_id} {other}"
                ));
            }
            propagated(run).map_err(|why| format!("{why} in {run_id}"))?;
        }
        deny(
            env.ledger.rows.len() != self.runs.len(),
            "a row has no run in the ledger (I5)",
        )
    }

    /// I9: the limits hold at every time at which a slot is taken or released.
    fn limits(&mut self, limits: &Limits) -> Check {
        self.slots.sort();
        let mut used: BTreeMap<&TenantId, (i32, i32)> = BTreeMap::new();
        let mut holders: BTreeSet<Option<AttemptId>> = BTreeSet::new();
        for (at, taken, tenant, in_pool, attempt) in &self.slots {
            if *in_pool && *taken > 0 {
                holders.insert(*attempt);
            } else {
                holders.remove(attempt);
            }
            let (tasks, pool) = used.entry(tenant).or_default();
            *tasks += taken;
            *pool += if *in_pool { *taken } else { 0 };
            let of = limits.of(tenant);
            let cap = of.max_concurrent_tasks.map_or(i32::MAX, |max| max as i32);
            let slots = of.pools.get(POOL).map_or(i32::MAX, |slots| *slots as i32);
            if *tasks > cap || *pool > slots {
                return Err(format!(
                    "{tenant} holds {tasks} slots, {pool} of its pool, at {} (I9): {holders:?}",
                    at.unix_us()
                ));
            }
        }
        Ok(())
    }
}

/// 19, I15: a holder writes only under the newest lease of the shard.
fn fenced(shard: &Shard, recorded: &Recorded) -> Check {
    let Some((epoch, at)) = recorded.under else {
        return Ok(());
    };
    let newest = shard
        .grants
        .iter()
        .filter(|(_, since)| *since <= at)
        .map(|(epoch, _)| *epoch)
        .max();
    deny(
        newest != Some(epoch),
        &format!(
            "{:?} was written under a lease that had moved (19)",
            recorded.event.key
        ),
    )
}

fn deny(wrong: bool, why: &str) -> Check {
    if wrong { Err(why.to_owned()) } else { Ok(()) }
}

/// 8: a refused event changes nothing.
fn unchanged(before: &Run, after: &Run) -> Check {
    let same = (before.state, before.version) == (after.state, after.version)
        && before
            .task_rows()
            .zip(after.task_rows())
            .all(|(before, after)| before == after);
    deny(!same, "a refused event changed its run (8)")
}

/// When this timer may fire.
fn due(
    run: &Run,
    kind: TimerKind,
    task: Option<TaskRef>,
    judged_at: Timestamp,
    env: &Env,
) -> Option<Timestamp> {
    if kind == TimerKind::RunDuration {
        return run.header.deadline;
    }
    let task_row = run.task_row(task?)?;
    let beats = task_row
        .attempt_id
        .and_then(|id| env.beats.get(&id))
        .into_iter()
        .flatten();
    let beat = beats.copied().filter(|beat| *beat <= judged_at).max();
    let due = due_of(task_row, run.plan.as_ref()?.settings(task?.ordinal), beat)?;
    match (kind, due.kind) {
        // Both the heartbeat and the execution timer may be due; either may fire.
        (TimerKind::Execution, TimerKind::Heartbeat) => task_row.due_at,
        _ => Some(due.at),
    }
}

/// I16: every open task has an owner.
fn owners(run: &Run) -> Check {
    let Some(plan) = run.plan.as_ref().filter(|_| !run.state.is_terminal()) else {
        return Ok(());
    };
    let open = |task_ref: TaskRef| {
        run.task_row(task_ref)
            .is_some_and(|task_row| !task_row.state.is_terminal())
    };
    let parents: BTreeSet<u32> = run
        .task_rows()
        .filter(|(task_ref, _)| task_ref.map_index.is_some() && open(*task_ref))
        .map(|(task_ref, _)| task_ref.ordinal)
        .collect();
    for (task_ref, task_row) in run
        .task_rows()
        .filter(|(_, task_row)| !task_row.state.is_terminal())
    {
        let owned = match task_row.state {
            TaskState::Ready => true,
            TaskState::Blocked => {
                parents.contains(&task_ref.ordinal)
                    || plan
                        .task(task_ref.ordinal)
                        .upstream
                        .iter()
                        .any(|up| open(TaskRef::planned(*up)))
            }
            TaskState::Planned => false,
            _ => task_row.due_at.is_some(),
        };
        deny(
            !owned,
            &format!("{task_ref:?} is {} and has no owner (I16)", task_row.state),
        )?;
    }
    Ok(())
}

/// 10: the upstreams decide, unless the run was stopped.
fn propagated(run: &Run) -> Check {
    let Some(plan) = run.plan.as_ref().filter(|_| run.state.is_terminal()) else {
        return Ok(());
    };
    for (task_ref, task_row) in run
        .task_rows()
        .filter(|(task_ref, _)| task_ref.map_index.is_none())
    {
        let ups = plan.task(task_ref.ordinal).upstream.iter();
        let ups: Vec<EdgeResolution> = ups
            .filter_map(|up| run.task_row(TaskRef::planned(*up))?.resolution())
            .collect();
        let stopped = matches!(
            task_row.reason,
            TransitionReason::RunCancelled | TransitionReason::RunTimedOut
        );
        let failed = ups
            .iter()
            .any(|up| matches!(up, EdgeResolution::Failed | EdgeResolution::Skipped));
        let cancelled = ups.contains(&EdgeResolution::Cancelled);
        let fits = match task_row.state {
            TaskState::Skipped if failed => true,
            TaskState::Skipped if !cancelled && ups.contains(&EdgeResolution::Withheld) => {
                task_row.reason == TransitionReason::UpstreamQuarantined
            }
            TaskState::Cancelled if stopped => true,
            TaskState::Cancelled if !failed && cancelled => true,
            _ => ups.iter().all(|up| *up == EdgeResolution::Success),
        };
        let fresh = plan.task(task_ref.ordinal).up_to_date;
        let left_alone = task_row.reason == TransitionReason::UpToDate && task_row.attempt == 0;
        deny(
            fresh != left_alone,
            &format!(
                "{task_ref:?} is up to date: {fresh}, but {}",
                task_row.reason
            ),
        )?;
        deny(
            !fits,
            &format!("{task_ref:?} is {} after {ups:?} (10)", task_row.state),
        )?;
    }
    let failed = run.task_rows().any(|(task_ref, task_row)| {
        task_ref.map_index.is_none() && task_row.state == TaskState::Failed
    });
    deny(
        run.state == RunState::Succeeded && failed,
        "a run succeeded with a failed task (10)",
    )
}

/// 20: everything that was acknowledged is stored.
fn promises(env: &Env) -> Check {
    match env.promised.iter().find(|(key, _)| !env.ledger.has(key)) {
        Some((key, whom)) => Err(format!(
            "{key:?} was acknowledged to {whom} but is not stored (20)"
        )),
        None => Ok(()),
    }
}
