//! What demo, dev, tests, chaos and bench share: a private Postgres, a throw-away CA, free ports, and child
//! processes that cannot outlive us.
//!
//! Real things on one machine, nothing mocked. Start reading at [`Postgres`].
//! **Stays absent:** anything a production deployment would run.

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

pub use ca::{Ca, Issue, KeyPair};
pub use child::Child;
pub use collector::{Collector, TakenSpan};
pub use database::TestDatabase;
pub use lock::DirLock;
pub use mesh::{Instance, LivenessPace, LocalMesh, MeshOptions, ServiceStatus, Step, TENANT};
pub use ports::{FreePorts, free_port};
pub use postgres::{Postgres, PostgresOptions};
