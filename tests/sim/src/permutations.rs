//! INV-1 and INV-2 on their own: a random run's events in another order and with repeats fold to the same run.
//!
//! Only events that conflict keep their order: those of one task, those of tasks that wait for each other, and what
//! concerns the whole run. Started and finished of one attempt may change places too. Of two events that end the same
//! attempt the first wins, whichever it is: [`conflicting_pairs`] folds every kind of pair both ways.

use std::collections::BTreeMap;

use servo_model::retry::ErrorCategory;
use servo_model::states::{Machine, RunState, TaskState, TransitionReason};
use servo_model::{AttemptId, TenantId};
use servo_scheduler::core::{
    Changes, Event, Finished, Graph, Outcome, Run, Slot, Time, TimerKind, Verdict, fold,
};

use crate::dice::Dice;
use crate::plan::Plan;

/// Whatever a run does, it has ended by then.
const EVENTS_MAX: usize = 200;
const SESSION: u64 = 1;

/// What was folded, over many seeds.
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

/// Everything of a run but the times of what followed from other tasks' events.
type Shape = (
    RunState,
    TransitionReason,
    Option<(u32, String)>,
    Vec<(TaskState, TransitionReason, u32, u32, bool)>,
);

fn shape(run: &Run) -> Shape {
    let cells = run
        .cells()
        .map(|(_, c)| (c.state, c.reason, c.attempt, c.failures, c.cancelling))
        .collect();
    (run.state, run.reason, run.error.clone(), cells)
}

/// One random run, folded again in `orders` other orders. Errs with the first that ends elsewhere.
pub fn permute(seed: u64, orders: u64) -> Result<Permuted, String> {
    let mut dice = Dice::new(seed);
    let tenants = ["acme".parse::<TenantId>().expect("a name")];
    let tasks = dice.between(3, 9) as u32;
    let plan = Plan::random(0, tasks, &tenants, &mut dice);
    let events = play(&plan, &mut dice);
    let wanted = shape(&refold(&plan, &events));
    let mut done = Permuted::default();
    for _ in 0..orders {
        let mut other = reorder(&events, &plan.graph, &mut dice);
        done.moved += other
            .iter()
            .zip(&events)
            .filter(|(now, then)| now.1 != then.1)
            .count() as u64;
        done.repeated += repeat_some(&mut other, &mut dice);
        let found = shape(&refold(&plan, &other));
        if found != wanted {
            return Err(format!(
                "it ends {found:?} instead of {wanted:?} after {other:?}"
            ));
        }
        done.orders += 1;
        done.events += other.len() as u64;
    }
    Ok(done)
}

fn refold(plan: &Plan, events: &[(Event, Time)]) -> Run {
    let mut run = Run::requested(plan.header.clone());
    for (event, at) in events {
        fold(&mut run, event, *at, &mut Changes::default());
    }
    run
}

/// Plays the run to its end by dice and answers every event that took effect; each has a time of its own.
fn play(plan: &Plan, dice: &mut Dice) -> Vec<(Event, Time)> {
    let mut run = Run::requested(plan.header.clone());
    let mut events = Vec::new();
    let mut now = 1;
    let mut next = Some(Event::PlanCreated {
        graph: plan.graph.clone(),
    });
    while let Some(event) = next {
        if fold(&mut run, &event, now, &mut Changes::default()) == Verdict::Folded {
            events.push((event, now));
        }
        now += 1;
        next = (!run.state.is_terminal() && now < EVENTS_MAX as Time)
            .then(|| any_event(plan, &run, dice));
    }
    events
}

fn any_event(plan: &Plan, run: &Run, dice: &mut Dice) -> Event {
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
    let open: Vec<Slot> = run
        .cells()
        .filter(|(_, c)| {
            matches!(c.state, TaskState::Ready | TaskState::RetryWait) || c.state.has_attempt()
        })
        .map(|(slot, _)| slot)
        .collect();
    let slot = *dice.pick(&open);
    let Some(cell) = run.cell(slot) else {
        return Event::Paused {
            version: run.version + 1,
        };
    };
    match (cell.state, cell.attempt_id) {
        (TaskState::Ready, _) => claim(plan, slot, cell.attempt + 1),
        (_, Some(attempt)) if cell.state.has_attempt() => of_attempt(plan, slot, attempt, dice),
        (_, attempt_id) => Event::Timer {
            kind: TimerKind::Retry,
            task: Some(slot),
            attempt_id,
        },
    }
}

fn claim(plan: &Plan, task: Slot, attempt: u32) -> Event {
    let attempt_id = plan.attempt_id(task, attempt);
    let ack_us = plan.graph.settings(task.ordinal).dispatch_ack_us;
    Event::Claimed {
        task,
        attempt,
        attempt_id,
        worker: None,
        pushed: plan.is_pushed(task),
        ack_us,
    }
}

