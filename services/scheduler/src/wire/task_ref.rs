//! The address of a task in its run.

use servo_model::TaskRef;
use servo_proto::v1 as pb;

pub(crate) fn task_ref_from_proto(task: pb::TaskRef) -> TaskRef {
    TaskRef {
        ordinal: task.ordinal,
        map_index: task.map_index,
    }
}

pub(crate) fn task_ref_to_proto(task: TaskRef) -> pb::TaskRef {
    pb::TaskRef {
        ordinal: task.ordinal,
        map_index: task.map_index,
    }
}
