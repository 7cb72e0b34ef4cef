//! The Rust client: typed access to `servo.v1`, and workers.
//!
//! ```no_run
//! use futures::TryStreamExt;
//! use servo_client::{Client, Credentials, Run, Tls, api};
//!
//! # async fn run(manifest: api::Manifest) -> Result<(), servo_client::Error> {
//! let tls = Tls::new(std::fs::read_to_string("ca.crt").expect("the authority's certificate"));
//! let client = Client::connect("https://servo.example.com:7400", &tls, Credentials::ApiKey("…".into()))?;
//! let workspace = client.workspace("acme", "prod");
//! workspace.deploy(manifest).await?;
//! let run = workspace.trigger(Run::of(["+marts/revenue"]).latest(1)).await?;
//! let mut lines = workspace.logs(&run.run_id).with(|asked| asked.follow = true).stream();
//! while let Some(line) = lines.try_next().await? {
//!     println!("{}", line.text);
//! }
//! let ended = workspace.wait(&run.run_id).await?;
//! # let _ = ended; Ok(()) }
//! ```
//!
//! A [`Workspace`] has the short forms; under them lie the generated clients with every call of `servo.v1`, such as
//! [`Client::scheduler`]. Every call gets a deadline, mutations get a request id unless they have one, and what the
//! server did not take (UNAVAILABLE) is repeated when a repeat does no harm. Refusals become an [`Error`] with their
//! reason. Pages are read by [`pages`], runs are followed by [`Client::watch_run`] and [`Client::tail_logs`], and work
//! is done by a [`worker::Worker`].
//!
//! **Stays absent:** knowledge of any one service beyond its API.

mod client;
mod connection;
mod error;
mod follow;
mod pages;
mod request_id;
mod token;
pub mod worker;
mod workspace;

pub use client::{Client, Credentials, Tls};
pub use connection::Connection;
pub use error::{Error, Reason, Violation};
pub use pages::pages;
pub use token::TokenSource;
pub use workspace::{Call, Many, One, Run, Workspace};

/// All messages, enums and generated clients.
pub use servo_proto::v1 as api;
