//! Scenarios of single runs.

use servo_model::retry::ErrorCategory;
use servo_model::states::{RunState, TaskState, TransitionReason};
use servo_model::{TaskRef, Timestamp};

use super::world::{
    World, claimed, failed, finished, mapped_plan, p, plan, quarantined, whole_plan,
};
use crate::core::{
    AssetSettings, Changes, Event, Finished, Outcome, Promotion, Refusal, TimerKind, Verdict, fold,
    force_from,
};

fn diamond() -> World {
    World::begun(plan(&[&[], &[0], &[0], &[1, 2]]))
}

#[test]
fn a_diamond_runs_in_order_to_its_end() {
    let mut world = diamond();
    assert_eq!(
        world.states(),
        [
            TaskState::Ready,
            TaskState::Blocked,
            TaskState::Blocked,
            TaskState::Blocked
        ]
    );
    world.run_down(|_| Outcome::Succeeded);
    assert_eq!(world.states(), [TaskState::Succeeded; 4]);
    assert_eq!(
        (world.run.state, world.run.reason),
        (RunState::Succeeded, TransitionReason::AllTasksSucceeded)
    );
}

#[test]
fn a_failure_skips_downstream_tasks_and_the_rest_continues() {
    let mut world = diamond();
    world.run_down(|task_ref| {
        if task_ref == p(1) {
            failed(ErrorCategory::UserCode)
        } else {
            Outcome::Succeeded
        }
    });
    assert_eq!(
        world.states(),
        [
            TaskState::Succeeded,
            TaskState::Failed,
            TaskState::Succeeded,
            TaskState::Skipped
        ]
    );
    assert_eq!(
        (world.run.state, world.run.reason),
        (RunState::Failed, TransitionReason::TasksFailed)
    );
    assert_eq!(
        world.run.error,
        Some((1, "t/a1:materialize: broken".to_owned()))
    );
}

#[test]
fn a_transient_failure_is_tried_again_after_its_delay() {
    let mut world = World::begun(plan(&[&[]]));
    world.claim(p(0));
    world.finish(p(0), failed(ErrorCategory::Transient));
    assert_eq!(world.state(p(0)), TaskState::RetryWait);
    assert!(world.run.task_row(p(0)).unwrap().due_at.unwrap() >= world.now.plus_us(500_000));
    assert_eq!(world.timer(p(0), TimerKind::Retry), Verdict::Folded);
    assert_eq!(world.state(p(0)), TaskState::Ready);
    world.claim(p(0));
    world.finish(p(0), failed(ErrorCategory::Transient));
    assert_eq!(
        (world.state(p(0)), world.run.state),
        (TaskState::Failed, RunState::Failed)
    );
}

#[test]
fn the_type_of_an_error_outweighs_its_category() {
    let ends = |error_type: &str, retriable| {
        let mut world = World::begun(plan(&[&[]]));
        world.claim(p(0));
        let category = ErrorCategory::UserCode;
        world.finish(
            p(0),
            Outcome::Failed {
                category,
                error_type: error_type.to_owned(),
                retriable,
            },
        );
        world.state(p(0))
    };
    assert_eq!(ends("ValueError", None), TaskState::Failed);
    assert_eq!(ends("Flaky", None), TaskState::RetryWait);
    assert_eq!(ends("ValueError", Some(true)), TaskState::RetryWait);
    assert_eq!(ends("Hopeless", Some(true)), TaskState::Failed);
    assert_eq!(ends("Flaky", Some(false)), TaskState::Failed);
}

#[test]
fn an_attempt_that_no_worker_starts_is_not_a_failure() {
    let mut world = World::begun(plan(&[&[]]));
    world.claim(p(0));
    let lost = world.active(p(0));
    assert_eq!(world.timer(p(0), TimerKind::DispatchAck), Verdict::Folded);
    let task_row = world.run.task_row(p(0)).unwrap();
    assert_eq!(
        (task_row.state, task_row.attempt, task_row.failures),
        (TaskState::Ready, 1, 0)
    );
    world.claim(p(0));
    // INV-8: events of the first attempt change nothing.
    assert_eq!(
        world.fold(&finished(p(0), lost, Outcome::Succeeded)),
        Verdict::Refused(Refusal::StaleAttempt)
    );
    assert_eq!(world.state(p(0)), TaskState::Queued);
}

