//! Compares two plans task by task.

use std::collections::BTreeMap;

use servo_proto::v1::{Plan, PlanDiff, PlannedTask};

pub(crate) fn diff(before: &Plan, after: &Plan) -> PlanDiff {
    let (old, new) = (by_key(before), by_key(after));
    let keys_without = |all: &BTreeMap<&str, &PlannedTask>,
                        other: &BTreeMap<&str, &PlannedTask>| {
        all.keys()
            .filter(|key| !other.contains_key(*key))
            .map(ToString::to_string)
            .collect()
    };
    let changed = |key: &&&str| {
        old.get(**key)
            .is_some_and(|task| !same(before, task, after, new[**key]))
    };
    PlanDiff {
        added_task_keys: keys_without(&new, &old),
        removed_task_keys: keys_without(&old, &new),
        changed_task_keys: new
            .keys()
            .filter(changed)
            .map(ToString::to_string)
            .collect(),
    }
}

fn by_key(plan: &Plan) -> BTreeMap<&str, &PlannedTask> {
    plan.tasks
        .iter()
        .map(|task| (task.task_key.as_str(), task))
        .collect()
}

/// Ordinals differ between plans, so tasks and assets are compared by key.
fn same(before: &Plan, old: &PlannedTask, after: &Plan, new: &PlannedTask) -> bool {
    let settings = |plan: &Plan, task: &PlannedTask| plan.assets.get(task.asset as usize).cloned();
    settings(before, old) == settings(after, new)
        && old.inputs == new.inputs
        && upstream_keys(before, old) == upstream_keys(after, new)
        && old.mapped_over.is_some() == new.mapped_over.is_some()
}

fn upstream_keys<'a>(plan: &'a Plan, task: &PlannedTask) -> Vec<&'a str> {
    let key = |ordinal: &u32| {
        plan.tasks
            .get(*ordinal as usize)
            .map(|task| task.task_key.as_str())
    };
    let mut keys: Vec<&str> = task.upstream.iter().filter_map(key).collect();
    keys.sort_unstable();
    keys
}
