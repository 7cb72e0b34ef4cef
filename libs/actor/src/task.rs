//! Spawning with supervision.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures::FutureExt;
use tokio::task::JoinHandle;
use tracing::{Instrument, error};

/// The exit code of a process whose actor panicked.
pub const EXIT_CODE: i32 = 70;

/// Starts an actor. The process ends with [`EXIT_CODE`] when it panics.
///
/// An actor that returns has finished its work, usually because its last handle was dropped.
pub fn spawn(
    name: &'static str,
    actor: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    let supervised = async move {
        let actor = planted::with_panic(name, actor);
        if let Err(panic) = AssertUnwindSafe(actor).catch_unwind().await {
            error!(
                actor = name,
                panic = message(&*panic),
                "an actor panicked; the process ends"
            );
            std::process::exit(EXIT_CODE);
        }
    };
    start(supervised)
}

/// Starts a task that serves one call or connection. A panic is logged and ends only this task.
pub fn spawn_task(
    name: &'static str,
    task: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    let fenced = async move {
        if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
            error!(task = name, panic = message(&*panic), "a task panicked");
        }
    };
    start(fenced)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where tasks are started; callers are supervised"
)]
fn start(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(task.in_current_span())
}

/// Lets a test of a debug build see what a panic does: `SERVO_PLANT_PANIC` names the actor.
mod planted {
    use std::future::Future;
    use std::time::Duration;

    /// Long enough that the actor is at work.
    const DELAY: Duration = Duration::from_millis(500);

    pub(super) async fn with_panic(name: &'static str, actor: impl Future<Output = ()>) {
        if !cfg!(debug_assertions)
            || std::env::var_os("SERVO_PLANT_PANIC").is_none_or(|it| it != name)
        {
            return actor.await;
        }
        tokio::select! {
            () = actor => {}
            () = tokio::time::sleep(DELAY) => panic!("planted by SERVO_PLANT_PANIC"),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}

/// Ends the process when something that catches its own panics does so too often: a panic now and
/// then is survived by starting over from stored state, a panic at every turn is not.
#[derive(Debug)]
pub struct PanicBudget {
    name: &'static str,
    panics: Vec<Instant>,
}

impl PanicBudget {
    /// With this many panics within [`PanicBudget::WINDOW`] the process ends.
    pub const PANICS_MAX: usize = 3;
    pub const WINDOW: Duration = Duration::from_secs(60);

    pub fn new(name: &'static str) -> PanicBudget {
        PanicBudget {
            name,
            panics: Vec::new(),
        }
    }

    /// Records a panic that was caught.
    pub fn spend(&mut self) {
        if self.is_spent_by(Instant::now()) {
            error!(
                actor = self.name,
                "an actor panics again and again; the process ends"
            );
            std::process::exit(EXIT_CODE);
        }
    }

    fn is_spent_by(&mut self, now: Instant) -> bool {
        self.panics
            .retain(|at| now.duration_since(*at) < Self::WINDOW);
        self.panics.push(now);
        self.panics.len() >= Self::PANICS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_of_a_task_ends_only_that_task() {
        let failed = spawn_task("fails", async { panic!("on purpose") });
        assert!(failed.await.is_ok(), "the panic was caught");
        let (sender, receiver) = tokio::sync::oneshot::channel();
        spawn_task("works", async move { sender.send(7).unwrap() });
        assert_eq!(receiver.await, Ok(7));
    }

    #[test]
    fn a_budget_is_spent_by_panics_within_a_minute() {
        let start = Instant::now();
        let mut budget = PanicBudget::new("test");
        let mut panics = |seconds| budget.is_spent_by(start + Duration::from_secs(seconds));
        assert!(!panics(0) && !panics(30));
        assert!(!panics(61), "the first is forgotten");
        assert!(panics(62));
    }

    #[tokio::test]
    async fn an_actor_that_returns_leaves_the_process_alone() {
        assert!(spawn("returns", async {}).await.is_ok());
    }
}
