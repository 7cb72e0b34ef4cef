//! When a failed call is repeated: only if a repeat does no harm, only when the peer was unavailable, only
//! within the budget, and only if the caller would still be there.

use std::time::Duration;

use tower::retry::budget::{Budget, TpsBudget};

/// Retries may make up this share of the calls …
const RETRY_SHARE: f32 = 0.2;
/// … plus this many a second, so that a quiet caller may retry at all …
const RETRIES_PER_SECOND_MIN: u32 = 5;
/// … measured over this time.
const BUDGET_WINDOW: Duration = Duration::from_secs(10);

const DELAY_MIN: Duration = Duration::from_millis(25);
const DELAY_MAX: Duration = Duration::from_secs(1);

/// Shared by all calls to one peer: when everything fails, retries must not multiply the load.
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

    /// How long to wait before the next try, or `None` if there is none. `jitter` is from 0 to 1.
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
    fn delays_double_up_to_a_limit_and_are_spread() {
        assert_eq!(delay(1, 1.0), Duration::from_millis(25));
        assert_eq!(delay(2, 1.0), Duration::from_millis(50));
        assert_eq!(delay(3, 0.0), Duration::from_millis(50));
        assert_eq!(delay(60, 1.0), DELAY_MAX);
    }

    #[test]
    fn no_retry_beyond_the_number_or_the_deadline() {
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
    fn a_budget_ends_a_storm_and_is_refilled_by_calls() {
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
