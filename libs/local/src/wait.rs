//! Polling with a deadline, for tests: a wait that takes too long fails and names what it waited
//! for.

use std::fmt::Display;
use std::panic::Location;
use std::time::{Duration, Instant};

/// The limit of a wait that does not set its own.
pub const LIMIT: Duration = Duration::from_secs(60);

const PAUSE_FIRST: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(25);

/// Polls `probe` until it returns a value.
///
/// # Panics
///
/// After [`LIMIT`], with `what`, for example "the run to end".
#[track_caller]
pub fn until<T>(what: &str, probe: impl AsyncFnMut() -> Option<T>) -> impl Future<Output = T> {
    until_within(LIMIT, what, probe)
}

/// Polls `probe` until it returns true; see [`until`].
#[track_caller]
pub fn until_true(what: &str, mut probe: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    until(what, async move || probe().await.then_some(()))
}

/// [`until`] with another limit, for work that is long by design.
#[track_caller]
pub fn until_within<T>(
    limit: Duration,
    what: &str,
    probe: impl AsyncFnMut() -> Option<T>,
) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        // The limit also ends a probe that hangs.
        match tokio::time::timeout(limit, poll(probe)).await {
            Ok(value) => value,
            Err(_) => expired(limit, what, caller),
        }
    }
}

async fn poll<T>(mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let mut pause = PAUSE_FIRST;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        tokio::time::sleep(pause).await;
        pause = longer(pause);
    }
}

/// [`until_true`] for tests without a runtime.
#[track_caller]
pub fn until_true_blocking(what: &str, mut probe: impl FnMut() -> bool) {
    let (deadline, mut pause) = (Instant::now() + LIMIT, PAUSE_FIRST);
    while !probe() {
        if Instant::now() >= deadline {
            expired(LIMIT, what, Location::caller());
        }
        std::thread::sleep(pause);
        pause = longer(pause);
    }
}

/// Short waits are noticed at once, and long ones cost little.
fn longer(pause: Duration) -> Duration {
    (pause * 5 / 4).min(PAUSE_MAX)
}

fn expired(limit: Duration, what: &str, caller: impl Display) -> ! {
    panic!("waited {} s for {what} ({caller})", limit.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_value_that_is_there_is_returned_at_once() {
        assert_eq!(until("a number", async || Some(7)).await, 7);
    }

    #[tokio::test]
    async fn the_probe_is_repeated_until_it_succeeds() {
        let mut left = 3;
        until_true("the count to reach zero", async || {
            left -= 1;
            left == 0
        })
        .await;
        assert_eq!(left, 0);
        let mut left = 3;
        until_true_blocking("the count to reach zero", || {
            left -= 1;
            left == 0
        });
        assert_eq!(left, 0);
    }

    #[tokio::test]
    #[should_panic(expected = "waited 0.05 s for a value that never comes (libs/local/src/wait.rs")]
    async fn a_wait_that_takes_too_long_names_what_it_waited_for() {
        let limit = Duration::from_millis(50);
        until_within(limit, "a value that never comes", async || None::<()>).await;
    }

    #[tokio::test]
    #[should_panic(expected = "waited 0.05 s for an answer")]
    async fn a_probe_that_hangs_is_ended_too() {
        let hangs = async || std::future::pending::<Option<()>>().await;
        until_within(Duration::from_millis(50), "an answer", hangs).await;
    }
}
