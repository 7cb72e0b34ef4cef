//! Ids are types: each prints with its kind, and parses only its own canonical text.
//!
//! There are three families. Slugs ([`TenantId`], [`WorkspaceId`]) are chosen by people. ULIDs
//! ([`EventId`] and others) are made from a time and random bytes that the caller passes in. The
//! rest ([`RunId`], [`TaskId`], [`AttemptId`]) are hashes of what they identify, so that every
//! process derives the same id.

mod attempt;
mod run;
mod slug;
mod task;
mod ulids;

#[cfg(test)]
mod tests;

pub use crate::text::IdError;
pub use attempt::AttemptId;
pub use run::RunId;
pub use slug::{TenantId, TenantScope, WorkspaceId, WorkspaceScope};
pub use task::TaskId;
pub use ulids::{BackfillId, DeploymentId, EventId, ScheduleId, SensorId, WorkerId};
