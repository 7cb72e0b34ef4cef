//! INV-1 and INV-2: a run's events fold to the same run in another order and with repeats.
//!
//! Only conflicting events keep their order: events of one task, of tasks that depend on each
//! other, and of the whole run. The start and the finish of one attempt may be swapped. Of two
//! events that end the same attempt the first wins: [`conflicting_pairs`] folds every kind of pair
//! in both orders.

use std::collections::BTreeMap;

use servo_model::retry::ErrorCategory;
use servo_model::states::{Machine, RunState, TaskState, TransitionReason};
use servo_model::{AttemptId, TaskRef, TenantId, Timestamp};
use servo_scheduler::core::{
    Changes, Event, Finished, Outcome, Plan, Run, TimerKind, Verdict, fold,
};

use crate::dice::Dice;
use crate::planned_run::PlannedRun;

/// A run has ended after at most this many events.
const EVENTS_MAX: usize = 200;
const SESSION: u64 = 1;

/// Counts over many seeds.
#[derive(Debug, Default, Clone, Copy)]
pub struct Permuted {
    pub orders: u64,
    pub events: u64,
    pub moved: u64,
    pub repeated: u64,
}

impl Permuted {
    pub fn add(&mut self, other: Permuted) {
        self.orders += other.orders;
        self.events += other.events;
        self.moved += other.moved;
        self.repeated += other.repeated;
    }
}

/// A run without the times that depend on other tasks' events.
type RunShape = (
    RunState,
    TransitionReason,
    Option<(u32, String)>,
    Vec<(TaskState, TransitionReason, u32, u32, bool)>,
);

fn shape(run: &Run) -> RunShape {
    let task_rows = run
        .task_rows()
        .map(|(_, task_row)| {
            (
                task_row.state,
                task_row.reason,
                task_row.attempt,
                task_row.failures,
                task_row.cancelling,
            )
        })
        .collect();
    (run.state, run.reason, run.error.clone(), task_rows)
}

/// Folds a random run in `orders` other orders. Fails with the first one that gives another result.
pub fn permute(seed: u64, orders: u64) -> Result<Permuted, String> {
    let mut dice = Dice::new(seed);
    let tenants = ["acme".parse::<TenantId>().expect("a name")];
    let tasks = dice.between(3, 9) as u32;
    let planned = PlannedRun::random(0, tasks, &tenants, &mut dice);
    let events = play(&planned, &mut dice);
    let wanted = shape(&refold(&planned, &events));
    let mut permuted = Permuted::default();
    for _ in 0..orders {
        let mut other = reorder(&events, &planned.plan, &mut dice);
        permuted.moved += other
            .iter()
            .zip(&events)
            .filter(|(now, then)| now.1 != then.1)
            .count() as u64;
        permuted.repeated += repeat_some(&mut other, &mut dice);
        let found = shape(&refold(&planned, &other));
        if found != wanted {
            return Err(format!(
                "it ends {found:?} instead of {wanted:?} after {other:?}"
            ));
        }
        permuted.orders += 1;
        permuted.events += other.len() as u64;
    }
    Ok(permuted)
}

fn refold(planned: &PlannedRun, events: &[(Event, Timestamp)]) -> Run {
    let mut run = Run::requested(planned.header.clone());
    for (event, at) in events {
        fold(&mut run, event, *at, &mut Changes::default());
    }
    run
}

/// Plays a random run to its end and returns every folded event; each has a different time.
fn play(planned: &PlannedRun, dice: &mut Dice) -> Vec<(Event, Timestamp)> {
    let mut run = Run::requested(planned.header.clone());
    let mut events = Vec::new();
    let mut now = Timestamp::from_unix_us(1);
    let mut next = Some(Event::PlanCreated {
        plan: planned.plan.clone(),
    });
    while let Some(event) = next {
        if fold(&mut run, &event, now, &mut Changes::default()) == Verdict::Folded {
            events.push((event, now));
        }
        now = now.plus_us(1);
        next = (!run.state.is_terminal() && now.unix_us() < EVENTS_MAX as i64)
            .then(|| any_event(planned, &run, dice));
    }
    events
}

