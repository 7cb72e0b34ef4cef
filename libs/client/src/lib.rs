//! The Rust client of Servo: typed access to `servo.v1`, and workers.
//!
//! ```no_run
//! use futures::TryStreamExt;
//! use servo_client::{Client, Credentials, Run, Tls, api};
//!
//! # async fn run(manifest: api::Manifest) -> Result<(), servo_client::Error> {
//! let tls = Tls::new(std::fs::read_to_string("ca.crt").expect("the CA certificate"));
//! let credentials = Credentials::ApiKey("…".into());
//! let client = Client::connect("https://servo.example.com:7400", &tls, credentials)?;
//! let workspace = client.workspace("acme", "prod");
//! workspace.deploy(manifest).await?;
//! let run = workspace.trigger(Run::of(["+marts/revenue"]).latest(1)).await?;
//! let mut lines = workspace.logs(&run.run_id).with(|request| request.follow = true).stream();
//! while let Some(line) = lines.try_next().await? {
//!     println!("{}", line.text);
//! }
//! let ended = workspace.wait(&run.run_id).await?;
//! # let _ = ended; Ok(()) }
//! ```
//!
//! A [`Workspace`] offers short forms of the common calls. The generated clients, such as
//! [`Client::scheduler`], offer every call of `servo.v1`. Every call gets a deadline, and a
//! mutation without a request id gets one. A call that the server did not accept (UNAVAILABLE) is
//! retried if a repeat is harmless. Refusals become an [`Error`] with a reason. [`pages`] reads
//! lists page by page, [`Client::watch_run`] and [`Client::tail_logs`] follow runs, and a
//! [`worker::Worker`] executes tasks.
//!
//! The directory `examples` has complete programs.
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
pub use workspace::{Call, ItemStream, ResponseFuture, Run, Workspace};

/// All messages, enums and generated clients.
pub use servo_proto::v1 as api;
