//! What of a plan's drafts is chosen or need not run, because of what its partitions are like.

use servo_proto::v1::PartitionCondition;

use super::draft::{self, Draft};
use crate::core::deployed::Deployed;
use crate::core::freshness::{Freshness, Statuses};

/// Keeps the partitions that meet the condition. Assets in one piece are not chosen by partitions, so they stay.
pub(super) fn choose(
    deployed: &Deployed,
    drafts: Vec<Draft>,
    condition: PartitionCondition,
    statuses: &Statuses,
) -> Vec<Draft> {
    let meets = |draft: &Draft| {
        draft.key.partition().is_none() || freshness(deployed, draft, statuses).meets(condition)
    };
    let wanted: Vec<usize> = drafts
        .iter()
        .enumerate()
        .filter(|(_, draft)| meets(draft))
        .map(|(place, _)| place)
        .collect();
    draft::keep(drafts, wanted)
}

/// Marks what is up to date and depends on nothing that runs. The items of a task are not kept, so one over which
/// another is mapped runs again.
pub(super) fn mark(deployed: &Deployed, drafts: &mut [Draft], statuses: &Statuses) {
    let mut waiters: Vec<Vec<usize>> = vec![Vec::new(); drafts.len()];
    for (place, draft) in drafts.iter().enumerate() {
        draft
            .upstream
            .iter()
            .for_each(|up| waiters[*up].push(place));
    }
    let mut running: Vec<usize> = drafts
        .iter()
        .filter_map(|draft| draft.mapped_over)
        .collect();
    for (place, draft) in drafts.iter_mut().enumerate() {
        draft.up_to_date = freshness(deployed, draft, statuses).is_up_to_date();
        if !draft.up_to_date {
            running.push(place);
        }
    }
    for place in &running {
        drafts[*place].up_to_date = false;
    }
    while let Some(place) = running.pop() {
        for waiter in &waiters[place] {
            if std::mem::take(&mut drafts[*waiter].up_to_date) {
                running.push(*waiter);
            }
        }
    }
}

fn freshness(deployed: &Deployed, draft: &Draft, statuses: &Statuses) -> Freshness {
    Freshness::of(
        statuses,
        draft.made.iter(),
        draft.read.iter(),
        deployed.code_version(draft.asset),
    )
}
