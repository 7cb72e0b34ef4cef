//! Postgres: migrations, roles and row security, tenant-scoped transactions, ledger, leases.
//!
//! Start reading at [`Store`]. A request handler gets a [`TenantTx`], which sees one tenant's rows; a loop gets a
//! [`LoopTx`], or a [`FencedTx`] when what it writes is only right while it holds a shard. Events enter through
//! [`Ledger`], whose callers share commits, and leave through [`LedgerReader`], which notices a hole.
//! Who may touch what stands in [`ownership`]; [`migrate`] turns it into grants and policies.
//!
//! **Stays absent:** a `Store` trait and an in-memory store (SQL is proven on a real Postgres), statements outside
//! a transaction for request handlers, and any knowledge of what the tables of the services mean.

mod check;
mod config;
mod error;
mod generation;
mod lease;
mod lease_keeper;
mod ledger;
mod listen;
pub mod migrate;
pub mod ownership;
mod store;
mod time;
mod tx;

pub use check::NotReady;
pub use config::{BadConfig, DatabaseConfig};
pub use error::StoreError;
pub use generation::Generation;
pub use lease::{Holder, Lease, LeaseTtl, Leases, Renewed};
pub use lease_keeper::{LeaseKeeper, Round, ShardOwner};
pub use ledger::{
    AppendError, Appended, BadEvent, EVENT_PAYLOAD_BYTES_MAX, EVENTS_PER_BATCH_MAX,
    EVENTS_PER_READ_MAX, Event, HeldBatch, IDEMPOTENCY_KEY_BYTES_MAX, Ledger, LedgerCounts,
    LedgerReader, NewEvent, Outcome, ReadError,
};
pub use listen::Listener;
pub use store::{LoopStore, Store, TenantStore};
pub use time::Timestamp;
pub use tx::{FencedTx, FromAnyRow, LoopTx, TenantTx, Tx};

/// What statements are written with; services name no driver of their own.
pub use sqlx::{self, query};
