//! Properties of every state machine, and the transitions of the design.

#![cfg(test)]

use std::collections::{BTreeSet, HashSet};
use std::fmt::Debug;

use servo_model::coded_enum::DocumentedEnum;
use servo_model::edges::EdgeResolution;
use servo_model::retry::{Backoff, ErrorCategory};
use servo_model::states::{
    BackfillReason, BackfillState, Machine, MaterializationReason, MaterializationState,
    QueueEntryReason, QueueEntryState, RunCause, RunState, TaskCause, TaskState, TransitionReason,
};

#[test]
fn every_table_is_valid() {
    check_machine::<TaskState>();
    check_machine::<RunState>();
    check_machine::<BackfillState>();
    check_machine::<MaterializationState>();
    check_machine::<QueueEntryState>();
}

fn check_machine<S: Machine>() {
    transitions_are_unambiguous::<S>();
    only_terminal_states_absorb::<S>();
    every_state_is_reachable_and_can_end::<S>();
    for cause in S::Cause::VARIANTS {
        assert!(
            S::TABLE.iter().any(|row| row.cause == *cause),
            "{}: nothing follows from {cause}",
            S::NAME
        );
    }
}

fn transitions_are_unambiguous<S: Machine>() {
    for (index, row) in S::TABLE.iter().enumerate() {
        let twin = S::TABLE[..index]
            .iter()
            .find(|other| other.from == row.from && other.cause == row.cause);
        assert!(twin.is_none(), "{}: {row:?} and {twin:?}", S::NAME);
        assert_eq!(row.from.on(row.cause), Some((row.to, row.reason)));
    }
}

fn only_terminal_states_absorb<S: Machine>() {
    for state in S::VARIANTS {
        let moves = S::Cause::VARIANTS
            .iter()
            .any(|cause| state.on(*cause).is_some());
        assert_eq!(moves, !state.is_terminal(), "{}: {state}", S::NAME);
    }
}

fn every_state_is_reachable_and_can_end<S: Machine>() {
    let from_start = reached_from(S::INITIAL);
    for state in S::VARIANTS {
        assert!(
            from_start.contains(state),
            "{}: {state} is never reached",
            S::NAME
        );
        let ends = reached_from(*state).iter().any(|state| state.is_terminal());
        assert!(ends, "{}: {state} never ends", S::NAME);
    }
}

fn reached_from<S: Machine>(start: S) -> Vec<S> {
    let mut reached = vec![start];
    let mut next = 0;
    while let Some(&state) = reached.get(next) {
        let steps = S::TABLE
            .iter()
            .filter(|row| row.from == state)
            .map(|row| row.to);
        for to in steps {
            if !reached.contains(&to) {
                reached.push(to);
            }
        }
        next += 1;
    }
    reached
}

#[test]
fn every_reason_is_used() {
    let given = |reason: TransitionReason| {
        TaskState::TABLE.iter().any(|row| row.reason == reason)
            || RunState::TABLE.iter().any(|row| row.reason == reason)
    };
    for &reason in TransitionReason::ALL {
        assert_eq!(
            given(reason),
            reason != TransitionReason::CREATED,
            "{reason}"
        );
    }
}

/// `A|B -> C|D` means all four transitions.
fn arrows<S: Machine + Ord + std::str::FromStr<Err: Debug>>(drawn: &str) -> BTreeSet<(S, S)> {
    let states = |side: &str| -> Vec<S> {
        side.split('|')
            .map(|name| name.trim().parse().unwrap())
            .collect()
    };
    let mut arrows = BTreeSet::new();
    for line in drawn.lines().filter(|line| !line.trim().is_empty()) {
        let (from, to) = line.split_once("->").unwrap();
        arrows.extend(
            states(from)
                .into_iter()
                .flat_map(|from| states(to).into_iter().map(move |to| (from, to))),
        );
    }
    arrows
}

fn check_arrows<S: Machine + Ord + std::str::FromStr<Err: Debug>>(drawn: &str) {
    let table: BTreeSet<(S, S)> = S::TABLE.iter().map(|row| (row.from, row.to)).collect();
    assert_eq!(table, arrows(drawn), "{}", S::NAME);
}

#[test]
fn tasks_move_as_designed() {
    check_arrows::<TaskState>(
        "
        PLANNED -> BLOCKED | READY | CANCELLED
        BLOCKED -> READY | SUCCEEDED | FAILED | SKIPPED | CANCELLED
        READY -> QUEUED | CANCELLED
        QUEUED -> QUEUED | DISPATCHED
        DISPATCHED -> DISPATCHED
        RUNNING -> RUNNING
        QUEUED | DISPATCHED -> RUNNING | READY
        QUEUED | DISPATCHED | RUNNING -> RETRY_WAIT | SUCCEEDED | FAILED | SKIPPED | CANCELLED
        RETRY_WAIT -> READY | FAILED | CANCELLED
        ",
    );
}

