//! Decisions about runs: no clock, no SQL, no chance. Events in, changed rows and news for the dispatcher out.

mod cell;
mod changes;
mod event;
mod explain;
mod finish;
mod fold;
mod graph;
mod mapped;
mod propagate;
mod resolve;
mod retry;
mod run;
mod run_keys;
mod run_limits;
mod timers;
mod verdict;

#[cfg(test)]
mod tests;

pub use cell::{Cell, Slot};
pub use changes::{Changes, Checked, Materialized, PartitionNews, Promotion, TaskChange};
pub use event::{CheckFound, Event, Finished, Made, Outcome, Session, TimerKind};
pub use explain::{Wait, wait_of};
pub use fold::fold;
pub use graph::{AssetSettings, BadPlan, Graph, PlannedTask};
pub use resolve::{Resolvable, resolve};
pub use retry::{RetryScope, repeated};
pub use run::{Counts, Run, RunHeader, StoppedBy, TriggerType};
pub use run_keys::{Decision, KeyPolicy, decide, probes};
pub use run_limits::{Entry, Excess, InUse, Limits, RunLimits, enter, take_place};
pub use timers::{Due, due_of, force_from};
pub use verdict::{Refusal, Verdict};

/// Microseconds since 1970, as the database stamps them. The only time that a fold knows.
pub type Time = i64;
