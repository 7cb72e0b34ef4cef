//! The door between `servo.v1` and the core: doubted once here, valid behind.

mod event;
mod event_record;
mod limits;
mod plan;
mod record;
mod request;
mod show;
mod task_ref;

pub(crate) use event::{body_of, from_body, item_count};
pub(crate) use event_record::event_record;
pub(crate) use limits::run_limits;
pub(crate) use plan::plan;
pub(crate) use record::{plan_created, records};
pub(crate) use request::{
    duration, fingerprint, header, manual_trigger, stored_request_id, trigger_type,
};
pub(crate) use show::{
    RunRecord, TaskExtras, TaskRecord, run_from_standing, run_to_proto, standing, task_from_cell,
    task_key, task_to_proto, timestamp, ulid,
};
pub(crate) use task_ref::{task_ref_from_proto, task_ref_to_proto};