#[test]
fn f06_the_first_session_to_start_wins() {
    let mut world = World::begun(plan(&[&[]]));
    world.claim(p(0));
    assert_eq!(world.start(p(0), 1), Verdict::Folded);
    assert_eq!(world.start(p(0), 1), Verdict::Duplicate);
    assert_eq!(
        world.start(p(0), 2),
        Verdict::Refused(Refusal::AlreadyStarted)
    );
}

#[test]
fn f01_a_timer_after_the_finish_changes_nothing() {
    for kind in [
        TimerKind::Heartbeat,
        TimerKind::Execution,
        TimerKind::DispatchAck,
    ] {
        let mut world = World::begun(plan(&[&[], &[]]));
        world.claim(p(0));
        world.start(p(0), 1);
        world.finish(p(0), Outcome::Succeeded);
        assert_eq!(
            world.timer(p(0), kind),
            Verdict::Refused(Refusal::StaleAttempt),
            "{kind:?}"
        );
        assert_eq!(world.state(p(0)), TaskState::Succeeded);
    }
}

#[test]
fn a_start_cancels_the_dispatch_timer() {
    let mut world = World::begun(plan(&[&[]]));
    world.claim(p(0));
    world.start(p(0), 1);
    assert_eq!(
        world.timer(p(0), TimerKind::DispatchAck),
        Verdict::Refused(Refusal::NotDue)
    );
    assert_eq!(world.timer(p(0), TimerKind::Heartbeat), Verdict::Folded);
    let task_row = world.run.task_row(p(0)).unwrap();
    assert_eq!(
        (task_row.state, task_row.reason),
        (TaskState::RetryWait, TransitionReason::HeartbeatTimeout)
    );
}

#[test]
fn a_cancel_ends_waiting_tasks_and_stops_running_ones() {
    let mut world = diamond();
    world.claim(p(0));
    assert_eq!(
        world.fold(&Event::CancelRequested {
            version: 1,
            by_system: false
        }),
        Verdict::Folded
    );
    assert_eq!(world.run.state, RunState::Cancelling);
    assert_eq!(
        world.states(),
        [
            TaskState::Queued,
            TaskState::Cancelled,
            TaskState::Cancelled,
            TaskState::Cancelled
        ]
    );
    assert!(world.run.task_row(p(0)).unwrap().cancelling && world.changes.cancelling == [p(0)]);
    assert_eq!(
        world.start(p(0), 1),
        Verdict::Refused(Refusal::AttemptCancelled)
    );
    assert_eq!(world.finish(p(0), Outcome::Cancelled), Verdict::Folded);
    assert_eq!(
        (world.run.state, world.state(p(0))),
        (RunState::Cancelled, TaskState::Cancelled)
    );
}

#[test]
fn a_success_after_the_cancel_is_late_and_promotes_nothing() {
    let mut world = World::begun(plan(&[&[]]));
    world.claim(p(0));
    world.fold(&Event::CancelRequested {
        version: 1,
        by_system: true,
    });
    assert_eq!(world.finish(p(0), Outcome::Succeeded), Verdict::Late);
    assert_eq!(
        world.run.task_row(p(0)).unwrap().reason,
        TransitionReason::LateResult
    );
    assert!(world.changes.partitions.is_empty());
    assert_eq!(world.run.state, RunState::Cancelled);
}

#[test]
fn a_paused_run_offers_its_tasks_again_when_it_resumes() {
    let mut world = World::begun(plan(&[&[], &[]]));
    assert_eq!(world.fold(&Event::Paused { version: 1 }), Verdict::Folded);
    assert_eq!(
        world.claim(p(0)),
        Verdict::Refused(Refusal::RunIs(RunState::Paused))
    );
    world.changes.ready.clear();
    assert_eq!(world.fold(&Event::Resumed { version: 2 }), Verdict::Folded);
    assert_eq!(world.changes.ready, [p(0), p(1)]);
    assert_eq!(
        world.fold(&Event::Paused { version: 2 }),
        Verdict::Refused(Refusal::Version(2))
    );
}

