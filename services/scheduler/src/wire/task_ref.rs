//! A task's place in its run.

use servo_proto::v1;

use crate::core::Slot;

pub(crate) fn slot(task: v1::TaskRef) -> Slot {
    Slot {
        ordinal: task.ordinal,
        item: task.map_index,
    }
}

pub(crate) fn task_ref(slot: Slot) -> v1::TaskRef {
    v1::TaskRef {
        ordinal: slot.ordinal,
        map_index: slot.item,
    }
}
