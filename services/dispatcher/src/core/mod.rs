//! Admission as pure decisions, without I/O, clock or randomness.
//!
//! [`Admission`] holds the ready tasks, the live attempts and the connected workers of the tenants
//! that this instance admits. It applies the messages of schedulers (`admission/apply.rs`), chooses
//! the next claims in fair order ([`Admission::choose`]) and explains why a task waits
//! ([`Admission::explain`]). `fairness` defines the order between tenants, `ready_queues` the order
//! within a tenant.
//!
//! Times of snapshots come from the database's clock, so skew shifts the usage of those attempts
//! until they end.

mod admission;
mod demand;
mod fairness;
mod limits;
mod live;
pub(crate) mod push_targets;
mod ready_queues;
mod streams;
mod tenant;
mod workers;

#[cfg(test)]
mod tests;

pub(crate) use admission::Wait;
pub use admission::{
    Admission, CLAIMS_PER_BATCH_MAX, Claim, Effect, Ended, LimitCounts, ReadyRun, ReadyTask,
    Snapshot, SnapshotAttempt, TenantLoad, Update, Withdrawn,
};
pub use demand::{AdmissionPlan, AdmissionTask, Demand, PlanRef, Resources};
pub use limits::{Limits, Pause, TenantLimits};
pub use live::{DispatchDetails, LiveAttempt};
pub use streams::SchedulerStreamId;
pub use workers::{REGISTRATION_TTL, Worker, WorkerKey};