#[test]
fn a_run_that_exceeds_its_duration_is_stopped() {
    let mut world = diamond();
    world.claim(p(0));
    world.fold(&Event::TimerFired {
        kind: TimerKind::RunDuration,
        task: None,
        attempt_id: None,
    });
    assert_eq!(
        (world.run.state, world.run.reason),
        (RunState::Cancelling, TransitionReason::RunTimedOut)
    );
    world.timer(p(0), TimerKind::DispatchAck);
    assert_eq!(world.run.state, RunState::TimedOut);
}

#[test]
fn items_create_mapped_tasks_and_downstream_waits_for_all() {
    let mut world = World::begun(mapped_plan(&[&[], &[0], &[1]], &[(1, 0)]));
    world.claim(p(0));
    let items = Some((3, Vec::new().into()));
    let Event::TaskFinished(done) = finished(p(0), world.active(p(0)), Outcome::Succeeded) else {
        unreachable!()
    };
    world.fold(&Event::TaskFinished(Box::new(Finished { items, ..*done })));
    let children: Vec<TaskRef> = (0..3).map(|item| TaskRef::mapped(1, item)).collect();
    assert!(
        children
            .iter()
            .all(|child| world.state(*child) == TaskState::Ready)
    );
    for child in &children {
        assert_eq!(world.state(p(2)), TaskState::Blocked);
        world.claim(*child);
        world.finish(*child, Outcome::Succeeded);
    }
    assert_eq!(
        (world.state(p(1)), world.state(p(2))),
        (TaskState::Succeeded, TaskState::Ready)
    );
}

#[test]
fn a_mapped_task_without_items_succeeds() {
    let mut world = World::begun(mapped_plan(&[&[], &[0], &[1]], &[(1, 0)]));
    world.run_down(|_| Outcome::Succeeded);
    assert_eq!(world.states(), [TaskState::Succeeded; 3]);
    check_parent_version(&world, p(1));
}

#[test]
fn an_empty_plan_succeeds() {
    assert_eq!(World::begun(plan(&[])).run.state, RunState::Succeeded);
}

#[test]
fn a_claim_counts_once() {
    let mut world = World::begun(plan(&[&[]]));
    let claim = claimed(&world.plan, p(0), 1);
    assert_eq!(world.fold(&claim), Verdict::Folded);
    assert_eq!(world.fold(&claim), Verdict::Duplicate);
    let early = claimed(&world.plan, p(0), 2);
    assert_eq!(
        world.fold(&early),
        Verdict::Refused(Refusal::TaskNotReady(2))
    );
}

#[test]
fn a_deep_chain_needs_no_deep_stack() {
    let upstreams: Vec<Vec<u32>> = (0..20_000u32)
        .map(|task| task.checked_sub(1).into_iter().collect())
        .collect();
    let slices: Vec<&[u32]> = upstreams.iter().map(Vec::as_slice).collect();
    let mut world = World::begun(plan(&slices));
    world.claim(p(0));
    world.finish(p(0), failed(ErrorCategory::UserCode));
    assert_eq!(world.run.counts().of(TaskState::Skipped), 19_999);
}

#[test]
fn a_restored_run_folds_like_the_original() {
    let mut world = diamond();
    world.claim(p(0));
    world.finish(p(0), Outcome::Succeeded);
    world.claim(p(1));
    let task_rows: Vec<_> = world
        .run
        .task_rows()
        .map(|(task_ref, task_row)| (task_ref, task_row.clone()))
        .collect();
    let mut bare = super::world::requested();
    bare.state = world.run.state;
    bare.reason = world.run.reason;
    let mut restored = bare.restore(world.plan.clone(), task_rows, Default::default());
    let end = finished(p(1), world.active(p(1)), failed(ErrorCategory::Input));
    for run in [&mut world.run, &mut restored] {
        assert_eq!(
            fold(
                run,
                &end,
                Timestamp::from_unix_us(99),
                &mut Changes::default()
            ),
            Verdict::Folded
        );
    }
    let states = |run: &crate::core::Run| {
        run.task_rows()
            .map(|(_, task_row)| task_row.state)
            .collect::<Vec<_>>()
    };
    assert_eq!(states(&world.run), states(&restored));
    assert_eq!(world.run.counts(), restored.counts());
}

