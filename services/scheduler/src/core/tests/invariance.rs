//! INV-1 and INV-2: duplicates, and the order of events that do not conflict, change nothing.

use proptest::prelude::*;
use servo_model::retry::ErrorCategory;
use servo_model::states::{Machine, RunState, TaskState, TransitionReason};
use servo_model::{TaskRef, Timestamp};

use super::world::{World, any_plan, claimed, failed, finished, p, plan, quarantined, requested};
use crate::core::{Changes, Event, Outcome, Run, TimerKind, Verdict, fold};

/// A run without the times that depend on other tasks' events.
type Shape = (
    RunState,
    TransitionReason,
    Option<(u32, String)>,
    Vec<(TaskState, TransitionReason, u32, u32, bool)>,
);

fn shape(run: &Run) -> Shape {
    let task_rows = run
        .task_rows()
        .map(|(_, c)| (c.state, c.reason, c.attempt, c.failures, c.cancelling))
        .collect();
    (run.state, run.reason, run.error.clone(), task_rows)
}

fn refold(events: &[(Event, Timestamp)]) -> Run {
    let mut run = requested();
    for (event, at) in events {
        fold(&mut run, event, *at, &mut Changes::default());
    }
    run
}

/// Plays a random run to its end and returns every folded event.
fn play(plan: &std::sync::Arc<crate::core::Plan>, dice: &[u8]) -> Vec<(Event, Timestamp)> {
    let mut world = World {
        run: requested(),
        plan: plan.clone(),
        changes: Changes::default(),
        now: Timestamp::UNIX_EPOCH,
    };
    let mut events = Vec::new();
    let mut dice = dice.iter().copied().cycle();
    let mut roll = || dice.next().unwrap_or(0);
    let begin = Event::PlanCreated { plan: plan.clone() };
    world.fold(&begin);
    events.push((begin, world.now));
    while !world.run.state.is_terminal() && events.len() < 400 {
        let open: Vec<TaskRef> = world
            .run
            .task_rows()
            .filter(|(_, c)| {
                c.state == TaskState::Ready
                    || c.state == TaskState::RetryWait
                    || c.state.has_attempt()
            })
            .map(|(task_ref, _)| task_ref)
            .collect();
        let task_ref = open[usize::from(roll()) % open.len()];
        let task_row = world.run.task_row(task_ref).unwrap().clone();
        let timer = |kind| Event::TimerFired {
            kind,
            task: Some(task_ref),
            attempt_id: task_row.attempt_id,
        };
        let event = match task_row.state {
            TaskState::Ready => claimed(plan, task_ref, task_row.attempt + 1),
            TaskState::RetryWait => timer(TimerKind::Retry),
            _ => match roll() % 10 {
                0 => timer(TimerKind::DispatchAck),
                1 => Event::TaskStarted {
                    task: task_ref,
                    attempt_id: task_row.attempt_id.unwrap(),
                    worker: None,
                    session: 1,
                },
                2 => finished(
                    task_ref,
                    task_row.attempt_id.unwrap(),
                    failed(ErrorCategory::Transient),
                ),
                3 => finished(
                    task_ref,
                    task_row.attempt_id.unwrap(),
                    failed(ErrorCategory::UserCode),
                ),
                4 => finished(task_ref, task_row.attempt_id.unwrap(), Outcome::Skipped),
                5 => finished(task_ref, task_row.attempt_id.unwrap(), quarantined(false)),
                6 => finished(task_ref, task_row.attempt_id.unwrap(), quarantined(true)),
                _ => finished(task_ref, task_row.attempt_id.unwrap(), Outcome::Succeeded),
            },
        };
        if world.fold(&event) == Verdict::Folded {
            events.push((event, world.now));
        }
    }
    events
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

/// Whether two adjacent events may be swapped: they concern different tasks, and neither enabled
/// the other.
fn swaps(first: &Event, second: &Event, plan: &crate::core::Plan) -> bool {
    let (Some(a), Some(b)) = (task_of(first), task_of(second)) else {
        return false;
    };
    let leads = |up: TaskRef, down: TaskRef| {
        let mut reached = vec![up.ordinal];
        let mut seen = std::collections::HashSet::new();
        while let Some(next) = reached.pop() {
            if next == down.ordinal {
                return true;
            }
            reached.extend(
                plan.downstream(next)
                    .iter()
                    .filter(|downstream_task| seen.insert(**downstream_task)),
            );
        }
        false
    };
    a != b && !leads(a, b) && !leads(b, a)
}

proptest! {
    #[test]
    fn inv_1_the_order_of_events_that_do_not_conflict_does_not_matter(
        plan in any_plan(7),
        dice in prop::collection::vec(any::<u8>(), 32),
        swap in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let events = play(&plan, &dice);
        let mut other = events.clone();
        for index in swap {
            if other.len() < 2 { break; }
            let index = index.index(other.len() - 1);
            if swaps(&other[index].0, &other[index + 1].0, &plan) {
                other.swap(index, index + 1);
            }
        }
        prop_assert_eq!(shape(&refold(&events)), shape(&refold(&other)));
    }

    #[test]
    fn inv_2_an_event_folded_twice_is_folded_once(
        plan in any_plan(7),
        dice in prop::collection::vec(any::<u8>(), 32),
        repeats in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..30),
    ) {
        let events = play(&plan, &dice);
        let mut other = events.clone();
        for (from, to) in repeats {
            let from = from.index(events.len());
            let copy = events[from].clone();
            // Anywhere after the first occurrence.
            let first = other.iter().position(|(_, at)| *at == copy.1).unwrap();
            let place = first + 1 + to.index(other.len() - first);
            other.insert(place.min(other.len()), copy);
        }
        prop_assert_eq!(shape(&refold(&events)), shape(&refold(&other)));
    }

    #[test]
    fn inv_6_and_10_tasks_start_after_their_upstreams_and_runs_end(
        plan in any_plan(9),
        dice in prop::collection::vec(any::<u8>(), 48),
    ) {
        let events = play(&plan, &dice);
        let mut run = requested();
        for (event, at) in &events {
            if let Event::DispatchRequested { task, .. } = event {
                let upstream = &plan.task(task.ordinal).upstream;
                prop_assert!(upstream.iter().all(|up| run.task_row(p(*up)).unwrap().state == TaskState::Succeeded));
            }
            fold(&mut run, event, *at, &mut Changes::default());
        }
        prop_assert!(run.state.is_terminal());
        for (task_ref, task_row) in run.task_rows() {
            let upstream = || plan.task(task_ref.ordinal).upstream.iter().map(|up| run.task_row(p(*up)).unwrap());
            let bad = upstream().any(|up| matches!(up.state, TaskState::Failed | TaskState::Skipped));
            let unreadable = upstream().any(|up| up.reason == TransitionReason::OutputWithheld);
            prop_assert!(!(bad || unreadable) || task_row.state == TaskState::Skipped, "{task_ref:?} is {}", task_row.state);
            if task_row.reason == TransitionReason::UpstreamQuarantined {
                prop_assert!(unreadable && !bad, "{task_ref:?}");
            }
            let fresh = plan.task(task_ref.ordinal).up_to_date;
            prop_assert_eq!(fresh, task_row.reason == TransitionReason::UpToDate);
            prop_assert!(!fresh || (task_row.state, task_row.attempt) == (TaskState::Succeeded, 0));
        }
    }
}

