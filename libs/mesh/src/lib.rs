//! What every service binary shares: configuration, TLS identity, authorisation, deadlines, telemetry,
//! health, shutdown, peer clients.
//!
//! A service is a function from its [`Mesh`] to its end:
//!
//! ```ignore
//! // main.rs
//! fn main() -> ExitCode {
//!     servo_mesh::run(Service::Scheduler, servo_scheduler::start)
//! }
//!
//! // lib.rs
//! pub async fn start(mesh: Mesh<Config>) -> Result<(), Fault> {
//!     let store = Store::connect(Service::Scheduler, &mesh.config().database)?;
//!     let planner = PlannerServiceClient::new(mesh.peer(Service::Planner));
//!     mesh.serve(SchedulerServiceServer::new(Scheduler::new(store.clone(), planner)))
//!         .ready_when(move || { let store = store.clone(); async move { store.check().await } })
//!         .with_loop("release", Pace::every(Duration::from_secs(5)), release_ready)
//!         .until_signal()
//!         .await
//! }
//! ```
//!
//! Every incoming call takes one path, [`server`]'s gate: who calls, may it, is the service ready, by when,
//! is there room, then the handler. Every outgoing call takes another, [`peer`]: deadline, trace, identity of
//! the server, retries with a budget.

mod caller;
pub mod config;
pub mod error;
mod fault;
mod first_message;
mod health;
mod loops;
mod mesh;
mod metrics;
pub mod peer;
mod run;
mod scope;
pub mod server;
mod shutdown;
pub mod telemetry;
pub mod tls;
mod trace;

pub use caller::Caller;
pub use config::{NoSections, Settings, Sources};
pub use error::{Error, Reason};
pub use fault::{ConfigFault, Fault};
pub use first_message::FirstMessage;
pub use loops::{Doorbell, Pace, Progress};
pub use mesh::Mesh;
pub use peer::Peer;
pub use run::run;
pub use scope::{current_trace, time_left};
pub use server::{Bound, Handler, Serving};
pub use shutdown::Shutdown;
pub use tls::{Door, PeerIdentity, Tls};
pub use trace::TraceContext;
