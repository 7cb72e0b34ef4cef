//! How failures of the store are answered, the same in every service.
//!
//! A caller can act on two kinds: Postgres is away, slow or busy (`DEPENDENCY_UNAVAILABLE`, call
//! again), and everything else, which is a defect of ours (`INTERNAL`). The text of the latter stays
//! in the log, because it names tables and values that are no business of a caller.

use servo_actor::Stopped;
use servo_mesh::{Error, Reason};
use servo_store::{AppendError, StoreError};

/// The answer to a statement that failed.
pub fn store(error: StoreError) -> Error {
    shared(&error)
}

/// Like [`store`], for a failure that several callers share.
pub fn shared(error: &StoreError) -> Error {
    match error {
        StoreError::Unavailable(_) | StoreError::Slow(_) | StoreError::Raced(_) => {
            Error::new(Reason::DependencyUnavailable, error.to_string())
        }
        // The lease moved, or another writer came first: the next holder or the next try succeeds.
        StoreError::LeaseLost(_) | StoreError::Behind(_) | StoreError::ClockOff(_) => {
            Error::new(Reason::NotReady, error.to_string())
        }
        StoreError::KeyTaken(_)
        | StoreError::Refused(_)
        | StoreError::Aborted
        | StoreError::Database(_) => {
            tracing::error!(%error, "a statement failed");
            Error::new(
                Reason::Internal,
                "a statement failed; the service's log says why",
            )
        }
    }
}

/// The answer of an instance that is stopping.
pub fn stopped(stopped: Stopped) -> Error {
    Error::new(Reason::NotReady, stopped.to_string())
}

/// The answer to an append that failed.
pub fn append(error: AppendError) -> Error {
    match error {
        AppendError::Store(error) => store(error),
        AppendError::BadEvent(_) | AppendError::TooManyEvents(_) => {
            tracing::error!(%error, "the ledger refused an event");
            Error::new(
                Reason::Internal,
                "the ledger refused an event; the service's log says why",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_learn_whether_to_call_again_and_no_sql() {
        let check = |error: StoreError, reason: Reason| {
            assert_eq!(store(error).reason(), reason);
        };
        let why = || "why".to_owned();
        check(
            StoreError::Unavailable(why()),
            Reason::DependencyUnavailable,
        );
        check(StoreError::Slow(why()), Reason::DependencyUnavailable);
        check(StoreError::Raced(why()), Reason::DependencyUnavailable);
        check(StoreError::LeaseLost(why()), Reason::NotReady);
        check(StoreError::Aborted, Reason::Internal);
        let refused = store(StoreError::Refused("relation scheduler.runs".to_owned()));
        assert!(!refused.to_string().contains("scheduler.runs"), "{refused}");
    }
}
