//! Which tasks of an ended run are repeated.

use std::collections::BTreeSet;

use super::plan::Plan;

/// Which part of a run is repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryScope {
    /// What did not succeed.
    Failed,
    /// These ordinals.
    From(BTreeSet<u32>),
}

/// Ordinals to run again: those of the scope; whatever they need that did not succeed, for no task starts before its
/// upstreams have; and whatever depends on any of them. A task's items are not kept, so what runs over them takes the
/// task along.
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
        next.extend(plan.waiters(ordinal));
    }
    again
}
