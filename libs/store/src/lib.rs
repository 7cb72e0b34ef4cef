//! Postgres: migrations, roles and row security, tenant-scoped transactions, ledger, leases.
//!
//! Start reading at [`Store`]. A request handler gets a [`TenantTx`], which sees one tenant's rows;
//! a loop gets a [`LoopTx`], or a [`FencedTx`] when its writes are only valid while it holds a
//! shard. Events are appended through [`Ledger`], whose callers share commits, and read through
//! [`LedgerReader`], which detects gaps. [`ownership`] lists the access rights; [`migrate`] turns
//! them into grants and policies.
//!
//! **Stays absent:** a `Store` trait and an in-memory store (SQL is tested on a real Postgres),
//! statements outside a transaction for request handlers, and any knowledge of the meaning of the
//! services' tables.

mod check;
mod config;
mod error;
mod fence;
mod generation;
mod lease;
mod lease_keeper;
mod ledger;
mod listen;
pub mod migrate;
pub mod ownership;
mod pool;
mod store;
mod tx;

pub use check::NotReady;
pub use config::{BadConfig, DatabaseConfig};
pub use error::StoreError;
pub use fence::FencedTx;
pub use generation::Generation;
pub use lease::{Holder, Lease, LeaseTtl, Leases, Renewed};
pub use lease_keeper::{LeaseKeeper, Round, ShardOwner};
pub use ledger::{
    AppendError, AppendResult, Appended, BadEvent, EVENT_PAYLOAD_BYTES_MAX, EVENTS_PER_BATCH_MAX,
    EVENTS_PER_READ_MAX, Event, HeldBatch, IDEMPOTENCY_KEY_BYTES_MAX, Ledger, LedgerCounts,
    LedgerReader, NewEvent, ReadError,
};
pub use listen::Listener;
pub use pool::{LoopStore, TenantStore};
pub use store::Store;
pub use tx::{FromAnyRow, LoopTx, TenantTx, Tx};

/// The query builder; services do not depend on a driver of their own.
pub use sqlx::{self, query};