/// Of two conflicting events the first wins and the second changes nothing.
#[test]
fn of_conflicting_events_the_first_wins() {
    let plan = plan(&[&[]]);
    let attempt = super::world::attempt_id(&plan, p(0), 1);
    let timer = |kind| Event::TimerFired {
        kind,
        task: Some(p(0)),
        attempt_id: Some(attempt),
    };
    let pairs = [
        (
            finished(p(0), attempt, Outcome::Succeeded),
            finished(p(0), attempt, failed(ErrorCategory::UserCode)),
        ),
        (
            finished(p(0), attempt, Outcome::Succeeded),
            timer(TimerKind::Heartbeat),
        ),
        (
            finished(p(0), attempt, Outcome::Succeeded),
            timer(TimerKind::Execution),
        ),
        (
            finished(p(0), attempt, Outcome::Skipped),
            timer(TimerKind::Heartbeat),
        ),
        (
            finished(p(0), attempt, quarantined(false)),
            timer(TimerKind::Heartbeat),
        ),
        (
            finished(p(0), attempt, Outcome::Succeeded),
            Event::ForceCancelled {
                task: p(0),
                attempt_id: attempt,
                version: 1,
            },
        ),
    ];
    for (one, other) in pairs {
        for (first, second) in [(&one, &other), (&other, &one)] {
            let mut world = World::begun(plan.clone());
            world.claim(p(0));
            world.start(p(0), 1);
            assert_eq!(world.fold(first), Verdict::Folded, "{first:?}");
            let after = shape(&world.run);
            assert!(
                matches!(world.fold(second), Verdict::Refused(_)),
                "{second:?} after {first:?}"
            );
            assert_eq!(shape(&world.run), after);
        }
    }
}
