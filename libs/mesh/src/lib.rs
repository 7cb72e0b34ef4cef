//! The foundation of every service binary: configuration, TLS identity, authorization, deadlines,
//! telemetry, health, shutdown, peer clients.
//!
//! A service is a function from its [`Mesh`] to a future; its `main.rs` is one line,
//! `servo_mesh::run(Service::Scheduler, servo_scheduler::start)`:
//!
//! ```no_run
//! use std::time::Duration;
//! use servo_mesh::{Fault, ServiceFuture, Mesh, Pace};
//! use servo_model::Service;
//! use servo_proto::v1::planner_service_client::PlannerServiceClient;
//! use servo_proto::v1::scheduler_service_server::{SchedulerService, SchedulerServiceServer};
//!
//! #[derive(serde::Deserialize)]
//! #[serde(deny_unknown_fields)]
//! pub struct Config {
//!     #[serde(deserialize_with = "servo_mesh::config::duration")]
//!     release_every: Duration,
//! }
//!
//! struct Scheduler(PlannerServiceClient<servo_mesh::Peer>);
//!
//! impl SchedulerService for Scheduler {}
//!
//! pub fn start(mesh: Mesh<Config>) -> ServiceFuture {
//!     Box::pin(async move {
//!         let planner = PlannerServiceClient::new(mesh.peer(Service::Planner));
//!         mesh.serve(SchedulerServiceServer::new(Scheduler(planner)))
//!             .ready_when(|| async { Err("the schema is not there; run `servo migrate`") })
//!             .with_loop("release", Pace::every(mesh.config().release_every), || async { Ok::<_, Fault>(0_u64) })
//!             .until_signal()
//!             .await
//!     })
//! }
//! ```
//!
//! Every incoming call passes the same steps in [`server`]: identify the caller, authorize it,
//! check readiness, deadline and capacity, then run the handler. Every outgoing call passes through
//! [`peer`], which sets deadline and trace, verifies the server's identity and retries within a
//! budget.
//!
//! Errors come in three forms. [`Fault`] ends the process: it is returned by `start` and [`run`],
//! is printed for the operator and has an exit code. [`Error`] ends one call: handlers return it,
//! it has a [`Reason`] from a closed list, and it becomes a gRPC `Status`. [`problem`] is not a
//! third error type; it renders an [`Error`] as an RFC 9457 problem document for clients that call
//! over plain HTTP.

mod call_context;
mod caller;
mod clock;
pub mod config;
mod dropped_spans;
pub mod error;
mod fault;
pub mod filter;
mod first_message;
mod health;
mod holders;
mod loops;
mod mesh;
mod metrics;
pub mod paging;
pub mod peer;
pub mod problem;
mod run;
mod runtime;
pub mod server;
mod settings;
mod shutdown;
mod spans;
pub mod telemetry;
pub mod tls;
mod trace;

pub use call_context::{current_trace, time_left};
pub use caller::{Caller, check_scope_names};
pub use clock::now;
pub use config::{NoSections, Sources};
pub use error::{Error, Reason};
pub use fault::{ConfigFault, Fault};
pub use first_message::FirstMessage;
pub use holders::{Holders, Instance};
pub use loops::{Doorbell, Pace, Progress};
pub use mesh::Mesh;
pub use paging::PageTokens;
pub use peer::Peer;
pub use run::{ServiceFuture, run};
pub use server::{Bound, Handler, Serving};
pub use settings::Settings;
pub use shutdown::Shutdown;
pub use spans::{Exporter, continue_trace};
pub use tls::{Exposure, PeerIdentity, Tls};
pub use trace::TraceContext;
