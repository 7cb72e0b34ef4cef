//! INV-1 and INV-2 on their own: a random run's events in another order and with repeats fold to the same run.
//!
//! Only events that conflict keep their order: those of one task, those of tasks that wait for each other, and what
//! concerns the whole run. Started and finished of one attempt may change places too. Of two events that end the same
//! attempt the first wins, whichever it is: [`conflicting_pairs`] folds every kind of pair both ways.

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
type Shape =
    (RunState, TransitionReason, Option<(u32, String)>, Vec<(TaskState, TransitionReason, u32, u32, bool)>);

fn shape(run: &Run) -> Shape {
    let cells = run.cells().map(|(_, c)| (c.state, c.reason, c.attempt, c.failures, c.cancelling)).collect();
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
        done.moved += other.iter().zip(&events).filter(|(now, then)| now.1 != then.1).count() as u64;
        done.repeated += repeat_some(&mut other, &mut dice);
        let found = shape(&refold(&plan, &other));
        if found != wanted {
            return Err(format!("it ends {found:?} instead of {wanted:?} after {other:?}"));
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
    let mut next = Some(Event::PlanCreated { graph: plan.graph.clone() });
    while let Some(event) = next {
        if fold(&mut run, &event, now, &mut Changes::default()) == Verdict::Folded {
            events.push((event, now));
        }
        now += 1;
        next = (!run.state.is_terminal() && now < EVENTS_MAX as Time).then(|| any_event(plan, &run, dice));
    }
    events
}

fn any_event(plan: &Plan, run: &Run, dice: &mut Dice) -> Event {
    if run.state == RunState::Paused {
        return Event::Resumed { version: run.version + 1 };
    }
    match dice.below(60) {
        0 => return Event::Paused { version: run.version + 1 },
        1 => return Event::CancelRequested { version: run.version + 1, by_system: dice.percent(20) },
        _ => {}
    }
    let open: Vec<Slot> = run
        .cells()
        .filter(|(_, c)| matches!(c.state, TaskState::Ready | TaskState::RetryWait) || c.state.has_attempt())
        .map(|(slot, _)| slot)
        .collect();
    let slot = *dice.pick(&open);
    let Some(cell) = run.cell(slot) else { return Event::Paused { version: run.version + 1 } };
    match (cell.state, cell.attempt_id) {
        (TaskState::Ready, _) => claim(plan, slot, cell.attempt + 1),
        (_, Some(attempt)) if cell.state.has_attempt() => of_attempt(plan, slot, attempt, dice),
        (_, attempt_id) => Event::Timer { kind: TimerKind::Retry, task: Some(slot), attempt_id },
    }
}

fn claim(plan: &Plan, task: Slot, attempt: u32) -> Event {
    let attempt_id = plan.attempt_id(task, attempt);
    let ack_us = plan.graph.settings(task.ordinal).dispatch_ack_us;
    Event::Claimed { task, attempt, attempt_id, worker: None, pushed: plan.is_pushed(task), ack_us }
}

fn of_attempt(plan: &Plan, task: Slot, attempt_id: AttemptId, dice: &mut Dice) -> Event {
    let timer = |kind| Event::Timer { kind, task: Some(task), attempt_id: Some(attempt_id) };
    match dice.below(13) {
        0 => timer(TimerKind::DispatchAck),
        1 => timer(TimerKind::Heartbeat),
        2 => timer(TimerKind::Execution),
        3 | 4 => Event::Started { task, attempt_id, worker: None, session: SESSION },
        5 => Event::Enqueued { task, attempt_id },
        6 => finish(plan, task, attempt_id, failed(ErrorCategory::Transient)),
        7 => finish(plan, task, attempt_id, failed(ErrorCategory::UserCode)),
        8 => finish(plan, task, attempt_id, dice.pick(&[Outcome::Skipped, Outcome::Interrupted]).clone()),
        9 => finish(plan, task, attempt_id, Outcome::Quarantined { has_good_version: dice.percent(50) }),
        _ => finish(plan, task, attempt_id, Outcome::Succeeded),
    }
}

fn failed(category: ErrorCategory) -> Outcome {
    Outcome::Failed { category, error_type: "E".to_owned(), retriable: None }
}

fn finish(plan: &Plan, task: Slot, attempt_id: AttemptId, outcome: Outcome) -> Event {
    // The number of items is the task's own affair, the same in every order.
    let names = outcome == Outcome::Succeeded && task.item.is_none() && plan.is_mapped_over(task.ordinal);
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
        Event::Claimed { task, .. } | Event::Enqueued { task, .. } | Event::Started { task, .. } => {
            Some(*task)
        }
        Event::Finished(finished) => Some(finished.task),
        Event::Timer { task, .. } => *task,
        _ => None,
    }
}

