//! Tasks that run once per item of an upstream: the parent waits, its children work.

use servo_model::edges::{EdgeResolution, Tally};
use servo_model::states::{TaskCause, TaskState};

use super::cell::{Cell, Slot};
use super::fold::Fold;
use super::run::Children;

impl Fold<'_> {
    /// Makes a child for every item. Without items there is nothing to do, which is done.
    pub(super) fn map(&mut self, parent: u32, over: u32, ended: &mut Vec<Slot>) {
        let count = self.run.items.get(&over).map_or(0, |(count, _)| *count);
        if count == 0 {
            self.step(Slot::planned(parent), TaskCause::ChildrenSucceeded);
            self.note_mapped(parent);
            ended.push(Slot::planned(parent));
            return;
        }
        let cells = vec![Cell::planned(self.at); count as usize];
        self.run.children.insert(
            parent,
            Children {
                cells,
                tally: Tally::of(count),
            },
        );
        for item in 0..count {
            self.run.recount(None, TaskState::Planned);
            self.changes.created.push(Slot::child(parent, item));
            self.step(Slot::child(parent, item), TaskCause::ItemMapped);
        }
    }

    pub(super) fn is_mapped_already(&self, parent: u32) -> bool {
        self.run.children.contains_key(&parent)
    }

    pub(super) fn settle_child(
        &mut self,
        parent: u32,
        resolution: EdgeResolution,
        ended: &mut Vec<Slot>,
    ) {
        let Some(children) = self.run.children.get_mut(&parent) else {
            return;
        };
        children.tally.resolve(resolution);
        let Some(cause) = children.tally.as_children() else {
            return;
        };
        if self.step(Slot::planned(parent), cause) {
            self.note_mapped(parent);
            ended.push(Slot::planned(parent));
        }
    }
}
