//! The statements of this service, one function each.

mod pauses;
mod plans;
mod queue_entries;
mod shards;
mod versions;
mod workers;

pub(crate) use pauses::{
    NewPauseState, PauseRow, active_pauses, active_pauses_of, lock_pause, put_pause,
};
pub(crate) use plans::read_plan;
pub(crate) use queue_entries::entries_of;
pub(crate) use shards::{heads, holder};
pub(crate) use versions::{InputPartition, latest_versions};
pub(crate) use workers::{
    CommandedWorker, PushWorkerRow, SeenWorker, WorkerRow, command_worker, commanded_workers,
    find_worker, forget_workers, lock_worker, note_lost, note_seen, page_workers, push_workers,
    register_worker, worker_gone,
};