#[test]
fn force_cancel_requires_a_silent_attempt() {
    let mut world = World::begun(plan(&[&[]]));
    world.claim(p(0));
    let claimed_at = world.run.task_row(p(0)).unwrap().claimed_at.unwrap();
    let plan = world.plan.clone();
    let settings = |heartbeat_us| AssetSettings {
        heartbeat_us,
        ..plan.settings(0).clone()
    };
    let from = |heartbeat_us, beat| {
        force_from(
            world.run.task_row(p(0)).unwrap(),
            &settings(heartbeat_us),
            beat,
        )
    };
    // Two heartbeats of 30 s, or half of a shorter timeout.
    assert_eq!(from(300_000_000, None), claimed_at.plus_us(60_000_000));
    assert_eq!(from(10_000_000, None), claimed_at.plus_us(5_000_000));
    assert_eq!(
        from(10_000_000, Some(claimed_at.plus_us(7))),
        claimed_at.plus_us(7 + 5_000_000)
    );
    // An older heartbeat belongs to another attempt.
    assert_eq!(
        from(10_000_000, Some(claimed_at.plus_us(-7))),
        claimed_at.plus_us(5_000_000)
    );
}

#[test]
fn downstream_of_a_quarantined_output_runs_only_with_a_promoted_version() {
    let ends = |has_good_version: bool| {
        let mut world = diamond();
        world.run_down(|task_ref| {
            if task_ref == p(1) {
                quarantined(has_good_version)
            } else {
                Outcome::Succeeded
            }
        });
        let join = world.run.task_row(p(3)).unwrap();
        (world.state(p(1)), join.state, join.reason, world.run.state)
    };
    let (done, skipped) = (TaskState::Succeeded, TaskState::Skipped);
    assert_eq!(
        ends(true),
        (
            done,
            done,
            TransitionReason::ExecutionSucceeded,
            RunState::Succeeded
        )
    );
    assert_eq!(
        ends(false),
        (
            done,
            skipped,
            TransitionReason::UpstreamQuarantined,
            RunState::Succeeded
        )
    );
}

#[test]
fn a_failure_outweighs_a_quarantined_output() {
    let mut world = diamond();
    world.run_down(|task_ref| match task_ref.ordinal {
        1 => quarantined(false),
        2 => failed(ErrorCategory::UserCode),
        _ => Outcome::Succeeded,
    });
    assert_eq!(
        world.run.task_row(p(3)).unwrap().reason,
        TransitionReason::UpstreamNotSucceeded
    );
}

#[test]
fn a_restored_run_keeps_quarantined_outputs() {
    let mut world = World::begun(plan(&[&[], &[], &[0, 1]]));
    world.claim(p(0));
    world.finish(p(0), quarantined(false));
    let task_rows: Vec<_> = world
        .run
        .task_rows()
        .map(|(task_ref, task_row)| (task_ref, task_row.clone()))
        .collect();
    let mut bare = super::world::requested();
    bare.state = world.run.state;
    world.run = bare.restore(world.plan.clone(), task_rows, Default::default());
    world.claim(p(1));
    world.finish(p(1), Outcome::Succeeded);
    assert_eq!(
        world.run.task_row(p(2)).unwrap().reason,
        TransitionReason::UpstreamQuarantined
    );
}

