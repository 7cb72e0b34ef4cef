//! Entries of the failure catalogue and invariants that the fold of a run guarantees.

use servo_model::TaskRef;
use servo_model::retry::ErrorCategory;
use servo_model::states::{Machine, RunState, TaskState, TransitionReason};

use super::world::{ACK_US, World, attempt_id, claimed, failed, finished, p, plan};
use crate::core::{Event, Outcome, Refusal, TaskRow, TimerKind, Verdict, due_of};

const STALE: Verdict = Verdict::Refused(Refusal::StaleAttempt);

fn one() -> World {
    World::begun(plan(&[&[]]))
}

/// A run whose task was claimed and started.
fn running() -> World {
    let mut world = one();
    world.claim(p(0));
    world.start(p(0), 1);
    world
}

fn task_row(world: &World, task_ref: TaskRef) -> &TaskRow {
    world.run.task_row(task_ref).unwrap()
}

#[test]
fn f02_a_dead_attempt_ends_once_for_repeated_timers() {
    let mut world = running();
    let dead = world.active(p(0));
    let verdict = Event::TimerFired {
        kind: TimerKind::Heartbeat,
        task: Some(p(0)),
        attempt_id: Some(dead),
    };
    assert_eq!(world.fold(&verdict), Verdict::Folded);
    for _ in 0..4 {
        assert_eq!(world.fold(&verdict), STALE);
    }
    assert_eq!(
        (
            task_row(&world, p(0)).attempt,
            task_row(&world, p(0)).failures
        ),
        (1, 1)
    );
}

#[test]
fn f03_every_attempt_in_flight_has_a_due_time() {
    let mut world = one();
    let due = |world: &World| due_of(task_row(world, p(0)), world.plan.settings(0), None);
    world.claim(p(0));
    assert_eq!(due(&world).unwrap().kind, TimerKind::DispatchAck);
    world.start(p(0), 1);
    assert_eq!(due(&world).unwrap().kind, TimerKind::Heartbeat);
    world.fold(&Event::CancelRequested {
        version: 1,
        by_system: false,
    });
    assert!(
        task_row(&world, p(0)).cancelling && due(&world).is_some(),
        "also while it is being cancelled"
    );
    world.timer(p(0), TimerKind::Heartbeat);
    assert_eq!(
        (world.state(p(0)), due(&world)),
        (TaskState::Cancelled, None)
    );
    assert_eq!(world.changes.ended.len(), 1, "the slot is released");
}

#[test]
fn f05_heartbeats_do_not_extend_the_execution_timeout() {
    let world = running();
    let settings = world.plan.settings(0);
    let started = task_row(&world, p(0)).started_at.unwrap();
    let deadline = started.plus_us(settings.execution_us);
    let due = due_of(task_row(&world, p(0)), settings, Some(deadline)).unwrap();
    assert_eq!((due.kind, due.at), (TimerKind::Execution, deadline));
}

#[test]
fn f07_a_started_attempt_outlives_its_dispatch_deadline() {
    let mut world = running();
    let settings = world.plan.settings(0);
    let beaten = world.now.plus_us(45 * 60 * 1_000_000);
    assert!(beaten > world.now.plus_us(ACK_US));
    let due = due_of(task_row(&world, p(0)), settings, Some(beaten)).unwrap();
    assert!(due.at > beaten, "{due:?}");
    assert_eq!(
        world.timer(p(0), TimerKind::DispatchAck),
        Verdict::Refused(Refusal::NotDue)
    );
    assert_eq!(world.finish(p(0), Outcome::Succeeded), Verdict::Folded);
    assert_eq!(task_row(&world, p(0)).attempt, 1);
}

