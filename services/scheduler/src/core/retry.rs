//! Which tasks of an ended run a retry repeats.

use std::collections::BTreeSet;

use super::plan::Plan;

/// Which part of a run is repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryScope {
    /// Tasks that did not succeed.
    Failed,
    /// These ordinals.
    From(BTreeSet<u32>),
}

/// Returns the ordinals to run again: those of the scope, their upstreams that did not succeed, and
/// everything downstream of these. The items of a task are not stored, so a mapped task also
/// repeats the task that provides its items.
pub fn repeated(plan: &Plan, succeeded: impl Fn(u32) -> bool, scope: &RetryScope) -> BTreeSet<u32> {
    let mut again = BTreeSet::new();
    let mut next: Vec<u32> = match scope {
        RetryScope::Failed => (0u32..)
            .take(plan.tasks.len())
            .filter(|ordinal| !succeeded(*ordinal))
            .collect(),
        RetryScope::From(named) => named.iter().copied().collect(),
    };
    while let Some(ordinal) = next.pop() {
        if !again.insert(ordinal) {
            continue;
        }
        let task = plan.task(ordinal);
        next.extend(task.upstream.iter().filter(|up| !succeeded(**up)));
        next.extend(task.mapped_over);
        next.extend(plan.downstream(ordinal));
    }
    again
}
