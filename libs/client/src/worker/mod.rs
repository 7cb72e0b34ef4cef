//! A worker: pulls envelopes, runs a handler for each, and reports what came of it.
//!
//! ```no_run
//! use servo_client::worker::{Attempt, Done, Handler, Worker, WorkerConfig};
//! # use servo_client::{Client, api};
//!
//! struct Greet;
//!
//! impl Handler for Greet {
//!     async fn run(&self, attempt: Attempt) -> Done {
//!         println!("hello from {}", attempt.envelope().task_key);
//!         Done::succeeded()
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
//! The hand-over is the start: a handler begins when its envelope arrives. A start is only reported for attempts
//! that last, beats follow, and outcomes are sent again until they are accepted or refused for good.
//!
//! A [`PushWorker`] listens instead of asking: an envelope that is pushed to it is an invitation, and its handler begins
//! when Servo has answered that the attempt may start.

mod attempt;
mod bare;
mod envelopes;
mod inputs;
mod pull;
mod push;
mod reports;
mod run;

pub use attempt::{Attempt, Done, Handler};
pub use inputs::InputsError;
pub use pull::{Worker, WorkerConfig, WorkerHandle};
pub use push::PushWorker;
