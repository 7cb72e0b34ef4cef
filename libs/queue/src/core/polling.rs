//! When to poll a queue again, without needless polling.

use std::time::Duration;

/// The poll interval while the limit on concurrent pushes is reached.
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// The state of a queue as a claim found it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QueueStatus {
    pub(crate) paused: bool,
    /// The pushes that the rate still allows now.
    pub(crate) tokens: f64,
    pub(crate) per_second: f64,
    /// Whether the limit on concurrent pushes allows one more.
    pub(crate) has_capacity: bool,
    /// The time until the next task is due; zero when one is due already.
    pub(crate) next_due: Option<Duration>,
}

/// The time until the next poll; `None` when only the doorbell can bring work.
pub(crate) fn next_poll(status: QueueStatus) -> Option<Duration> {
    let next_due = status.next_due.filter(|_| !status.paused)?;
    if !next_due.is_zero() {
        return Some(next_due);
    }
    if status.tokens < 1.0 {
        return Some(Duration::from_secs_f64(
            (1.0 - status.tokens) / status.per_second,
        ));
    }
    Some(if status.has_capacity {
        Duration::ZERO
    } else {
        BUSY_PAUSE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: QueueStatus = QueueStatus {
        paused: false,
        tokens: 5.0,
        per_second: 10.0,
        has_capacity: true,
        next_due: Some(Duration::ZERO),
    };

    #[test]
    fn empty_or_paused_queue_waits_for_the_doorbell() {
        assert_eq!(
            next_poll(QueueStatus {
                next_due: None,
                ..DUE
            }),
            None
        );
        assert_eq!(
            next_poll(QueueStatus {
                paused: true,
                ..DUE
            }),
            None
        );
    }

    #[test]
    fn due_task_waits_for_tokens_or_capacity() {
        let later = Duration::from_secs(7);
        assert_eq!(next_poll(DUE), Some(Duration::ZERO));
        assert_eq!(
            next_poll(QueueStatus {
                next_due: Some(later),
                ..DUE
            }),
            Some(later)
        );
        assert_eq!(
            next_poll(QueueStatus { tokens: 0.5, ..DUE }),
            Some(Duration::from_millis(50))
        );
        assert_eq!(
            next_poll(QueueStatus {
                has_capacity: false,
                ..DUE
            }),
            Some(BUSY_PAUSE)
        );
    }
}
