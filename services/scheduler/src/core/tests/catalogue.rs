//! Entries of the failure catalogue and invariants that a run's own fold answers for, by their numbers.

use servo_model::TaskRef;
use servo_model::retry::ErrorCategory;
use servo_model::states::{Machine, RunState, TaskState, TransitionReason};

use super::world::{ACK_US, World, attempt_id, claimed, failed, finished, p, plan};
use crate::core::{Event, Outcome, Refusal, TaskRow, TimerKind, Verdict, due_of};

const STALE: Verdict = Verdict::Refused(Refusal::StaleAttempt);

fn one() -> World {
    World::begun(plan(&[&[]]))
}

/// A task that was claimed and started.
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
fn f02_a_dead_attempt_is_ended_once_however_many_say_so() {
    let mut world = running();
    let dead = world.active(p(0));
    let verdict = Event::Timer {
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
fn f03_whoever_holds_a_slot_has_a_time_by_which_it_is_missed() {
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
        "also while it is being stopped"
    );
    world.timer(p(0), TimerKind::Heartbeat);
    assert_eq!(
        (world.state(p(0)), due(&world)),
        (TaskState::Cancelled, None)
    );
    assert_eq!(world.changes.ended.len(), 1, "the slot is given back");
}

#[test]
fn f05_beats_do_not_keep_what_hangs_alive() {
    let world = running();
    let settings = world.plan.settings(0);
    let started = task_row(&world, p(0)).started_at.unwrap();
    let deadline = started + settings.execution_us;
    let due = due_of(task_row(&world, p(0)), settings, Some(deadline)).unwrap();
    assert_eq!((due.kind, due.at), (TimerKind::Execution, deadline));
}

#[test]
fn f07_a_start_outlives_the_deadline_of_its_delivery() {
    let mut world = running();
    let settings = world.plan.settings(0);
    let beaten = world.now + 45 * 60 * 1_000_000;
    assert!(beaten > world.now + ACK_US);
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
fn f08_inv_8_who_was_given_up_changes_nothing_when_it_comes_back() {
    let mut world = running();
    let paused = world.active(p(0));
    world.timer(p(0), TimerKind::Heartbeat);
    world.timer(p(0), TimerKind::Retry);
    world.claim(p(0));
    let said = [
        Event::Started {
            task: p(0),
            attempt_id: paused,
            worker: None,
            session: 1,
        },
        Event::Enqueued {
            task: p(0),
            attempt_id: paused,
        },
        finished(p(0), paused, Outcome::Succeeded),
        finished(p(0), paused, failed(ErrorCategory::UserCode)),
        Event::Timer {
            kind: TimerKind::Execution,
            task: Some(p(0)),
            attempt_id: Some(paused),
        },
    ];
    let before = task_row(&world, p(0)).clone();
    for event in &said {
        assert_eq!(world.fold(event), STALE, "{event:?}");
    }
    assert_eq!(*task_row(&world, p(0)), before);
    world.finish(p(0), Outcome::Succeeded);
    said.iter()
        .for_each(|event| assert_eq!(world.fold(event), STALE, "{event:?}"));
    assert_eq!(world.run.state, RunState::Succeeded);
}

#[test]
fn f12_what_contradicts_the_state_of_a_task_is_refused() {
    let mut world = World::begun(plan(&[&[], &[0]]));
    let early = claimed(&world.plan.clone(), p(1), 1);
    assert_eq!(world.fold(&early), Verdict::Refused(Refusal::NotReady(1)));
    let behind = claimed(&world.plan.clone(), p(0), 0);
    assert_eq!(world.fold(&behind), Verdict::Refused(Refusal::NotReady(0)));
    let unknown = attempt_id(&world.plan.clone(), p(0), 1);
    let nobodys = finished(p(0), unknown, Outcome::Succeeded);
    assert_eq!(
        world.fold(&nobodys),
        Verdict::Refused(Refusal::AttemptUnknown)
    );
    assert_eq!(world.states(), [TaskState::Ready, TaskState::Blocked]);
}

#[test]
fn f13_an_outcome_counts_without_the_start_that_was_lost() {
    let mut world = one();
    world.claim(p(0));
    assert_eq!(world.finish(p(0), Outcome::Succeeded), Verdict::Folded);
    let again = finished(p(0), world.active(p(0)), Outcome::Succeeded);
    assert_eq!(world.fold(&again), Verdict::Duplicate);
    assert_eq!(world.run.state, RunState::Succeeded);
}

#[test]
fn f17_a_cancel_lands_in_whatever_state_it_finds_the_task() {
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
            "what waits ends at once"
        );
        world
    };
    let claim: fn(&mut World) = |world| {
        world.claim(p(0));
    };
    let enqueue: fn(&mut World) = |world| {
        let attempt_id = world.active(p(0));
        world.fold(&Event::Enqueued {
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
        assert_eq!(world.changes.cancelled, [p(0)], "its worker is told");
        if silent == TimerKind::DispatchAck {
            assert_eq!(
                world.start(p(0), 9),
                Verdict::Refused(Refusal::AttemptCancelled)
            );
        }
        assert_eq!(
            world.timer(p(0), silent),
            Verdict::Folded,
            "and missed when it does not answer"
        );
        assert_eq!(
            (world.state(p(0)), world.run.state),
            (TaskState::Cancelled, RunState::Cancelled)
        );
    }
}

#[test]
fn inv_3_the_same_events_lead_to_the_same_decisions_with_the_same_ids() {
    let story = || {
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
    let (first, second) = (story(), story());
    let told = |world: &World| {
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
    assert_eq!(told(&first), told(&second));
    assert_eq!(
        first.active(p(1)),
        attempt_id(&first.plan, p(1), 2),
        "derived, not drawn"
    );
}

#[test]
fn inv_5_whatever_has_not_ended_has_somebody_to_move_it() {
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
                "{task_ref:?} is {:?} and nobody moves it",
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
fn inv_10_ends_go_downstream_as_the_table_says() {
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
