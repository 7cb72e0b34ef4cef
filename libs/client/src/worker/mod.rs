//! A worker: pulls envelopes, runs a handler for each, and reports the outcome.
//!
//! ```no_run
//! use servo_client::worker::{Attempt, AttemptOutcome, Handler, Worker, WorkerConfig};
//! # use servo_client::{Client, api};
//!
//! struct Greet;
//!
//! impl Handler for Greet {
//!     async fn run(&self, attempt: Attempt) -> AttemptOutcome {
//!         println!("hello from {}", attempt.envelope().task_key);
//!         AttemptOutcome::succeeded()
//!     }
//! }
//!
//! # async fn run(client: Client) -> Result<(), servo_client::Error> {
//! let info = api::WorkerInfo { name: "greeter".into(), slots: 8, ..Default::default() };
//! let worker = Worker::new(client.clone(), client, WorkerConfig::new("acme", info), Greet);
//! worker.run().await?;
//! # Ok(()) }
//! ```
//!
//! A handler begins as soon as its envelope arrives, because receiving the envelope grants the
//! start. A start is reported only for attempts that last; heartbeats follow, and outcomes are sent
//! again until they are accepted or finally refused.
//!
//! A [`PushWorker`] listens for envelopes instead of pulling them. A pushed envelope is an offer:
//! the handler begins only after Servo has confirmed that the attempt may start.

mod attempt;
mod clock;
mod envelopes;
mod inputs;
mod pull;
mod push;
mod reduced_outcome;
mod reports;
mod run;

use tokio::task::JoinHandle;

pub use attempt::{Attempt, AttemptOutcome, Handler};
pub use inputs::InputsError;
pub use pull::{Worker, WorkerConfig, WorkerHandle};
pub use push::PushWorker;

/// Starts a task in the user's process. It is not supervised like the tasks of Servo's services,
/// because a library must not end its host.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the client starts tasks"
)]
fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(task)
}