fn of_attempt(plan: &Plan, task: Slot, attempt_id: AttemptId, dice: &mut Dice) -> Event {
    let timer = |kind| Event::Timer {
        kind,
        task: Some(task),
        attempt_id: Some(attempt_id),
    };
    match dice.below(13) {
        0 => timer(TimerKind::DispatchAck),
        1 => timer(TimerKind::Heartbeat),
        2 => timer(TimerKind::Execution),
        3 | 4 => Event::Started {
            task,
            attempt_id,
            worker: None,
            session: SESSION,
        },
        5 => Event::Enqueued { task, attempt_id },
        6 => finish(plan, task, attempt_id, failed(ErrorCategory::Transient)),
        7 => finish(plan, task, attempt_id, failed(ErrorCategory::UserCode)),
        8 => finish(
            plan,
            task,
            attempt_id,
            dice.pick(&[Outcome::Skipped, Outcome::Interrupted]).clone(),
        ),
        9 => finish(
            plan,
            task,
            attempt_id,
            Outcome::Quarantined {
                has_good_version: dice.percent(50),
            },
        ),
        _ => finish(plan, task, attempt_id, Outcome::Succeeded),
    }
}

fn failed(category: ErrorCategory) -> Outcome {
    Outcome::Failed {
        category,
        error_type: "E".to_owned(),
        retriable: None,
    }
}

