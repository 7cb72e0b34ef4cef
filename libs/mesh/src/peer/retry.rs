//! Decides when a failed call is retried: only if it is safe, the peer was unavailable, the budget
//! allows it and the deadline has not passed.

use std::time::Duration;

use tower::retry::budget::{Budget, TpsBudget};

/// Retries may make up this share of the calls …
const RETRY_SHARE: f32 = 0.2;
/// … plus this many per second, so that an infrequent caller can retry at all …
const RETRIES_PER_SECOND_MIN: u32 = 5;
/// … measured over this window.
const BUDGET_WINDOW: Duration = Duration::from_secs(10);

const DELAY_MIN: Duration = Duration::from_millis(25);
const DELAY_MAX: Duration = Duration::from_secs(1);

/// The retry budget of one peer, shared by all calls to it, so that retries do not multiply the
/// load when everything fails.
pub(super) struct Retries {
    budget: TpsBudget,
    max: u32,
}

impl Retries {
    pub(super) fn new(max: u32) -> Retries {
        Retries {
            budget: TpsBudget::new(BUDGET_WINDOW, RETRIES_PER_SECOND_MIN, RETRY_SHARE),
            max,
        }
    }

    pub(super) fn first_try(&self) {
        self.budget.deposit();
    }

    /// Returns the delay before the next try, or `None` when there must not be one. `jitter` is
    /// from 0 to 1.
    pub(super) fn next_try(
        &self,
        tries: u32,
        left: Option<Duration>,
        jitter: f64,
    ) -> Option<Duration> {
        let delay = delay(tries, jitter);
        let in_time = left.is_none_or(|left| delay < left);
        (tries <= self.max && in_time && self.budget.withdraw()).then_some(delay)
    }
}

fn delay(tries: u32, jitter: f64) -> Duration {
    let doubled = DELAY_MIN.saturating_mul(1 << tries.saturating_sub(1).min(16));
    doubled.min(DELAY_MAX).mul_f64(0.5 + jitter / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_limit_and_have_jitter() {
        assert_eq!(delay(1, 1.0), Duration::from_millis(25));
        assert_eq!(delay(2, 1.0), Duration::from_millis(50));
        assert_eq!(delay(3, 0.0), Duration::from_millis(50));
        assert_eq!(delay(60, 1.0), DELAY_MAX);
    }

    #[test]
    fn no_retry_after_the_maximum_or_the_deadline() {
        let retries = Retries::new(2);
        assert!(retries.next_try(2, None, 0.5).is_some());
        assert!(retries.next_try(3, None, 0.5).is_none());
        assert!(
            retries
                .next_try(1, Some(Duration::from_millis(1)), 0.5)
                .is_none()
        );
    }

    #[test]
    fn budget_stops_retries_and_is_refilled_by_calls() {
        let retries = Retries::new(10);
        let spent = std::iter::from_fn(|| retries.next_try(1, None, 0.5))
            .take(10_000)
            .count();
        assert_eq!(
            spent,
            (RETRIES_PER_SECOND_MIN as u64 * BUDGET_WINDOW.as_secs()) as usize
        );
        for _ in 0..50 {
            retries.first_try();
        }
        assert_eq!(
            std::iter::from_fn(|| retries.next_try(1, None, 0.5))
                .take(10_000)
                .count(),
            10
        );
    }
}
