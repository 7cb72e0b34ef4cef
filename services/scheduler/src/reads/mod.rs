//! The read side: answers from the rows and the ledger. It never touches a lane.

pub(crate) mod errors;
pub(crate) mod event_filter;
pub(crate) mod explain;
pub(crate) mod filters;
pub(crate) mod live_partitions;
pub(crate) mod materializations;
pub(crate) mod partitions;
pub(crate) mod projection;
pub(crate) mod replay;
pub(crate) mod run_history;
mod run_limit;
pub(crate) mod runs;
mod task_names;
pub(crate) mod tasks;
pub(crate) mod verify_projection;

pub(crate) use task_names::TaskNames;

use servo_store::Store;

use crate::plans::Plans;

/// The dependencies of reads. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reads {
    pub(crate) store: Store,
    pub(crate) plans: Plans,
}
