//! Conversions between `servo.v1` messages and core types. Messages are validated here, so that
//! core values are always valid.

mod event;
mod event_record;
mod limits;
mod plan;
mod plan_created;
mod request;
mod show;
mod task_ref;

pub(crate) use event::{body_of, from_body, item_count};
pub(crate) use event_record::event_record;
pub(crate) use limits::run_limits;
pub(crate) use plan::plan;
pub(crate) use plan_created::plan_created;
pub(crate) use request::{
    duration, fingerprint, header, manual_trigger, stored_request_id, trigger_type,
};
pub(crate) use show::{
    TaskExtras, run_from_standing, run_standing, run_to_proto, task_from_row, task_to_proto, ulid,
};
pub(crate) use task_ref::{task_ref_from_proto, task_ref_to_proto};