#[test]
fn f08_inv_8_events_of_a_lost_attempt_change_nothing() {
    let mut world = running();
    let paused = world.active(p(0));
    world.timer(p(0), TimerKind::Heartbeat);
    world.timer(p(0), TimerKind::Retry);
    world.claim(p(0));
    let events = [
        Event::TaskStarted {
            task: p(0),
            attempt_id: paused,
            worker: None,
            session: 1,
        },
        Event::DispatchEnqueued {
            task: p(0),
            attempt_id: paused,
        },
        finished(p(0), paused, Outcome::Succeeded),
        finished(p(0), paused, failed(ErrorCategory::UserCode)),
        Event::TimerFired {
            kind: TimerKind::Execution,
            task: Some(p(0)),
            attempt_id: Some(paused),
        },
    ];
    let before = task_row(&world, p(0)).clone();
    for event in &events {
        assert_eq!(world.fold(event), STALE, "{event:?}");
    }
    assert_eq!(*task_row(&world, p(0)), before);
    world.finish(p(0), Outcome::Succeeded);
    events
        .iter()
        .for_each(|event| assert_eq!(world.fold(event), STALE, "{event:?}"));
    assert_eq!(world.run.state, RunState::Succeeded);
}

#[test]
fn f12_events_that_contradict_the_task_state_are_refused() {
    let mut world = World::begun(plan(&[&[], &[0]]));
    let early = claimed(&world.plan.clone(), p(1), 1);
    assert_eq!(
        world.fold(&early),
        Verdict::Refused(Refusal::TaskNotReady(1))
    );
    let behind = claimed(&world.plan.clone(), p(0), 0);
    assert_eq!(
        world.fold(&behind),
        Verdict::Refused(Refusal::TaskNotReady(0))
    );
    let unknown = attempt_id(&world.plan.clone(), p(0), 1);
    let unknown_attempt = finished(p(0), unknown, Outcome::Succeeded);
    assert_eq!(
        world.fold(&unknown_attempt),
        Verdict::Refused(Refusal::AttemptUnknown)
    );
    assert_eq!(world.states(), [TaskState::Ready, TaskState::Blocked]);
}

#[test]
fn f13_an_outcome_counts_although_its_start_was_lost() {
    let mut world = one();
    world.claim(p(0));
    assert_eq!(world.finish(p(0), Outcome::Succeeded), Verdict::Folded);
    let again = finished(p(0), world.active(p(0)), Outcome::Succeeded);
    assert_eq!(world.fold(&again), Verdict::Duplicate);
    assert_eq!(world.run.state, RunState::Succeeded);
}

#[test]
fn f17_a_cancel_works_in_every_task_state() {
    let to = |steps: &[fn(&mut World)]| {
        let mut world = World::begun(plan(&[&[], &[0]]));
        steps.iter().for_each(|step| step(&mut world));
        world.fold(&Event::CancelRequested {
            version: 1,
            by_system: false,
        });
        assert_eq!(
            world.state(p(1)),
            TaskState::Cancelled,
            "a waiting task ends at once"
        );
        world
    };
    let claim: fn(&mut World) = |world| {
        world.claim(p(0));
    };
    let enqueue: fn(&mut World) = |world| {
        let attempt_id = world.active(p(0));
        world.fold(&Event::DispatchEnqueued {
            task: p(0),
            attempt_id,
        });
    };
    let start: fn(&mut World) = |world| {
        world.start(p(0), 1);
    };
    let lose: fn(&mut World) = |world| {
        world.timer(p(0), TimerKind::Heartbeat);
    };
    for waits in [&[][..], &[claim, start, lose]] {
        let world = to(waits);
        assert_eq!(
            (world.state(p(0)), world.run.state),
            (TaskState::Cancelled, RunState::Cancelled)
        );
    }
    for (has, silent) in [
        (&[claim][..], TimerKind::DispatchAck),
        (&[claim, enqueue], TimerKind::DispatchAck),
        (&[claim, start], TimerKind::Heartbeat),
    ] {
        let mut world = to(has);
        assert_eq!(
            world.changes.cancelling,
            [p(0)],
            "its worker is asked to stop"
        );
        if silent == TimerKind::DispatchAck {
            assert_eq!(
                world.start(p(0), 9),
                Verdict::Refused(Refusal::AttemptCancelled)
            );
        }
        assert_eq!(
            world.timer(p(0), silent),
            Verdict::Folded,
            "and it expires when its worker does not answer"
        );
        assert_eq!(
            (world.state(p(0)), world.run.state),
            (TaskState::Cancelled, RunState::Cancelled)
        );
    }
}