fn finish(plan: &Plan, task: Slot, attempt_id: AttemptId, outcome: Outcome) -> Event {
    // The number of items is the task's own affair, the same in every order.
    let names =
        outcome == Outcome::Succeeded && task.item.is_none() && plan.is_mapped_over(task.ordinal);
    Event::Finished(Box::new(Finished {
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

fn task_of(event: &Event) -> Option<Slot> {
    match event {
        Event::Claimed { task, .. }
        | Event::Enqueued { task, .. }
        | Event::Started { task, .. } => Some(*task),
        Event::Finished(finished) => Some(finished.task),
        Event::Timer { task, .. } => *task,
        _ => None,
    }
}

/// Whether two events must keep their order.
fn conflict(first: &Event, second: &Event, graph: &Graph) -> bool {
    let (Some(a), Some(b)) = (task_of(first), task_of(second)) else {
        return true;
    };
    let of_one_attempt = |started: &Event, finished: &Event| matches!((started, finished), (Event::Started { attempt_id, .. }, Event::Finished(f)) if *attempt_id == f.attempt_id);
    if a == b {
        return !of_one_attempt(first, second) && !of_one_attempt(second, first);
    }
    a.ordinal == b.ordinal && (a.item.is_none() || b.item.is_none())
        || a.ordinal != b.ordinal
            && (leads(graph, a.ordinal, b.ordinal) || leads(graph, b.ordinal, a.ordinal))
}

fn leads(graph: &Graph, up: u32, down: u32) -> bool {
    graph
        .waiters(up)
        .iter()
        .any(|waiter| *waiter == down || leads(graph, *waiter, down))
}

/// A random order in which every event stands behind all that it conflicts with.
fn reorder(events: &[(Event, Time)], graph: &Graph, dice: &mut Dice) -> Vec<(Event, Time)> {
    let mut left: Vec<&(Event, Time)> = events.iter().collect();
    let mut order = Vec::with_capacity(events.len());
    while !left.is_empty() {
        let from = dice.below(left.len() as u64) as usize;
        let free = (0..=from).rev().find(|place| {
            left[..*place]
                .iter()
                .all(|earlier| !conflict(&earlier.0, &left[*place].0, graph))
        });
        order.push(left.remove(free.unwrap_or(0)).clone());
    }
    order
}

/// Puts copies of some events anywhere behind the first.
fn repeat_some(events: &mut Vec<(Event, Time)>, dice: &mut Dice) -> u64 {
    let copies = dice.below(events.len() as u64 / 2 + 1);
    for _ in 0..copies {
        let first = dice.below(events.len() as u64);
        let copy = events[first as usize].clone();
        let place = first + 1 + dice.below(events.len() as u64 - first);
        events.insert(place as usize, copy);
    }
    copies
}

/// A way in which an attempt can end, or be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Succeeded,
    FailedForGood,
    FailedInPassing,
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
        End::FailedInPassing,
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

    fn event(self, plan: &Plan, task: Slot, attempt_id: AttemptId) -> Event {
        let finish = |outcome| finish(plan, task, attempt_id, outcome);
        let timer = |kind| Event::Timer {
            kind,
            task: Some(task),
            attempt_id: Some(attempt_id),
        };
        match self {
            End::Succeeded => finish(Outcome::Succeeded),
            End::FailedForGood => finish(failed(ErrorCategory::UserCode)),
            End::FailedInPassing => finish(failed(ErrorCategory::Transient)),
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
            End::Superseded => claim(plan, task, 2),
            End::RunCancelled => Event::CancelRequested {
                version: 1,
                by_system: false,
            },
        }
    }
}

/// Where the first attempt of a task stands when two ends of it meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    Claimed,
    Running,
    /// Nobody picked it up, and its task is ready again.
    GivenBack,
}

impl Stands {
    const ALL: [Stands; 3] = [Stands::Claimed, Stands::Running, Stands::GivenBack];

    fn events(self, plan: &Plan, task: Slot, attempt_id: AttemptId) -> Vec<Event> {
        let started = Event::Started {
            task,
            attempt_id,
            worker: None,
            session: SESSION,
        };
        let mut events = vec![
            Event::PlanCreated {
                graph: plan.graph.clone(),
            },
            claim(plan, task, 1),
        ];
        match self {
            Stands::Claimed => {}
            Stands::Running => events.push(started),
            Stands::GivenBack => events.push(End::NotPickedUp.event(plan, task, attempt_id)),
        }
        events
    }

    /// Whether this can come first from here; everything else is refused, which is asserted too.
    fn allows(self, first: End) -> bool {
        match (self, first) {
            (_, End::RunCancelled) => true,
            (Stands::GivenBack, first) => first == End::Superseded,
            (Stands::Claimed, first) => {
                !matches!(first, End::NotHeardOf | End::OutOfTime | End::Superseded)
            }
            (Stands::Running, first) => !matches!(first, End::NotPickedUp | End::Superseded),
        }
    }
}

/// Folds every pair of ends of one attempt both ways, from every state that an attempt can be in: what comes first
/// wins, and what comes later changes nothing. A cancel leaves a living attempt its last word, so there the order is
/// told by where the task ends. Answers how many pairs were judged by what came first, or what broke.
pub fn conflicting_pairs() -> Result<BTreeMap<String, u64>, String> {
    let mut judged: BTreeMap<(End, End), u64> = BTreeMap::new();
    let tenants = ["acme".parse::<TenantId>().expect("a name")];
    let plan = Plan::random(0, 1, &tenants, &mut Dice::new(1));
    for stands in Stands::ALL {
        for first in End::ALL {
            for second in End::ALL.into_iter().filter(|second| *second != first) {
                if pair(&plan, stands, first, second).map_err(|why| format!("{stands:?}: {why}"))? {
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
        return Err(format!("these never met in this order: {missing:?}"));
    }
    let mut by_first = BTreeMap::new();
    judged.iter().for_each(|((first, _), count)| {
        *by_first.entry(format!("{first:?}")).or_default() += count
    });
    Ok(by_first)
}

/// Answers whether the first could happen; then the second was held against it.
fn pair(plan: &Plan, stands: Stands, first: End, second: End) -> Result<bool, String> {
    let (task, attempt) = (Slot::planned(0), plan.attempt_id(Slot::planned(0), 1));
    let mut run = Run::requested(plan.header.clone());
    for (at, event) in (1..).zip(&stands.events(plan, task, attempt)) {
        fold(&mut run, event, at, &mut Changes::default());
    }
    let counts = fold(
        &mut run,
        &first.event(plan, task, attempt),
        10,
        &mut Changes::default(),
    ) == Verdict::Folded;
    if counts != stands.allows(first) {
        return Err(format!("{first:?} comes first: {counts}"));
    }
    if !counts {
        return Ok(false);
    }
    let before = shape(&run);
    let active = run.cell(task).is_some_and(|cell| cell.is_active(&attempt));
    fold(
        &mut run,
        &second.event(plan, task, attempt),
        11,
        &mut Changes::default(),
    );
    let cell = run.cell(task).ok_or("the task is gone")?;
    let holds = match active {
        // Only a cancel leaves the attempt alive; then nothing but the end of a cancelled task follows.
        true => {
            first == End::RunCancelled
                && (shape(&run) == before || cell.state == TaskState::Cancelled)
        }
        // A run may still be cancelled, or its task claimed anew, after an attempt that did not end it.
        false => shape(&run) == before || moved_on(&before, second),
    };
    match holds {
        true => Ok(true),
        false => Err(format!(
            "{first:?}, then {second:?}: the task is {} ({})",
            cell.state, cell.reason
        )),
    }
}

/// Whether what came later is no verdict about the attempt but the run's next step.
fn moved_on(before: &Shape, second: End) -> bool {
    let (run, task) = (before.0, before.3[0].0);
    match second {
        End::RunCancelled => !run.is_terminal(),
        End::Superseded => task == TaskState::Ready,
        _ => false,
    }
}
