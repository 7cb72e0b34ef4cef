//! Mapped tasks, which run once per item of an upstream: the parent waits for its mapped tasks.

use servo_model::edges::{EdgeResolution, ResolutionCounts};
use servo_model::states::{TaskCause, TaskState};

use super::fold::Fold;
use super::run::Children;
use super::task_row::TaskRow;
use servo_model::TaskRef;

impl Fold<'_> {
    /// Creates a mapped task for every item. Without items the parent succeeds at once.
    pub(super) fn map(&mut self, parent: u32, over: u32, to_settle: &mut Vec<TaskRef>) {
        let count = self.run.items.get(&over).map_or(0, |(count, _)| *count);
        if count == 0 {
            self.step(TaskRef::planned(parent), TaskCause::ChildrenSucceeded);
            self.record_mapped(parent);
            to_settle.push(TaskRef::planned(parent));
            return;
        }
        let task_rows = vec![TaskRow::planned(self.at); count as usize];
        self.run.children.insert(
            parent,
            Children {
                task_rows,
                tally: ResolutionCounts::of(count),
            },
        );
        for item in 0..count {
            self.run.recount(None, TaskState::Planned);
            self.changes.created.push(TaskRef::mapped(parent, item));
            self.step(TaskRef::mapped(parent, item), TaskCause::ItemMapped);
        }
    }

    pub(super) fn is_mapped_already(&self, parent: u32) -> bool {
        self.run.children.contains_key(&parent)
    }

    pub(super) fn settle_child(
        &mut self,
        parent: u32,
        resolution: EdgeResolution,
        to_settle: &mut Vec<TaskRef>,
    ) {
        let Some(children) = self.run.children.get_mut(&parent) else {
            return;
        };
        children.tally.resolve(resolution);
        let Some(cause) = children.tally.as_children() else {
            return;
        };
        if self.step(TaskRef::planned(parent), cause) {
            self.record_mapped(parent);
            to_settle.push(TaskRef::planned(parent));
        }
    }
}
