//! Replacements for outcomes that the server refuses. Without a replacement the attempt would
//! appear to be still running.

use servo_proto::v1 as pb;

/// The error type of a reduced outcome.
const REFUSED: &str = "OutcomeRefused";
const MESSAGE_BYTES_MAX: usize = 1_024;

/// The outcome to send in place of a refused one; `None` when the refusal is final.
pub(super) fn replacement(
    finish: &pb::FinishAttemptRequest,
    refusal: &pb::CallbackRefusal,
) -> Option<pb::FinishAttemptRequest> {
    match refusal.reason() {
        pb::ErrorReason::OutputNotCommitted if finish.outcome() == pb::Outcome::Succeeded => {
            Some(failed(finish, &refusal.message))
        }
        pb::ErrorReason::InvalidField | pb::ErrorReason::MessageTooLarge if !is_reduced(finish) => {
            Some(reduced(finish, &refusal.message))
        }
        _ => None,
    }
}

/// Turns a success whose outputs were refused into a failure.
fn failed(finish: &pb::FinishAttemptRequest, why: &str) -> pb::FinishAttemptRequest {
    let error = pb::TaskError {
        category: pb::ErrorCategory::UserCode.into(),
        message: format!("the outcome was refused: {why}"),
        ..Default::default()
    };
    pb::FinishAttemptRequest {
        outcome: pb::Outcome::Failed.into(),
        error: Some(error),
        outputs: Vec::new(),
        ..finish.clone()
    }
}

/// Keeps only the identity of the attempt, its times and a short error: nothing that could be too
/// large or invalid.
pub(super) fn reduced(finish: &pb::FinishAttemptRequest, why: &str) -> pb::FinishAttemptRequest {
    pb::FinishAttemptRequest {
        tenant: finish.tenant.clone(),
        workspace: finish.workspace.clone(),
        run_id: finish.run_id.clone(),
        attempt_id: finish.attempt_id.clone(),
        task: finish.task,
        worker_id: finish.worker_id.clone(),
        session: finish.session.clone(),
        start_time: finish.start_time,
        end_time: finish.end_time,
        outcome: match finish.outcome() {
            outcome @ (pb::Outcome::Cancelled | pb::Outcome::Interrupted) => outcome.into(),
            _ => pb::Outcome::Failed.into(),
        },
        error: Some(short(finish.error.as_ref(), why)),
        ..Default::default()
    }
}

/// Keeps the category, because it decides whether the task is retried.
fn short(error: Option<&pb::TaskError>, why: &str) -> pb::TaskError {
    let refused = format!("the outcome was refused: {}", beginning_of(why));
    let (category, message) = match error {
        Some(error) => (
            error.category,
            format!("{} ({refused})", beginning_of(&error.message)),
        ),
        None => (pb::ErrorCategory::UserCode.into(), refused),
    };
    let retriable = error.and_then(|error| error.retriable);
    pb::TaskError {
        category,
        message,
        r#type: REFUSED.to_owned(),
        retriable,
        ..Default::default()
    }
}

fn beginning_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(MESSAGE_BYTES_MAX)]
}

fn is_reduced(finish: &pb::FinishAttemptRequest) -> bool {
    finish
        .error
        .as_ref()
        .is_some_and(|error| error.r#type == REFUSED)
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    fn refusal(reason: pb::ErrorReason) -> pb::CallbackRefusal {
        pb::CallbackRefusal {
            reason: reason.into(),
            message: "checks: too many".to_owned(),
            retry_after: None,
        }
    }

    fn large(outcome: pb::Outcome, error: Option<pb::TaskError>) -> pb::FinishAttemptRequest {
        pb::FinishAttemptRequest {
            attempt_id: "a".to_owned(),
            task: Some(pb::TaskRef {
                ordinal: 7,
                map_index: None,
            }),
            start_time: Some(prost_types::Timestamp {
                seconds: 5,
                nanos: 0,
            }),
            outcome: outcome.into(),
            error,
            checks: vec![
                pb::CheckResult {
                    message: "x".repeat(1 << 10),
                    ..Default::default()
                };
                1 << 10
            ],
            ..Default::default()
        }
    }

    #[test]
    fn oversized_or_invalid_outcome_is_reduced() {
        for reason in [
            pb::ErrorReason::MessageTooLarge,
            pb::ErrorReason::InvalidField,
        ] {
            let outcome =
                replacement(&large(pb::Outcome::Succeeded, None), &refusal(reason)).unwrap();
            assert_eq!(
                (outcome.outcome(), outcome.attempt_id.as_str()),
                (pb::Outcome::Failed, "a")
            );
            assert!(
                outcome.task.is_some()
                    && outcome.start_time.is_some()
                    && outcome.encoded_len() < 4_096
            );
            assert_eq!(
                outcome.error.as_ref().unwrap().message,
                "the outcome was refused: checks: too many"
            );
            assert_eq!(
                replacement(&outcome, &refusal(reason)),
                None,
                "it is not repeated forever"
            );
        }
    }

    #[test]
    fn reduced_error_keeps_its_category() {
        let error = pb::TaskError {
            category: pb::ErrorCategory::Transient.into(),
            message: "é".repeat(1 << 20),
            retriable: Some(true),
            ..Default::default()
        };
        let outcome = reduced(&large(pb::Outcome::Failed, Some(error)), "too large");
        let short = outcome.error.as_ref().unwrap();
        assert_eq!(
            (short.category(), short.retriable),
            (pb::ErrorCategory::Transient, Some(true))
        );
        assert!(short.message.starts_with('é') && outcome.encoded_len() < 4_096);
        let given_back = reduced(&large(pb::Outcome::Interrupted, None), "too large");
        assert_eq!(
            given_back.outcome(),
            pb::Outcome::Interrupted,
            "it is not a failure of the task"
        );
    }

    #[test]
    fn success_with_refused_outputs_becomes_a_failure() {
        let refused = refusal(pb::ErrorReason::OutputNotCommitted);
        let outcome = replacement(&large(pb::Outcome::Succeeded, None), &refused).unwrap();
        assert_eq!(
            (outcome.outcome(), outcome.checks.len()),
            (pb::Outcome::Failed, 1 << 10)
        );
        assert_eq!(replacement(&outcome, &refused), None);
        assert_eq!(
            replacement(&outcome, &refusal(pb::ErrorReason::StaleAttempt)),
            None
        );
        assert!(
            replacement(&outcome, &refusal(pb::ErrorReason::MessageTooLarge))
                .unwrap()
                .checks
                .is_empty()
        );
    }
}
