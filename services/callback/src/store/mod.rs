//! The statements of this service, one function each.

mod heartbeats;
mod instances;
mod logs;
mod runs;

pub(crate) use heartbeats::{Heartbeat, HeartbeatRow, delete_old_heartbeats, record_heartbeats};
pub(crate) use instances::{forget_instance, note_instance};
pub(crate) use logs::{
    LogBatch, StoredBatch, append_logs, delete_old_logs, logs_after, logs_before,
};
pub(crate) use runs::{RunRow, TaskAttemptsRow, find_run, read_plan, task_attempts};
