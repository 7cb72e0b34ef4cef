//! Tasks that are supervised and queues that are bounded.
//!
//! Everything that runs in the background of a service starts here, so that no failure goes unnoticed:
//!
//! - [`spawn`] starts an *actor*: a task that owns state which the process cannot do without. When
//!   it panics the process ends with the actor's name in the log, because a process that lives on
//!   without it would keep its leases and answer health checks while doing nothing. The supervisor
//!   of the process starts a new one, and other instances take over its leases.
//! - [`spawn_task`] starts a task that serves one call or one connection. When it panics, only that
//!   call is lost; the panic is logged.
//! - [`Batcher`] is the actor that most services need: callers hand in single items, it runs them
//!   in batches and answers each caller. Its queue has a bound; callers wait while it is full.
//!
//! Loops (`run_once` at a pace) belong to `servo_mesh` and fence panics themselves: the next pass
//! starts from stored state.

mod batcher;
mod task;

pub use batcher::{BatchHandler, Batcher, Limits, Stopped, Weight};
pub use task::{EXIT_CODE, PanicBudget, spawn, spawn_task};
