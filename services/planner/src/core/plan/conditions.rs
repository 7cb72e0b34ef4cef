//! Applies the state of partitions to a plan: which tasks it keeps and which need not run.

use servo_proto::v1::PartitionCondition;

use super::draft::{self, TaskDraft};
use crate::core::deployment_graph::DeploymentGraph;
use crate::core::freshness::{Freshness, Statuses};

/// Keeps the tasks whose partition meets the condition. Tasks of unpartitioned assets always stay,
/// because the condition selects among partitions.
pub(super) fn keep_matching(
    graph: &DeploymentGraph,
    drafts: Vec<TaskDraft>,
    condition: PartitionCondition,
    statuses: &Statuses,
) -> Vec<TaskDraft> {
    let meets = |draft: &TaskDraft| {
        draft.key.partition().is_none() || freshness(graph, draft, statuses).meets(condition)
    };
    let kept: Vec<usize> = drafts
        .iter()
        .enumerate()
        .filter(|(_, draft)| meets(draft))
        .map(|(index, _)| index)
        .collect();
    draft::keep(drafts, kept)
}

/// Marks the tasks that are up to date and depend on no task that runs. A task over whose items
/// another one is mapped always runs, because items are not stored.
pub(super) fn mark_up_to_date(
    graph: &DeploymentGraph,
    drafts: &mut [TaskDraft],
    statuses: &Statuses,
) {
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); drafts.len()];
    for (index, draft) in drafts.iter().enumerate() {
        draft
            .upstream
            .iter()
            .for_each(|up| dependents[*up].push(index));
    }
    let mut running: Vec<usize> = drafts
        .iter()
        .filter_map(|draft| draft.mapped_over)
        .collect();
    for (index, draft) in drafts.iter_mut().enumerate() {
        draft.up_to_date = freshness(graph, draft, statuses).is_up_to_date();
        if !draft.up_to_date {
            running.push(index);
        }
    }
    for index in &running {
        drafts[*index].up_to_date = false;
    }
    while let Some(index) = running.pop() {
        for dependent in &dependents[index] {
            if std::mem::take(&mut drafts[*dependent].up_to_date) {
                running.push(*dependent);
            }
        }
    }
}

fn freshness(graph: &DeploymentGraph, draft: &TaskDraft, statuses: &Statuses) -> Freshness {
    Freshness::of(
        statuses,
        draft.output_partitions.iter(),
        draft.input_partitions.iter(),
        graph.code_version(draft.asset),
    )
}
