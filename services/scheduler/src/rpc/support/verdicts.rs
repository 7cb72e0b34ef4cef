//! Mapping of the results of commands to the answers of the RPCs.
//!
//! Three RPCs answer with the results of commands, each with its own message. The mappings agree
//! except where the caller needs another reason:
//!
//! | result | ApplyEvents and callers | ReportAttempts (callback) | Admit (dispatcher) |
//! |---|---|---|---|
//! | run unknown | RUN_NOT_FOUND | ATTEMPT_UNKNOWN: the worker knows only its attempt | RUN_NOT_FOUND |
//! | run set aside | INVALID_STATE | NOT_READY: the callback then appends the report itself, and a rebuild that can fold the run finds it | INVALID_STATE |
//! | stale admission | STALE_ATTEMPT | cannot happen | NOT_HOLDER: the dispatcher must stop claiming |
//!
//! Results that cannot happen for an RPC are reported as INTERNAL.

use servo_mesh::{Error, Reason};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;

use crate::core::{Refusal, Verdict};
use crate::shards::{Applied, CommandResult, SubmitError};
use crate::wire;

const SET_ASIDE: &str = "the run is set aside; GetRun's set_aside_reason contains the reason";

/// The answer to a forwarded command, which is also the basis of the answers to API callers.
pub(crate) fn applied_event(applied: &Applied) -> mesh_pb::AppliedEvent {
    let accepted = |acceptance: pb::Acceptance| mesh_pb::AppliedEvent {
        acceptance: acceptance.into(),
        event_id: accepted_event_id(applied),
        ..Default::default()
    };
    match &applied.result {
        CommandResult::Fold(Verdict::Folded) => accepted(pb::Acceptance::Folded),
        CommandResult::Fold(Verdict::Duplicate) => accepted(pb::Acceptance::Duplicate),
        CommandResult::Fold(Verdict::Late) => accepted(pb::Acceptance::Late),
        CommandResult::Fold(Verdict::Refused(refusal)) => {
            refused_event(refusal_reason(refusal), &refusal.to_string())
        }
        CommandResult::Exists => accepted(pb::Acceptance::Duplicate),
        CommandResult::Conflict => refused_event(
            Reason::RunKeyConflict,
            "the run key belongs to another request",
        ),
        CommandResult::RunUnknown => refused_event(Reason::RunNotFound, "the run does not exist"),
        CommandResult::StaleAdmission => {
            refused_event(Reason::StaleAttempt, "the claim's lease is not the newest")
        }
        CommandResult::OverLimit(excess) => {
            refused_event(Reason::QuotaExceeded, &excess.to_string())
        }
        CommandResult::NoCapacity => {
            refused_event(Reason::InvalidState, "there is no capacity for the run yet")
        }
        CommandResult::SetAside => refused_event(Reason::InvalidState, SET_ASIDE),
        CommandResult::Invalid(why) => refused_event(Reason::InvalidField, why),
        CommandResult::TooLarge(why) => refused_event(Reason::MessageTooLarge, why),
    }
}

/// The event that records the command; empty for a duplicate, because the repeated event was not
/// appended and the first one is known only to the ledger. It is folded, so nothing waits for it.
fn accepted_event_id(applied: &Applied) -> String {
    match applied.result {
        CommandResult::Fold(Verdict::Duplicate) | CommandResult::Exists => String::new(),
        _ => wire::ulid(applied.event_id),
    }
}

/// The answer to a reported start or outcome of an attempt.
pub(crate) fn attempt_verdict(applied: Applied) -> mesh_pb::AttemptVerdict {
    let event_id = accepted_event_id(&applied);
    let accepted = |acceptance: pb::Acceptance| mesh_pb::AttemptVerdict {
        acceptance: acceptance.into(),
        event_id,
        ..Default::default()
    };
    match applied.result {
        CommandResult::Fold(Verdict::Folded) => accepted(pb::Acceptance::Folded),
        CommandResult::Fold(Verdict::Duplicate) => accepted(pb::Acceptance::Duplicate),
        CommandResult::Fold(Verdict::Late) => accepted(pb::Acceptance::Late),
        CommandResult::Fold(Verdict::Refused(refusal)) => {
            refused_attempt(refusal_reason(&refusal), &refusal.to_string())
        }
        CommandResult::RunUnknown => {
            refused_attempt(Reason::AttemptUnknown, "the attempt's run does not exist")
        }
        CommandResult::SetAside => refused_attempt(Reason::NotReady, SET_ASIDE),
        CommandResult::Invalid(why) => refused_attempt(Reason::InvalidField, &why),
        CommandResult::TooLarge(why) => refused_attempt(Reason::MessageTooLarge, &why),
        other => refused_attempt(Reason::Internal, &unexpected(&other)),
    }
}