fn any_event(planned: &PlannedRun, run: &Run, dice: &mut Dice) -> Event {
    if run.state == RunState::Paused {
        return Event::Resumed {
            version: run.version + 1,
        };
    }
    match dice.below(60) {
        0 => {
            return Event::Paused {
                version: run.version + 1,
            };
        }
        1 => {
            return Event::CancelRequested {
                version: run.version + 1,
                by_system: dice.percent(20),
            };
        }
        _ => {}
    }
    let open: Vec<TaskRef> = run
        .task_rows()
        .filter(|(_, task_row)| {
            matches!(task_row.state, TaskState::Ready | TaskState::RetryWait)
                || task_row.state.has_attempt()
        })
        .map(|(task_ref, _)| task_ref)
        .collect();
    let task_ref = *dice.pick(&open);
    let Some(task_row) = run.task_row(task_ref) else {
        return Event::Paused {
            version: run.version + 1,
        };
    };
    match (task_row.state, task_row.attempt_id) {
        (TaskState::Ready, _) => claim(planned, task_ref, task_row.attempt + 1),
        (_, Some(attempt)) if task_row.state.has_attempt() => {
            of_attempt(planned, task_ref, attempt, dice)
        }
        (_, attempt_id) => Event::TimerFired {
            kind: TimerKind::Retry,
            task: Some(task_ref),
            attempt_id,
        },
    }
}

fn claim(planned: &PlannedRun, task: TaskRef, attempt: u32) -> Event {
    let attempt_id = planned.attempt_id(task, attempt);
    let ack_us = planned.plan.settings(task.ordinal).dispatch_ack_us;
    Event::DispatchRequested {
        task,
        attempt,
        attempt_id,
        worker: None,
        pushed: planned.is_pushed(task),
        ack_us,
    }
}

fn of_attempt(
    planned: &PlannedRun,
    task: TaskRef,
    attempt_id: AttemptId,
    dice: &mut Dice,
) -> Event {
    let timer = |kind| Event::TimerFired {
        kind,
        task: Some(task),
        attempt_id: Some(attempt_id),
    };
    match dice.below(13) {
        0 => timer(TimerKind::DispatchAck),
        1 => timer(TimerKind::Heartbeat),
        2 => timer(TimerKind::Execution),
        3 | 4 => Event::TaskStarted {
            task,
            attempt_id,
            worker: None,
            session: SESSION,
        },
        5 => Event::DispatchEnqueued { task, attempt_id },
        6 => finish(planned, task, attempt_id, failed(ErrorCategory::Transient)),
        7 => finish(planned, task, attempt_id, failed(ErrorCategory::UserCode)),
        8 => finish(
            planned,
            task,
            attempt_id,
            dice.pick(&[Outcome::Skipped, Outcome::Interrupted]).clone(),
        ),
        9 => finish(
            planned,
            task,
            attempt_id,
            Outcome::Quarantined {
                has_good_version: dice.percent(50),
            },
        ),
        _ => finish(planned, task, attempt_id, Outcome::Succeeded),
    }
}

fn failed(category: ErrorCategory) -> Outcome {
    Outcome::Failed {
        category,
        error_type: "E".to_owned(),
        retriable: None,
    }
}

fn finish(planned: &PlannedRun, task: TaskRef, attempt_id: AttemptId, outcome: Outcome) -> Event {
    // The number of items depends only on the task, so it is the same in every order.
    let names = outcome == Outcome::Succeeded
        && task.map_index.is_none()
        && planned.is_mapped_over(task.ordinal);
    Event::TaskFinished(Box::new(Finished {
        task,
        attempt_id,
        worker: None,
        session: SESSION,
        started_at: None,
        items: names.then(|| (task.ordinal % 3, vec![].into())),
        outputs: Vec::new(),
        checks: Vec::new(),
        error: Vec::new(),
        message: format!("{outcome:?}"),
        outcome,
    }))
}

fn task_of(event: &Event) -> Option<TaskRef> {
    match event {
        Event::DispatchRequested { task, .. }
        | Event::DispatchEnqueued { task, .. }
        | Event::TaskStarted { task, .. } => Some(*task),
        Event::TaskFinished(finished) => Some(finished.task),
        Event::TimerFired { task, .. } => *task,
        _ => None,
    }
}

/// Whether two events must keep their order.
fn conflict(first: &Event, second: &Event, plan: &Plan) -> bool {
    let (Some(a), Some(b)) = (task_of(first), task_of(second)) else {
        return true;
    };
    let of_one_attempt = |started: &Event, finished: &Event| matches!((started, finished), (Event::TaskStarted { attempt_id, .. }, Event::TaskFinished(f)) if *attempt_id == f.attempt_id);
    if a == b {
        return !of_one_attempt(first, second) && !of_one_attempt(second, first);
    }
    a.ordinal == b.ordinal && (a.map_index.is_none() || b.map_index.is_none())
        || a.ordinal != b.ordinal
            && (leads(plan, a.ordinal, b.ordinal) || leads(plan, b.ordinal, a.ordinal))
}

