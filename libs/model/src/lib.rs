//! The values that services share: ids, canonical forms, graph, plan, states, retry delays.
//!
//! Pure: no IO, no clock, no randomness, no prost. A type is defined here when more than one
//! service uses it. The feature `postgres` adds the column types of some values.
//!
//! - Names: [`ids`], [`asset`], [`partition`], [`task_key`], [`run_key`], [`dispatch_id`]. Each has
//!   one text form and parses no other.
//! - Partitions of assets and the mappings between them: [`grid`], [`partitioning`], [`mapping`];
//!   the selection of assets: [`selection`].
//! - Content that is hashed or signed: [`json`], [`request`], [`plan`], [`presign`],
//!   [`idempotency`].
//! - State and its changes: [`states`], [`edges`], [`retry`], in the order of [`graph`].
//! - Addresses: [`ShardId`], [`AdmissionShard`], [`Epoch`] and [`Position`] in the ledger,
//!   [`TaskRef`] in a run; and [`Timestamp`], the time type of all services.
//! - Fixed lists: [`service`], [`access`], [`event`], [`limits`]; settings that differ by tenant:
//!   [`per_tenant`].

pub mod access;
pub mod asset;
pub mod coded_enum;
pub mod dispatch_id;
pub mod edges;
pub mod event;
pub mod graph;
pub mod grid;
pub mod hash;
pub mod idempotency;
pub mod ids;
pub mod json;
mod ledger;
pub mod limits;
pub mod mapping;
pub mod partition;
pub mod partitioning;
pub mod per_tenant;
pub mod plan;
#[cfg(feature = "postgres")]
mod postgres;
pub mod presign;
pub mod request;
pub mod retry;
pub mod run_key;
pub mod selection;
pub mod service;
pub mod states;
pub mod task_key;
mod task_ref;
mod text;
mod time;

pub use access::{Grants, Permission, Role};
pub use asset::AssetKey;
pub use dispatch_id::{DispatchId, QueueId, TimerId};
pub use event::{EventType, Stream};
pub use hash::Digest;
pub use ids::{
    AttemptId, BackfillId, DeploymentId, EventId, RunId, ScheduleId, SensorId, TaskId, TenantId,
    TenantScope, WorkerId, WorkspaceId, WorkspaceScope,
};
pub use ledger::{AdmissionShard, Epoch, Position, ShardId};
pub use partition::{PartitionKey, PartitionValue};
pub use per_tenant::PerTenant;
pub use run_key::{RunIdSecret, RunKey};
pub use service::Service;
pub use task_key::{Operation, TaskKey};
pub use task_ref::TaskRef;
pub use time::Timestamp;
