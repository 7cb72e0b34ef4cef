//! The address of a task in its run.

/// A task of a run: its ordinal in the plan and, for a mapped task, the index of its item.
///
/// Ordered as the plan orders its tasks, with the mapped tasks after their parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskRef {
    pub ordinal: u32,
    pub map_index: Option<u32>,
}

impl TaskRef {
    /// A task of the plan itself, not a mapped task.
    pub const fn planned(ordinal: u32) -> TaskRef {
        TaskRef {
            ordinal,
            map_index: None,
        }
    }

    /// A mapped task, created for one item of an upstream.
    pub const fn mapped(ordinal: u32, map_index: u32) -> TaskRef {
        TaskRef {
            ordinal,
            map_index: Some(map_index),
        }
    }
}