#[test]
fn an_up_to_date_task_succeeds_without_an_attempt() {
    let mut world = World::begun(whole_plan(&[&[], &[0], &[0], &[1, 2]], &[], &[0, 1]));
    let ready = TaskState::Ready;
    assert_eq!(
        world.states(),
        [
            TaskState::Succeeded,
            TaskState::Succeeded,
            ready,
            TaskState::Blocked
        ]
    );
    assert_eq!(world.changes.ready, [p(2)]);
    assert!(
        world.changes.partitions.is_empty(),
        "its partitions do not change"
    );
    world.run_down(|_| Outcome::Succeeded);
    assert_eq!(world.run.state, RunState::Succeeded);
    let all = World::begun(whole_plan(&[&[], &[0]], &[], &[0, 1]));
    assert_eq!(
        (all.run.state, all.run.reason),
        (RunState::Succeeded, TransitionReason::AllTasksSucceeded)
    );
}

#[test]
fn a_second_cancel_is_a_duplicate() {
    let mut world = diamond();
    world.claim(p(0));
    let cancel = |version| Event::CancelRequested {
        version,
        by_system: false,
    };
    assert_eq!(world.fold(&cancel(1)), Verdict::Folded);
    for version in [1, 2] {
        assert_eq!(world.fold(&cancel(version)), Verdict::Duplicate);
    }
    assert_eq!(
        (world.run.state, world.run.version),
        (RunState::Cancelling, 1)
    );
}

#[test]
fn f23_a_claim_may_skip_numbers_but_never_reuses_one() {
    let mut world = World::begun(plan(&[&[]]));
    let (erased, next) = (claimed(&world.plan, p(0), 1), claimed(&world.plan, p(0), 3));
    assert_eq!(world.fold(&next), Verdict::Folded);
    let Event::DispatchRequested { attempt_id, .. } = erased else {
        unreachable!()
    };
    let late = finished(p(0), attempt_id, Outcome::Succeeded);
    assert_eq!(world.fold(&late), Verdict::Refused(Refusal::StaleAttempt));
    assert_eq!(world.timer(p(0), TimerKind::DispatchAck), Verdict::Folded);
    assert_eq!(
        world.fold(&next),
        Verdict::Refused(Refusal::TaskNotReady(3))
    );
}

#[test]
fn a_mapped_partition_is_complete_with_all_its_mapped_tasks() {
    let mut world = World::begun(mapped_plan(&[&[], &[0]], &[(1, 0)]));
    world.claim(p(0));
    let Event::TaskFinished(mut named) = finished(p(0), world.active(p(0)), Outcome::Succeeded)
    else {
        unreachable!()
    };
    named.items = Some((2, [].as_slice().into()));
    world.fold(&Event::TaskFinished(named));
    let updates = |world: &World| {
        world
            .changes
            .partitions
            .iter()
            .filter(|update| update.asset_key == "t/a1")
            .count()
    };
    for item in [1, 0] {
        assert_eq!(updates(&world), 0);
        world.claim(TaskRef::mapped(1, item));
        world.finish(TaskRef::mapped(1, item), Outcome::Succeeded);
    }
    assert_eq!(updates(&world), 1);
    check_parent_version(&world, p(1));
}

/// Checks that the mapped parent's partition is promoted, with a version of its own.
fn check_parent_version(world: &World, task: TaskRef) {
    let asset = format!("t/a{}", task.ordinal);
    let update = world
        .changes
        .partitions
        .iter()
        .find(|update| update.asset_key == asset)
        .unwrap();
    let parent = world
        .changes
        .materialized
        .iter()
        .find(|made| made.task_ref == task)
        .unwrap();
    assert_eq!(
        (
            parent.asset_key.as_str(),
            parent.output.len(),
            parent.promotion
        ),
        (&*asset, 0, Promotion::Promoted)
    );
    assert_eq!(
        (update.attempt_id, update.promoted),
        (parent.attempt_id, true)
    );
    assert_eq!(
        world.run.task_row(task).unwrap().attempt_id,
        Some(parent.attempt_id)
    );
    let of_children = world
        .changes
        .materialized
        .iter()
        .filter(|made| made.task_ref.map_index.is_some());
    assert!(
        of_children
            .into_iter()
            .all(|made| made.attempt_id != parent.attempt_id)
    );
}
