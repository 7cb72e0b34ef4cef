//! The enums that both the wire and `servo_model` speak have the same names and numbers.

use std::collections::BTreeMap;

use servo_model::states::{RunState, TaskState, TransitionReason};

/// The values of an enum of servo.v1 without their prefix, UNSPECIFIED left out.
fn on_the_wire(name: &str, prefix: &str) -> BTreeMap<String, i32> {
    let pool = servo_proto::descriptors();
    let list = pool.get_enum_by_name(&format!("servo.v1.{name}")).unwrap();
    let value = |name: &str| name.strip_prefix(prefix).unwrap().to_owned();
    list.values().filter(|v| v.number() != 0).map(|v| (value(v.name()), v.number())).collect()
}

#[test]
fn task_states_agree() {
    let model: BTreeMap<_, _> = TaskState::ALL.iter().map(|s| (s.to_string(), i32::from(s.code()))).collect();
    assert_eq!(on_the_wire("TaskState", "TASK_STATE_"), model);
}

#[test]
fn run_states_agree() {
    let model: BTreeMap<_, _> = RunState::ALL.iter().map(|s| (s.to_string(), i32::from(s.code()))).collect();
    assert_eq!(on_the_wire("RunState", "RUN_STATE_"), model);
}

#[test]
fn transition_reasons_agree() {
    let model: BTreeMap<_, _> =
        TransitionReason::ALL.iter().map(|r| (r.to_string(), i32::from(r.code()))).collect();
    assert_eq!(on_the_wire("TransitionReason", "TRANSITION_REASON_"), model);
}
