//! When a push that was not accepted is retried.

use std::time::Duration;

use crate::port::Retry;

/// The delay after push number `tries` failed; `None` once the task has failed. The delay doubles
/// with every try; the actual delay is between half and all of it, derived from the task's name, so
/// that tasks that failed together do not retry together.
pub fn retry_delay(retry: &Retry, name: &str, tries: u32) -> Option<Duration> {
    if tries >= retry.max_attempts {
        return None;
    }
    let doubled = retry
        .min_backoff
        .saturating_mul(1 << tries.saturating_sub(1).min(30));
    let whole = doubled.min(retry.max_backoff);
    let digest = servo_model::Digest::of(format!("{name}:{tries}"));
    let share = f64::from(u16::from_be_bytes([
        digest.as_bytes()[0],
        digest.as_bytes()[1],
    ])) / 65_536.0;
    Some(whole.mul_f64(0.5 + share / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Retry = Retry {
        max_attempts: 8,
        min_backoff: Duration::from_secs(1),
        max_backoff: Duration::from_secs(10),
    };

    fn check(tries: u32, most: Option<u64>) {
        let delay = retry_delay(&RETRY, "d_a", tries);
        assert_eq!(delay.is_some(), most.is_some(), "after try {tries}");
        if let (Some(delay), Some(most)) = (delay, most.map(Duration::from_secs)) {
            assert!(
                delay >= most / 2 && delay < most,
                "{delay:?} after try {tries}"
            );
        }
    }

    #[test]
    fn delays_double_up_to_the_largest_and_end_with_the_last_try() {
        check(1, Some(1));
        check(2, Some(2));
        check(4, Some(8));
        check(5, Some(10));
        check(7, Some(10));
        check(8, None);
        check(u32::MAX, None);
    }

    #[test]
    fn tasks_that_failed_together_come_back_apart() {
        let delays: std::collections::BTreeSet<_> = (0..100)
            .map(|n| retry_delay(&RETRY, &format!("d_{n}"), 3).unwrap())
            .collect();
        assert!(delays.len() > 90);
    }
}
