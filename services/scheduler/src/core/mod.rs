//! Decisions about runs, without a clock, SQL or randomness: an event and a run in, the changed
//! rows and the messages for the dispatcher out.

mod changes;
mod event;
mod explain;
mod finish;
mod fold;
mod mapped;
mod plan;
mod propagate;
mod resolve;
mod retry;
mod run;
mod run_keys;
mod run_limits;
mod run_view;
mod task_row;
mod timers;
mod verdict;

#[cfg(test)]
mod tests;

pub use changes::{Changes, Materialized, PartitionUpdate, Promotion, RecordedCheck, TaskChange};
pub use event::{CheckFinding, Event, Finished, Outcome, Output, Session, TimerKind};
pub use explain::{Wait, wait_of};
pub use fold::fold;
pub use plan::{AssetSettings, BadPlan, Plan, PlannedTask};
pub use resolve::{Resolvable, resolve};
pub use retry::{RetryScope, repeated};
pub use run::{Counts, Run, RunHeader, StoppedBy, TriggerType};
pub use run_keys::{Decision, KeyPolicy, decide, probes};
pub use run_limits::{
    Excess, InUse, Limits, RunLimits, StartDecision, decide_start, take_capacity,
};
pub use run_view::RunView;
pub use task_row::TaskRow;
pub use timers::{Due, due_of, force_from};
pub use verdict::{Refusal, Verdict};
