//! Deterministic simulation: the services' real cores in one thread, with a seed and virtual time.
//!
//! The decisions are real: [`servo_scheduler::core`] folds and times, [`servo_dispatcher::core`]
//! admits. The surroundings are models of the services: the ledger with its fence, leases and late
//! commits ([`ledger`]), the lane of a scheduler ([`scheduler`]), the engine of a dispatcher
//! ([`dispatcher`]), callbacks that forward or append ([`callback`]), workers that crash, lie and
//! report late ([`worker`]). [`faults`] injects faults, [`check`] verifies the ledger and the rows
//! afterwards.
//!
//! **Stays absent:** clocks, threads and randomness other than [`dice`], so that a seed is
//! deterministic.

pub mod bugs;
pub mod callback;
pub mod check;
pub mod dice;
pub mod dispatcher;
pub mod dispatcher_streams;
pub mod env;
pub mod faults;
pub mod flush;
pub mod ledger;
pub mod permutations;
pub mod planned_run;
pub mod rows;
pub mod scheduler;
pub mod stats;
pub mod timers;
pub mod user;
pub mod worker;
pub mod world;

pub use bugs::Bug;
pub use stats::Stats;
pub use world::{Outcome, run_seed};

/// Durations are in microseconds.
pub const MS: i64 = 1_000;
pub const SECOND: i64 = 1_000 * MS;

/// How long a lease lasts, and how often it is renewed.
pub const LEASE_TTL: i64 = 3 * SECOND;
pub const ROUND: i64 = SECOND;
/// The heartbeat interval of a worker.
pub const BEAT: i64 = 700 * MS;