fn leads(plan: &Plan, up: u32, down: u32) -> bool {
    plan.downstream(up)
        .iter()
        .any(|downstream| *downstream == down || leads(plan, *downstream, down))
}

/// A random order in which conflicting events keep their order.
fn reorder(events: &[(Event, Timestamp)], plan: &Plan, dice: &mut Dice) -> Vec<(Event, Timestamp)> {
    let mut left: Vec<&(Event, Timestamp)> = events.iter().collect();
    let mut order = Vec::with_capacity(events.len());
    while !left.is_empty() {
        let from = dice.below(left.len() as u64) as usize;
        let free = (0..=from).rev().find(|index| {
            left[..*index]
                .iter()
                .all(|earlier| !conflict(&earlier.0, &left[*index].0, plan))
        });
        order.push(left.remove(free.unwrap_or(0)).clone());
    }
    order
}

/// Inserts copies of some events after the originals.
fn repeat_some(events: &mut Vec<(Event, Timestamp)>, dice: &mut Dice) -> u64 {
    let copies = dice.below(events.len() as u64 / 2 + 1);
    for _ in 0..copies {
        let first = dice.below(events.len() as u64);
        let copy = events[first as usize].clone();
        let index = first + 1 + dice.below(events.len() as u64 - first);
        events.insert(index as usize, copy);
    }
    copies
}

/// A way in which an attempt can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Succeeded,
    FailedForGood,
    FailedTransiently,
    FailedItsChecks,
    Skipped,
    Quarantined,
    QuarantinedWithoutGood,
    Interrupted,
    NotPickedUp,
    NotHeardOf,
    OutOfTime,
    ForceCancelled,
    Superseded,
    RunCancelled,
}

impl End {
    pub const ALL: [End; 14] = [
        End::Succeeded,
        End::FailedForGood,
        End::FailedTransiently,
        End::FailedItsChecks,
        End::Skipped,
        End::Quarantined,
        End::QuarantinedWithoutGood,
        End::Interrupted,
        End::NotPickedUp,
        End::NotHeardOf,
        End::OutOfTime,
        End::ForceCancelled,
        End::Superseded,
        End::RunCancelled,
    ];

    fn event(self, planned: &PlannedRun, task: TaskRef, attempt_id: AttemptId) -> Event {
        let finish = |outcome| finish(planned, task, attempt_id, outcome);
        let timer = |kind| Event::TimerFired {
            kind,
            task: Some(task),
            attempt_id: Some(attempt_id),
        };
        match self {
            End::Succeeded => finish(Outcome::Succeeded),
            End::FailedForGood => finish(failed(ErrorCategory::UserCode)),
            End::FailedTransiently => finish(failed(ErrorCategory::Transient)),
            End::FailedItsChecks => finish(Outcome::CheckFailed),
            End::Skipped => finish(Outcome::Skipped),
            End::Quarantined => finish(Outcome::Quarantined {
                has_good_version: true,
            }),
            End::QuarantinedWithoutGood => finish(Outcome::Quarantined {
                has_good_version: false,
            }),
            End::Interrupted => finish(Outcome::Interrupted),
            End::NotPickedUp => timer(TimerKind::DispatchAck),
            End::NotHeardOf => timer(TimerKind::Heartbeat),
            End::OutOfTime => timer(TimerKind::Execution),
            End::ForceCancelled => Event::ForceCancelled {
                task,
                attempt_id,
                version: 1,
            },
            End::Superseded => claim(planned, task, 2),
            End::RunCancelled => Event::CancelRequested {
                version: 1,
                by_system: false,
            },
        }
    }
}

/// The stage of an attempt when two ends of it meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttemptStage {
    Claimed,
    Running,
    /// No worker started it, and its task is ready again.
    GivenBack,
}

impl AttemptStage {
    const ALL: [AttemptStage; 3] = [
        AttemptStage::Claimed,
        AttemptStage::Running,
        AttemptStage::GivenBack,
    ];

    fn events(self, planned: &PlannedRun, task: TaskRef, attempt_id: AttemptId) -> Vec<Event> {
        let started = Event::TaskStarted {
            task,
            attempt_id,
            worker: None,
            session: SESSION,
        };
        let mut events = vec![
            Event::PlanCreated {
                plan: planned.plan.clone(),
            },
            claim(planned, task, 1),
        ];
        match self {
            AttemptStage::Claimed => {}
            AttemptStage::Running => events.push(started),
            AttemptStage::GivenBack => {
                events.push(End::NotPickedUp.event(planned, task, attempt_id))
            }
        }
        events
    }