/// The refusal of a claim; `None` for a claim that counts. `index` is its index in the batch.
pub(crate) fn refused_claim(index: usize, applied: Applied) -> Option<mesh_pb::RefusedClaim> {
    match applied.result {
        CommandResult::Fold(Verdict::Folded | Verdict::Duplicate | Verdict::Late) => None,
        CommandResult::Fold(Verdict::Refused(refusal)) => Some(refuse_claim(
            index,
            refusal_reason(&refusal),
            &refusal.to_string(),
        )),
        CommandResult::StaleAdmission => Some(refuse_claim(
            index,
            Reason::NotHolder,
            "another dispatcher admits the tasks of this tenant now",
        )),
        CommandResult::SetAside => Some(refuse_claim(index, Reason::InvalidState, SET_ASIDE)),
        CommandResult::RunUnknown => Some(refuse_claim(
            index,
            Reason::RunNotFound,
            "the run does not exist",
        )),
        other => Some(refuse_claim(index, Reason::Internal, &unexpected(&other))),
    }
}

fn unexpected(result: &CommandResult) -> String {
    format!("unexpected result {result:?}")
}

pub(crate) fn refused_event(reason: Reason, message: &str) -> mesh_pb::AppliedEvent {
    mesh_pb::AppliedEvent {
        acceptance: pb::Acceptance::Refused.into(),
        refusal: reason.into(),
        message: message.to_owned(),
        ..Default::default()
    }
}

pub(crate) fn refused_attempt(reason: Reason, message: &str) -> mesh_pb::AttemptVerdict {
    mesh_pb::AttemptVerdict {
        acceptance: pb::Acceptance::Refused.into(),
        refusal: reason.into(),
        message: message.to_owned(),
        event_id: String::new(),
    }
}

pub(crate) fn refuse_claim(index: usize, reason: Reason, message: &str) -> mesh_pb::RefusedClaim {
    mesh_pb::RefusedClaim {
        index: index as u32,
        reason: reason.into(),
        message: message.to_owned(),
    }
}

/// The error for a submission that was not stored.
pub(crate) fn submit_error(error: &SubmitError) -> Error {
    match error {
        SubmitError::NotHeld => Error::new(
            Reason::NotHolder,
            "no instance holds the run's shard at the moment; try again",
        ),
        SubmitError::KeyTaken => Error::new(Reason::AlreadyExists, error.to_string()),
        SubmitError::Unavailable(_) | SubmitError::Stopped => {
            Error::new(Reason::NotReady, error.to_string())
        }
    }
}

/// The reason that callers get for a refusal of the fold.
fn refusal_reason(refusal: &Refusal) -> Reason {
    match refusal {
        Refusal::TaskUnknown => Reason::TaskNotFound,
        Refusal::AttemptUnknown => Reason::AttemptUnknown,
        Refusal::StaleAttempt => Reason::StaleAttempt,
        Refusal::AlreadyStarted => Reason::AlreadyStarted,
        Refusal::AttemptCancelled => Reason::AttemptCancelled,
        Refusal::OutcomeConflict => Reason::OutcomeConflict,
        Refusal::RunIs(_)
        | Refusal::TaskNotReady(_)
        | Refusal::NoAttempt
        | Refusal::NotDue
        | Refusal::MaterializationIs(_) => Reason::InvalidState,
        Refusal::Version(_) | Refusal::MaterializationVersion(_) => Reason::VersionConflict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shards::event_id;

    #[test]
    fn a_duplicate_names_no_event_because_its_own_was_not_appended() {
        let applied = |result| Applied {
            result,
            event_id: event_id(),
            run: None,
        };
        let folded = applied(CommandResult::Fold(Verdict::Folded));
        assert_eq!(applied_event(&folded).event_id, wire::ulid(folded.event_id));
        for result in [
            CommandResult::Fold(Verdict::Duplicate),
            CommandResult::Exists,
        ] {
            assert_eq!(applied_event(&applied(result)).event_id, "");
        }
        let repeated = applied(CommandResult::Fold(Verdict::Duplicate));
        assert_eq!(attempt_verdict(repeated).event_id, "");
    }
}