/// Whether two events must keep their order.
fn conflict(first: &Event, second: &Event, graph: &Graph) -> bool {
    let (Some(a), Some(b)) = (task_of(first), task_of(second)) else { return true };
    let of_one_attempt = |started: &Event, finished: &Event| matches!((started, finished), (Event::Started { attempt_id, .. }, Event::Finished(f)) if *attempt_id == f.attempt_id);
    if a == b {
        return !of_one_attempt(first, second) && !of_one_attempt(second, first);
    }
    a.ordinal == b.ordinal && (a.item.is_none() || b.item.is_none())
        || a.ordinal != b.ordinal
            && (leads(graph, a.ordinal, b.ordinal) || leads(graph, b.ordinal, a.ordinal))
}

fn leads(graph: &Graph, up: u32, down: u32) -> bool {
    graph.waiters(up).iter().any(|waiter| *waiter == down || leads(graph, *waiter, down))
}

/// A random order in which every event stands behind all that it conflicts with.
fn reorder(events: &[(Event, Time)], graph: &Graph, dice: &mut Dice) -> Vec<(Event, Time)> {
    let mut left: Vec<&(Event, Time)> = events.iter().collect();
    let mut order = Vec::with_capacity(events.len());
    while !left.is_empty() {
        let from = dice.below(left.len() as u64) as usize;
        let free = (0..=from)
            .rev()
            .find(|place| left[..*place].iter().all(|earlier| !conflict(&earlier.0, &left[*place].0, graph)));
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

/// Every way in which an attempt can end.
fn ends(plan: &Plan, task: Slot, attempt_id: AttemptId) -> Vec<(&'static str, Event)> {
    let finish = |outcome| finish(plan, task, attempt_id, outcome);
    let timer = |kind| Event::Timer { kind, task: Some(task), attempt_id: Some(attempt_id) };
    vec![
        ("succeeded", finish(Outcome::Succeeded)),
        ("failed for good", finish(failed(ErrorCategory::UserCode))),
        ("failed in passing", finish(failed(ErrorCategory::Transient))),
        ("failed its checks", finish(Outcome::CheckFailed)),
        ("skipped", finish(Outcome::Skipped)),
        ("quarantined", finish(Outcome::Quarantined { has_good_version: true })),
        ("quarantined without a good version", finish(Outcome::Quarantined { has_good_version: false })),
        ("interrupted", finish(Outcome::Interrupted)),
        ("not picked up", timer(TimerKind::DispatchAck)),
        ("not heard of", timer(TimerKind::Heartbeat)),
        ("out of time", timer(TimerKind::Execution)),
        ("force cancelled", Event::ForceCancelled { task, attempt_id, version: 1 }),
        ("superseded", claim(plan, task, 2)),
        ("run cancelled", Event::CancelRequested { version: 1, by_system: false }),
    ]
}

/// Folds every pair of ends of one attempt both ways, from every state that an attempt can be in: what comes first
/// wins, and what comes later changes nothing. A cancel leaves a living attempt its last word, so there the order is
/// told by where the task ends. Answers how many ordered pairs were judged, or what broke.
pub fn conflicting_pairs() -> Result<u64, String> {
    let mut judged = 0;
    let tenants = ["acme".parse::<TenantId>().expect("a name")];
    let plan = Plan::random(0, 1, &tenants, &mut Dice::new(1));
    let (task, attempt) = (Slot::planned(0), plan.attempt_id(Slot::planned(0), 1));
    let started = Event::Started { task, attempt_id: attempt, worker: None, session: SESSION };
    let claimed = vec![Event::PlanCreated { graph: plan.graph.clone() }, claim(&plan, task, 1)];
    let running = [claimed.clone(), vec![started]].concat();
    for beginning in [claimed, running] {
        for (one, first) in ends(&plan, task, attempt) {
            for (other, second) in ends(&plan, task, attempt) {
                let mut run = Run::requested(plan.header.clone());
                for (at, event) in (1..).zip(&beginning) {
                    fold(&mut run, event, at, &mut Changes::default());
                }
                if one == other || fold(&mut run, &first, 10, &mut Changes::default()) != Verdict::Folded {
                    continue;
                }
                let before = shape(&run);
                let active = run.cell(task).is_some_and(|cell| cell.is_active(&attempt));
                fold(&mut run, &second, 11, &mut Changes::default());
                let cell = run.cell(task).ok_or("the task is gone")?;
                let holds = match active {
                    // Only a cancel leaves the attempt alive; then nothing but the end of a cancelled task follows.
                    true => {
                        one == "run cancelled"
                            && (shape(&run) == before || cell.state == TaskState::Cancelled)
                    }
                    // A run may still be cancelled, or its task claimed anew, after an attempt that did not end it.
                    false => shape(&run) == before || moved_on(&before, other),
                };
                if !holds {
                    return Err(format!("{one}, then {other}: the task is {} ({})", cell.state, cell.reason));
                }
                judged += 1;
            }
        }
    }
    Ok(judged)
}

/// Whether what came later is no verdict about the attempt but the run's next step.
fn moved_on(before: &Shape, other: &str) -> bool {
    let (run, task) = (before.0, before.3[0].0);
    match other {
        "run cancelled" => !run.is_terminal(),
        "superseded" => task == TaskState::Ready,
        _ => false,
    }
}