    /// Whether this end can come first in this stage; all others are refused.
    fn allows(self, first: End) -> bool {
        match (self, first) {
            (_, End::RunCancelled) => true,
            (AttemptStage::GivenBack, first) => first == End::Superseded,
            (AttemptStage::Claimed, first) => {
                !matches!(first, End::NotHeardOf | End::OutOfTime | End::Superseded)
            }
            (AttemptStage::Running, first) => !matches!(first, End::NotPickedUp | End::Superseded),
        }
    }
}

/// Folds every pair of ends of one attempt in both orders, from every stage of the attempt: the
/// first wins and the second changes nothing. After a cancel the attempt may still report its end,
/// so there the final state of the task is checked. Returns the number of pairs by their first end,
/// or the violation.
pub fn conflicting_pairs() -> Result<BTreeMap<String, u64>, String> {
    let mut judged: BTreeMap<(End, End), u64> = BTreeMap::new();
    let tenants = ["acme".parse::<TenantId>().expect("a name")];
    let planned = PlannedRun::random(0, 1, &tenants, &mut Dice::new(1));
    for stage in AttemptStage::ALL {
        for first in End::ALL {
            for second in End::ALL.into_iter().filter(|second| *second != first) {
                if pair(&planned, stage, first, second)
                    .map_err(|why| format!("{stage:?}: {why}"))?
                {
                    *judged.entry((first, second)).or_default() += 1;
                }
            }
        }
    }
    let every = End::ALL
        .into_iter()
        .flat_map(|one| End::ALL.map(|other| (one, other)));
    let missing: Vec<_> = every
        .filter(|(one, other)| one != other && !judged.contains_key(&(*one, *other)))
        .collect();
    if !missing.is_empty() {
        return Err(format!(
            "these pairs were never checked in this order: {missing:?}"
        ));
    }
    let mut by_first = BTreeMap::new();
    judged.iter().for_each(|((first, _), count)| {
        *by_first.entry(format!("{first:?}")).or_default() += count
    });
    Ok(by_first)
}

/// Returns whether the first end was possible; then the second was checked.
fn pair(
    planned: &PlannedRun,
    stage: AttemptStage,
    first: End,
    second: End,
) -> Result<bool, String> {
    let (task, attempt) = (
        TaskRef::planned(0),
        planned.attempt_id(TaskRef::planned(0), 1),
    );
    let mut run = Run::requested(planned.header.clone());
    for (us, event) in (1..).zip(&stage.events(planned, task, attempt)) {
        let at = Timestamp::from_unix_us(us);
        fold(&mut run, event, at, &mut Changes::default());
    }
    let counts = fold(
        &mut run,
        &first.event(planned, task, attempt),
        Timestamp::from_unix_us(10),
        &mut Changes::default(),
    ) == Verdict::Folded;
    if counts != stage.allows(first) {
        return Err(format!("{first:?} comes first: {counts}"));
    }
    if !counts {
        return Ok(false);
    }
    let before = shape(&run);
    let active = run
        .task_row(task)
        .is_some_and(|task_row| task_row.is_active(&attempt));
    fold(
        &mut run,
        &second.event(planned, task, attempt),
        Timestamp::from_unix_us(11),
        &mut Changes::default(),
    );
    let task_row = run.task_row(task).ok_or("the task is gone")?;
    let holds = if active {
        // Only a cancel leaves the attempt active; then only the end of a cancelled task follows.
        first == End::RunCancelled
            && (shape(&run) == before || task_row.state == TaskState::Cancelled)
    } else {
        // The run may still be cancelled, or its task claimed again, if the attempt did not end it.
        shape(&run) == before || moved_on(&before, second)
    };
    if holds {
        Ok(true)
    } else {
        Err(format!(
            "{first:?}, then {second:?}: the task is {} ({})",
            task_row.state, task_row.reason
        ))
    }
}

/// Whether the second event is the next step of the run and does not concern the attempt.
fn moved_on(before: &RunShape, second: End) -> bool {
    let (run, task) = (before.0, before.3[0].0);
    match second {
        End::RunCancelled => !run.is_terminal(),
        End::Superseded => task == TaskState::Ready,
        _ => false,
    }
}
