//! Spawning with supervision.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

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

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
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

    #[tokio::test]
    async fn an_actor_that_returns_leaves_the_process_alone() {
        assert!(spawn("returns", async {}).await.is_ok());
    }
}
