//! The scheduler's SQL: one function per statement, with the statement in a `.sql` file.

pub(crate) mod checks;
pub(crate) mod conflicts;
pub(crate) mod events;
pub(crate) mod flush;
pub(crate) mod heartbeats;
pub(crate) mod limits;
pub(crate) mod materializations;
pub(crate) mod partitions;
pub(crate) mod plans;
pub(crate) mod poison_messages;
pub(crate) mod rebuild;
pub(crate) mod requests;
pub(crate) mod run_lookup;
pub(crate) mod runs;
pub(crate) mod shards;
pub(crate) mod sweeps;
pub(crate) mod tasks;

use servo_store::sqlx::Postgres;
use servo_store::sqlx::postgres::PgArguments;
use servo_store::sqlx::query::Query;

pub(crate) type Statement<'q> = Query<'q, Postgres, PgArguments>;