#[test]
fn runs_move_as_designed() {
    check_arrows::<RunState>(
        "
        PENDING -> RUNNING | FAILED | CANCELLED | TIMED_OUT
        RUNNING -> PAUSED
        PAUSED -> RUNNING
        RUNNING | PAUSED -> CANCELLING | SUCCEEDED | FAILED | CANCELLED
        CANCELLING -> CANCELLED | TIMED_OUT
        ",
    );
}

#[test]
fn the_smaller_machines_move_as_designed() {
    check_arrows::<BackfillState>(
        "
        PENDING -> RUNNING | FAILED | CANCELLED
        RUNNING -> PAUSED | SUCCEEDED | FAILED | CANCELLED
        PAUSED -> RUNNING | SUCCEEDED | CANCELLED
        ",
    );
    check_arrows::<MaterializationState>(
        "
        STAGED -> COMMITTED
        COMMITTED -> PROMOTED | QUARANTINED
        QUARANTINED -> PROMOTED | REJECTED
        ",
    );
    check_arrows::<QueueEntryState>(
        "
        PENDING -> CREATED
        PENDING | CREATED -> ACKED | FAILED | CANCELLED
        ",
    );
}

#[test]
fn cancel_waits_only_for_attempts() {
    for &state in TaskState::ALL.iter().filter(|state| !state.is_terminal()) {
        let (next, reason) = state.on(TaskCause::RunCancelled).unwrap();
        if state.has_attempt() {
            assert_eq!((next, reason), (state, TransitionReason::CancelRequested))
        } else {
            assert_eq!(
                (next, reason),
                (TaskState::Cancelled, TransitionReason::RunCancelled)
            )
        }
    }
}

#[test]
fn cancelling_attempt_ends_cancelled_whatever_it_reports() {
    let reports = [
        TaskCause::CancelConfirmed,
        TaskCause::CancelUnanswered,
        TaskCause::FinishedAfterCancel,
    ];
    for state in TaskState::ALL.iter().filter(|state| state.has_attempt()) {
        for report in reports {
            assert_eq!(
                state.on(report).unwrap().0,
                TaskState::Cancelled,
                "{state} {report}"
            );
        }
    }
}

#[test]
fn timed_out_run_ends_as_timed_out() {
    let (stopping, _) = RunState::Running.on(RunCause::DurationPassed).unwrap();
    assert_eq!(
        stopping.on(RunCause::TimeoutCompleted).unwrap().0,
        RunState::TimedOut
    );
    assert_eq!(
        TaskState::RetryWait.on(TaskCause::RunTimedOut),
        Some((TaskState::Failed, TransitionReason::RunTimedOut))
    );
}

#[test]
fn failures_while_paused_do_not_fail_a_backfill() {
    assert_eq!(
        BackfillState::Paused.on(BackfillReason::ThresholdPassed),
        None
    );
    let (running, _) = BackfillState::Paused.on(BackfillReason::Resumed).unwrap();
    assert_eq!(
        running.on(BackfillReason::ThresholdPassed).unwrap().0,
        BackfillState::Failed
    );
}

#[test]
fn only_final_states_resolve_edges() {
    for state in TaskState::ALL {
        for reason in TransitionReason::ALL {
            let resolved = EdgeResolution::of(*state, *reason).is_some();
            assert_eq!(resolved, state.is_terminal(), "{state} {reason}");
        }
    }
}

macro_rules! check_list {
    ($($list:ident),+) => {
        $({
            let names: HashSet<&str> = $list::ALL.iter().map(|item| item.name()).collect();
            assert_eq!(names.len(), $list::ALL.len(), "a name of {} appears twice", stringify!($list));
            for &item in $list::ALL {
                assert_eq!(item.to_string().parse::<$list>(), Ok(item));
                assert_eq!($list::from_code(item.code()), Some(item));
                assert!(item.code() > 0, "0 is the value of an unset proto field");
                assert!(item.name().bytes().all(|b| b.is_ascii_uppercase() || b == b'_'), "{item}");
            }
            assert_eq!($list::from_code(0), None);
            let refused = "planned".parse::<$list>().unwrap_err().to_string();
            assert!(refused.contains($list::ALL[0].name()), "{refused}");
        })+
    };
}

#[test]
fn names_and_numbers_are_unique() {
    check_list!(
        TaskState,
        RunState,
        BackfillState,
        MaterializationState,
        QueueEntryState,
        EdgeResolution
    );
    check_list!(
        TransitionReason,
        BackfillReason,
        MaterializationReason,
        QueueEntryReason,
        ErrorCategory,
        Backoff
    );
}
