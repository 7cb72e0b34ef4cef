//! Who gets which task when: decisions without IO, clock or chance.
//!
//! [`Admission`] keeps what is ready, what is live and who may take it, and answers the next claims
//! ([`Admission::choose`]). The order between tenants is [`fairness`]; what stands in a task's way is told by
//! [`Admission::explain`].

mod admission;
mod choose;
mod demand;
mod depth;
mod explain;
mod fairness;
mod lanes;
mod limits;
mod live;
mod offers;
mod streams;
pub(crate) mod target;
mod tenant;
mod told;
mod used;
mod workers;

#[cfg(test)]
mod tests;

pub use admission::{Admission, Effect};
pub use choose::{CLAIMS_PER_BATCH_MAX, Chosen};
pub use demand::{Demand, PlanRef, Room, Shape, ShapedTask, Task};
pub use depth::Depth;
pub(crate) use explain::Wait;
pub use limits::{Limits, Pause, TenantLimits};
pub use live::Live;
pub use offers::{
    Ended, LiveTask, OfferedRun, OfferedTask, PushOrder, Snapshot, Update, Withdrawn,
};
pub use streams::SourceId;
pub use used::Used;
pub use workers::{Worker, WorkerKey};

/// Seconds since 1970. Only differences matter.
pub type Seconds = f64;
