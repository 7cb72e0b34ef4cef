//! When to look at a queue again, so that nobody looks without need.

use std::time::Duration;

/// How long to wait for room that others must make.
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// What a look at a queue found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Looked {
    pub(crate) paused: bool,
    /// What may still be pushed at once, by the rate.
    pub(crate) tokens: f64,
    pub(crate) per_second: f64,
    /// Whether one more push may be under way.
    pub(crate) has_room: bool,
    /// Until the next task is due; zero when one is due already.
    pub(crate) next_due: Option<Duration>,
}

/// How long until the next look, if nothing rings before; `None` when only a ring can bring work.
pub(crate) fn next_look(looked: Looked) -> Option<Duration> {
    let next_due = looked.next_due.filter(|_| !looked.paused)?;
    if !next_due.is_zero() {
        return Some(next_due);
    }
    if looked.tokens < 1.0 {
        return Some(Duration::from_secs_f64(
            (1.0 - looked.tokens) / looked.per_second,
        ));
    }
    Some(if looked.has_room {
        Duration::ZERO
    } else {
        BUSY_PAUSE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: Looked = Looked {
        paused: false,
        tokens: 5.0,
        per_second: 10.0,
        has_room: true,
        next_due: Some(Duration::ZERO),
    };

    #[test]
    fn an_empty_or_paused_queue_waits_for_a_ring() {
        assert_eq!(
            next_look(Looked {
                next_due: None,
                ..DUE
            }),
            None
        );
        assert_eq!(
            next_look(Looked {
                paused: true,
                ..DUE
            }),
            None
        );
    }

    #[test]
    fn what_is_due_waits_for_whatever_it_lacks() {
        let later = Duration::from_secs(7);
        assert_eq!(next_look(DUE), Some(Duration::ZERO));
        assert_eq!(
            next_look(Looked {
                next_due: Some(later),
                ..DUE
            }),
            Some(later)
        );
        assert_eq!(
            next_look(Looked { tokens: 0.5, ..DUE }),
            Some(Duration::from_millis(50))
        );
        assert_eq!(
            next_look(Looked {
                has_room: false,
                ..DUE
            }),
            Some(BUSY_PAUSE)
        );
    }
}
