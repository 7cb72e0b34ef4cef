//! The Rust client: typed access to `servo.v1`, and workers.
//!
//! ```no_run
//! use servo_client::{Client, Credentials, Tls, api};
//!
//! # async fn run() -> Result<(), servo_client::Error> {
//! let tls = Tls::new(std::fs::read_to_string("ca.crt").expect("the authority's certificate"));
//! let client = Client::connect("https://servo.example.com:7400", &tls, Credentials::ApiKey("…".into()))?;
//! let asked = api::GetRunRequest { tenant: "acme".into(), ..Default::default() };
//! let run = client.scheduler().get_run(asked).await?.into_inner();
//! # let _ = run; Ok(()) }
//! ```
//!
//! Every call gets a deadline, mutations get a request id unless they have one, and what the server did not take
//! (UNAVAILABLE) is repeated when a repeat does no harm. Refusals become an [`Error`] with their reason. Pages are
//! read by [`pages`], runs are followed by [`Client::watch_run`] and [`Client::tail_logs`], and work is done by a
//! [`worker::Worker`].
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

pub use client::{Client, Credentials, Tls};
pub use connection::Connection;
pub use error::{Error, Reason, Violation};
pub use pages::pages;
pub use token::TokenSource;

/// All messages, enums and generated clients.
pub use servo_proto::v1 as api;
