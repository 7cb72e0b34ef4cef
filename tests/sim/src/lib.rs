//! The engine in one thread: the services' real cores in a seeded world with virtual time.
//!
//! What decides is real: [`servo_scheduler::core`] folds and times, [`servo_dispatcher::core`] admits and chooses. What
//! surrounds it is modelled after the services' shells: the ledger with its fence, leases and late commits ([`ledger`]),
//! the lane of a scheduler ([`scheduler`]), the engine of a dispatcher ([`dispatcher`]), callbacks that forward or append
//! by themselves ([`callback`]), workers that die, lie and come back late ([`worker`]). [`faults`] breaks it, [`check`]
//! judges the ledger and the rows afterwards.
//!
//! **Stays absent:** clocks, threads and randomness other than [`dice`]: the same seed is the same world.

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

use servo_scheduler::core::Time;

pub const MS: Time = 1_000;
pub const SECOND: Time = 1_000 * MS;

/// How long a lease lasts, and how often it is renewed.
pub const LEASE_TTL: Time = 3 * SECOND;
pub const ROUND: Time = SECOND;
/// How often a worker says that it lives.
pub const BEAT: Time = 700 * MS;
