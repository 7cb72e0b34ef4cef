//! Outcomes that are not taken as they are, and what is told instead: without it their attempts would seem to run on.

use servo_proto::v1 as pb;

/// The type of the error that a bare outcome tells.
const REFUSED: &str = "OutcomeRefused";
const MESSAGE_BYTES_MAX: usize = 1_024;

/// What is told instead of an outcome that was refused; `None` when that is the last word.
pub(super) fn instead(
    finish: &pb::FinishAttemptRequest,
    refusal: &pb::CallbackRefusal,
) -> Option<pb::FinishAttemptRequest> {
    match refusal.reason() {
        pb::ErrorReason::OutputNotCommitted if finish.outcome() == pb::Outcome::Succeeded => {
            Some(failed(finish, &refusal.message))
        }
        pb::ErrorReason::InvalidField | pb::ErrorReason::MessageTooLarge if !is_bare(finish) => {
            Some(bare(finish, &refusal.message))
        }
        _ => None,
    }
}

/// A success whose outputs do not count is a failure that says so.
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

/// Whose attempt it is, when it ran and in a few words how it ended: nothing that could be too much or wrong.
pub(super) fn bare(finish: &pb::FinishAttemptRequest, why: &str) -> pb::FinishAttemptRequest {
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

/// The category stays: it decides about a retry.
fn short(error: Option<&pb::TaskError>, why: &str) -> pb::TaskError {
    let refused = format!("the outcome was refused: {}", begin_of(why));
    let (category, message) = match error {
        Some(error) => (
            error.category,
            format!("{} ({refused})", begin_of(&error.message)),
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

fn begin_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(MESSAGE_BYTES_MAX)]
}

fn is_bare(finish: &pb::FinishAttemptRequest) -> bool {
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
    fn what_is_too_large_or_malformed_ends_as_a_few_words() {
        for reason in [
            pb::ErrorReason::MessageTooLarge,
            pb::ErrorReason::InvalidField,
        ] {
            let told = instead(&large(pb::Outcome::Succeeded, None), &refusal(reason)).unwrap();
            assert_eq!(
                (told.outcome(), told.attempt_id.as_str()),
                (pb::Outcome::Failed, "a")
            );
            assert!(told.task.is_some() && told.start_time.is_some() && told.encoded_len() < 4_096);
            assert_eq!(
                told.error.as_ref().unwrap().message,
                "the outcome was refused: checks: too many"
            );
            assert_eq!(
                instead(&told, &refusal(reason)),
                None,
                "it is not repeated for ever"
            );
        }
    }

    #[test]
    fn an_error_keeps_what_decides_about_its_retry() {
        let error = pb::TaskError {
            category: pb::ErrorCategory::Transient.into(),
            message: "é".repeat(1 << 20),
            retriable: Some(true),
            ..Default::default()
        };
        let told = bare(&large(pb::Outcome::Failed, Some(error)), "too large");
        let short = told.error.as_ref().unwrap();
        assert_eq!(
            (short.category(), short.retriable),
            (pb::ErrorCategory::Transient, Some(true))
        );
        assert!(short.message.starts_with('é') && told.encoded_len() < 4_096);
        let given_back = bare(&large(pb::Outcome::Interrupted, None), "too large");
        assert_eq!(
            given_back.outcome(),
            pb::Outcome::Interrupted,
            "it is no failure of the task"
        );
    }

    #[test]
    fn a_success_without_its_outputs_is_a_failure_with_its_checks() {
        let refused = refusal(pb::ErrorReason::OutputNotCommitted);
        let told = instead(&large(pb::Outcome::Succeeded, None), &refused).unwrap();
        assert_eq!(
            (told.outcome(), told.checks.len()),
            (pb::Outcome::Failed, 1 << 10)
        );
        assert_eq!(instead(&told, &refused), None);
        assert_eq!(
            instead(&told, &refusal(pb::ErrorReason::StaleAttempt)),
            None
        );
        assert!(
            instead(&told, &refusal(pb::ErrorReason::MessageTooLarge))
                .unwrap()
                .checks
                .is_empty()
        );
    }
}
