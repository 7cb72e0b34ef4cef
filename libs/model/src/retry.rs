//! Whether a failed attempt is retried, and after what delay.
//!
//! All durations are whole milliseconds and the jitter is derived from the attempt id, so every
//! instance that folds the same event computes the same due time.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::coded_enum::coded_enum;
use crate::ids::AttemptId;

coded_enum! {
    /// The kind of a failure, which determines whether a retry can help.
    ErrorCategory {
        /// The network, a rate limit, or a service that is briefly unavailable.
        Transient = 1, "TRANSIENT";
        /// The worker died, ran out of memory or disk, or stopped sending heartbeats.
        Infrastructure = 2, "INFRASTRUCTURE";
        /// The attempt ran longer than its asset allows.
        Timeout = 3, "TIMEOUT";
        /// User code raised an exception.
        UserCode = 4, "USER_CODE";
        /// An input is missing or has another shape than declared.
        Input = 5, "INPUT";
        /// The asset's definition cannot work.
        Configuration = 6, "CONFIGURATION";
    }
}

impl ErrorCategory {
    pub const fn retries_by_default(self) -> bool {
        matches!(
            self,
            ErrorCategory::Transient | ErrorCategory::Infrastructure | ErrorCategory::Timeout
        )
    }
}

coded_enum! {
    /// How the delay grows with the number of failures.
    Backoff {
        /// Doubles each time.
        Exponential = 1, "EXPONENTIAL";
        /// Grows by the initial delay each time.
        Linear = 2, "LINEAR";
        /// Stays the same.
        Constant = 3, "CONSTANT";
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct RetryPolicy {
    pub backoff: Backoff,
    pub initial_delay_ms: u64,
    /// The number of failures after which the task fails. Unacknowledged dispatches and
    /// interruptions are not failures.
    pub max_attempts: u32,
    pub max_delay_ms: u64,
    /// The categories that are retried.
    pub retry_on: BTreeSet<ErrorCategory>,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        let categories = ErrorCategory::ALL.iter().copied();
        RetryPolicy {
            backoff: Backoff::Exponential,
            max_attempts: 3,
            initial_delay_ms: 60_000,
            max_delay_ms: 3_600_000,
            retry_on: categories
                .filter(|category| category.retries_by_default())
                .collect(),
        }
    }
}

impl RetryPolicy {
    /// Milliseconds to wait after the failure number `failures`, or `None` when the task has
    /// failed.
    pub fn after_failure(
        &self,
        failures: u32,
        category: ErrorCategory,
        attempt: &AttemptId,
    ) -> Option<u64> {
        let again = failures < self.max_attempts && self.retry_on.contains(&category);
        again.then(|| self.delay_ms(failures, attempt))
    }

    /// Between half and all of [`RetryPolicy::full_delay_ms`]. The attempt id determines the
    /// jitter, so that tasks that failed together do not retry together.
    pub fn delay_ms(&self, failures: u32, attempt: &AttemptId) -> u64 {
        let full = self.full_delay_ms(failures);
        let least = full - full / 2;
        least + scaled(full / 2, attempt)
    }

    /// The delay before jitter. It never shrinks with more failures and never exceeds
    /// `max_delay_ms`.
    pub fn full_delay_ms(&self, failures: u32) -> u64 {
        let earlier = failures.saturating_sub(1);
        let factor = match self.backoff {
            Backoff::Exponential => 1u64.checked_shl(earlier).unwrap_or(u64::MAX),
            Backoff::Linear => u64::from(earlier) + 1,
            Backoff::Constant => 1,
        };
        self.initial_delay_ms
            .saturating_mul(factor)
            .min(self.max_delay_ms)
    }
}

/// A fraction of `range` that is fixed per attempt; a larger range never gives less.
fn scaled(range: u64, attempt: &AttemptId) -> u64 {
    let share = u64::from_be_bytes(*attempt.as_bytes().first_chunk().expect("16 bytes have 8"));
    let scaled = (u128::from(range) * u128::from(share)) >> 64;
    u64::try_from(scaled).expect("less than the range")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policy(backoff: Backoff) -> RetryPolicy {
        RetryPolicy {
            backoff,
            initial_delay_ms: 1_000,
            max_delay_ms: 10_000,
            ..RetryPolicy::default()
        }
    }

    fn delays(backoff: Backoff) -> Vec<u64> {
        (1..=6)
            .map(|failures| policy(backoff).full_delay_ms(failures))
            .collect()
    }

    #[test]
    fn delays_follow_the_backoff() {
        assert_eq!(
            delays(Backoff::Exponential),
            [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]
        );
        assert_eq!(
            delays(Backoff::Linear),
            [1_000, 2_000, 3_000, 4_000, 5_000, 6_000]
        );
        assert_eq!(delays(Backoff::Constant), [1_000; 6]);
    }

    #[test]
    fn jitter_is_between_half_and_full_delay() {
        let delay =
            |byte| policy(Backoff::Constant).delay_ms(1, &AttemptId::from_bytes([byte; 16]));
        assert_eq!((delay(0), delay(0x80), delay(0xff)), (500, 750, 999));
    }

    #[test]
    fn failures_end_the_task_by_count_or_category() {
        let policy = RetryPolicy {
            max_attempts: 2,
            ..policy(Backoff::Constant)
        };
        let attempt = AttemptId::from_bytes([0; 16]);
        let delay = |failures, category| policy.after_failure(failures, category, &attempt);
        assert_eq!(delay(1, ErrorCategory::Transient), Some(500));
        assert_eq!(delay(2, ErrorCategory::Transient), None);
        let retried: Vec<_> = ErrorCategory::ALL
            .iter()
            .filter(|c| delay(1, **c).is_some())
            .collect();
        assert_eq!(
            retried,
            [
                &ErrorCategory::Transient,
                &ErrorCategory::Infrastructure,
                &ErrorCategory::Timeout
            ]
        );
    }

    #[test]
    fn asset_may_retry_other_categories() {
        let mut policy = policy(Backoff::Constant);
        policy.retry_on.insert(ErrorCategory::UserCode);
        let attempt = AttemptId::from_bytes([0; 16]);
        assert!(
            policy
                .after_failure(1, ErrorCategory::UserCode, &attempt)
                .is_some()
        );
        assert!(
            policy
                .after_failure(1, ErrorCategory::Input, &attempt)
                .is_none()
        );
    }

    proptest! {
        #[test]
        fn delays_are_bounded_and_never_shrink(
            backoff in prop::sample::select(Backoff::ALL),
            initial_delay_ms: u64,
            max_delay_ms: u64,
            failures in prop_oneof![0u32..80, any::<u32>()],
            bytes: [u8; 16],
        ) {
            let policy = RetryPolicy { backoff, initial_delay_ms, max_delay_ms, ..RetryPolicy::default() };
            let attempt = AttemptId::from_bytes(bytes);
            let (full, delay) = (policy.full_delay_ms(failures), policy.delay_ms(failures, &attempt));
            prop_assert!(full <= max_delay_ms && delay <= full && u128::from(delay) * 2 >= u128::from(full));
            let later = failures.saturating_add(1);
            prop_assert!(policy.full_delay_ms(later) >= full && policy.delay_ms(later, &attempt) >= delay);
        }
    }
}
