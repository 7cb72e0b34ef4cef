//! Shared by development commands, tests and benchmarks: a private Postgres, a temporary CA, free
//! ports, and child processes that cannot outlive their parent.
//!
//! Real components on one machine, no mocks. Start reading at [`Postgres`]. **Stays absent:**
//! anything a production deployment would run.

mod ca;
mod child;
mod collector;
mod database;
mod lock;
mod mesh;
mod ports;
mod postgres;
pub mod process;
mod secret;
mod unprivileged;
pub mod wait;

pub use ca::{Ca, Issue, KeyPair};
pub use child::Child;
pub use collector::{Collector, ReceivedSpan};
pub use database::TestDatabase;
pub use lock::DirLock;
pub use mesh::{
    CONFINED_WORKSPACE, Instance, LivenessTimings, LocalMesh, MeshInfo, MeshOptions, ServiceStatus,
    Step, TENANT,
};
pub use ports::{FreePorts, free_port};
pub use postgres::{Postgres, PostgresOptions};