#[test]
fn inv_3_equal_events_give_equal_decisions_and_ids() {
    let play = || {
        let mut world = World::begun(plan(&[&[], &[0], &[0], &[1, 2]]));
        world.run_down(|task_ref| {
            if task_ref == p(1) {
                failed(ErrorCategory::Transient)
            } else {
                Outcome::Succeeded
            }
        });
        world.timer(p(1), TimerKind::Retry);
        world.claim(p(1));
        world
    };
    let (first, second) = (play(), play());
    let decisions = |world: &World| {
        let ids: Vec<_> = world
            .run
            .task_rows()
            .map(|(_, task_row)| (task_row.attempt_id, task_row.due_at))
            .collect();
        (
            ids,
            world.changes.ready.clone(),
            world.changes.due.clone(),
            world.changes.ended.clone(),
        )
    };
    assert_eq!(decisions(&first), decisions(&second));
    assert_eq!(
        first.active(p(1)),
        attempt_id(&first.plan, p(1), 2),
        "attempt ids are derived"
    );
}

#[test]
fn inv_5_every_open_task_has_an_owner() {
    let owned = |world: &World| {
        for (task_ref, task_row) in world.run.task_rows() {
            let due = due_of(task_row, world.plan.settings(task_ref.ordinal), None).is_some();
            let waits = world.plan.task(task_ref.ordinal).upstream.iter();
            let upstream_open = waits
                .map(|up| world.state(p(*up)))
                .any(|state| !state.is_terminal());
            let owned = match task_row.state {
                TaskState::Ready => world.changes.ready.contains(&task_ref),
                TaskState::Planned | TaskState::Blocked => upstream_open,
                state => state.is_terminal() || due,
            };
            assert!(
                owned,
                "{task_ref:?} is {:?} and has no owner",
                task_row.state
            );
        }
    };
    let mut world = World::begun(plan(&[&[], &[0], &[0], &[1, 2]]));
    owned(&world);
    for ordinal in 0..4 {
        world.claim(p(ordinal));
        owned(&world);
        world.start(p(ordinal), 1);
        owned(&world);
        world.finish(p(ordinal), failed(ErrorCategory::Transient));
        owned(&world);
        world.timer(p(ordinal), TimerKind::Retry);
        owned(&world);
        world.claim(p(ordinal));
        world.finish(p(ordinal), Outcome::Succeeded);
        owned(&world);
    }
    assert_eq!(world.run.state, RunState::Succeeded);
}

#[test]
fn inv_10_ends_propagate_downstream() {
    let ends = |outcome: Outcome| {
        let mut world = World::begun(plan(&[&[], &[0], &[1]]));
        world.claim(p(0));
        world.finish(p(0), outcome);
        (world.states(), task_row(&world, p(2)).reason)
    };
    let (succeeded, _) = ends(Outcome::Succeeded);
    assert_eq!(
        succeeded,
        [TaskState::Succeeded, TaskState::Ready, TaskState::Blocked]
    );
    let skipped = [TaskState::Skipped; 2];
    for (outcome, first) in [
        (failed(ErrorCategory::UserCode), TaskState::Failed),
        (Outcome::Skipped, TaskState::Skipped),
    ] {
        let (states, _) = ends(outcome);
        assert_eq!(
            (states[0], &states[1..]),
            (first, &skipped[..]),
            "transitively"
        );
    }
    let mut world = World::begun(plan(&[&[], &[0], &[1]]));
    world.claim(p(0));
    let attempt_id = world.active(p(0));
    world.fold(&Event::ForceCancelled {
        task: p(0),
        attempt_id,
        version: 1,
    });
    assert_eq!(world.states(), [TaskState::Cancelled; 3]);
    assert_eq!(
        task_row(&world, p(2)).reason,
        TransitionReason::UpstreamCancelled
    );
}
