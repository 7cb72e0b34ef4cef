//! The enums that exist both in the model and in servo.v1 have the same names and numbers.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use servo_model::retry::{Backoff, ErrorCategory};
use servo_model::states::{
    BackfillReason, BackfillState, MaterializationState, QueueEntryState, RunState, TaskState,
    TransitionReason,
};

// Compares the model's enum with the enum of the same name in servo.v1.
macro_rules! same_list {
    ($($test:ident: $list:ident, $prefix:literal;)+) => {
        $(#[test]
        fn $test() -> Result<()> {
            let in_model = $list::ALL.iter().map(|item| (i32::from(item.code()), item.name().to_owned())).collect();
            check(stringify!($list), $prefix, in_model)
        })+
    };
}

same_list! {
    task_states_agree: TaskState, "TASK_STATE_";
    run_states_agree: RunState, "RUN_STATE_";
    transition_reasons_agree: TransitionReason, "TRANSITION_REASON_";
    error_categories_agree: ErrorCategory, "ERROR_CATEGORY_";
    backoffs_agree: Backoff, "BACKOFF_";
    backfill_states_agree: BackfillState, "BACKFILL_STATE_";
    backfill_reasons_agree: BackfillReason, "BACKFILL_REASON_";
    materialization_states_agree: MaterializationState, "MATERIALIZATION_STATE_";
    queue_entry_states_agree: QueueEntryState, "QUEUE_ENTRY_STATE_";
}

fn check(name: &str, prefix: &str, in_model: BTreeMap<i32, String>) -> Result<()> {
    let list = servo_proto::descriptors()
        .get_enum_by_name(&format!("servo.v1.{name}"))
        .context("no such enum")?;
    let named = list.values().filter(|value| value.number() != 0);
    let in_proto: BTreeMap<_, _> = named
        .map(|value| {
            (
                value.number(),
                value.name().trim_start_matches(prefix).to_owned(),
            )
        })
        .collect();
    assert_eq!(in_proto, in_model, "{name}");
    Ok(())
}
