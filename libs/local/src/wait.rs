//! Polling with a deadline, for tests: a wait that takes too long fails and names what it waited
//! for.

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
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> impl Future<Output = T> {
    let mut wait = Wait::within(limit, what);
    async move {
        loop {
            // The limit also ends a probe that hangs.
            match tokio::time::timeout_at(wait.deadline.into(), probe()).await {
                Ok(Some(value)) => return value,
                Ok(None) => wait.pause().await,
                Err(_) => wait.fail(),
            }
        }
    }
}

/// [`until_true`] for tests without a runtime.
#[track_caller]
pub fn until_true_blocking(what: &str, mut probe: impl FnMut() -> bool) {
    let mut wait = Wait::within(LIMIT, what);
    while !probe() {
        std::thread::sleep(wait.next_pause());
    }
}

/// A wait whose loop the caller writes, because the compiler cannot prove that [`until`] is `Send`
/// in a spawned task.
#[derive(Debug)]
pub struct Wait<'a> {
    what: &'a str,
    limit: Duration,
    deadline: Instant,
    pause: Duration,
    caller: &'static Location<'static>,
}

impl<'a> Wait<'a> {
    #[track_caller]
    pub fn within(limit: Duration, what: &'a str) -> Wait<'a> {
        Wait {
            what,
            limit,
            deadline: Instant::now() + limit,
            pause: PAUSE_FIRST,
            caller: Location::caller(),
        }
    }

    /// Sleeps until the next probe; panics after the limit.
    pub async fn pause(&mut self) {
        tokio::time::sleep(self.next_pause()).await;
    }

    /// Short at first, so that a short wait is noticed at once, and longer later, so that a long
    /// one costs little.
    fn next_pause(&mut self) -> Duration {
        if Instant::now() >= self.deadline {
            self.fail();
        }
        let pause = self.pause;
        self.pause = (pause * 5 / 4).min(PAUSE_MAX);
        pause
    }

    fn fail(&self) -> ! {
        let (limit, caller) = (self.limit.as_secs_f64(), self.caller);
        panic!("waited {limit} s for {} ({caller})", self.what)
    }
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
