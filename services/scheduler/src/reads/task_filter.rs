//! The filter of ListTasks.

use servo_mesh::Error;
use servo_mesh::filter::{self, Term};
use servo_proto::v1 as pb;

use super::filter_terms;

const FIELDS: [&str; 6] = [
    "state",
    "asset_key",
    "partition_key",
    "operation",
    "pool",
    "reason",
];

/// All conditions must hold.
pub(crate) struct TaskFilter(Vec<Condition>);

impl TaskFilter {
    pub(crate) fn parse(filter: &str) -> Result<TaskFilter, Error> {
        let terms = filter::parse(filter, &FIELDS)?;
        terms
            .iter()
            .map(Condition::of)
            .collect::<Result<_, _>>()
            .map(TaskFilter)
    }

    pub(crate) fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, task: &pb::Task) -> bool {
        self.0.iter().all(|condition| condition.matches(task))
    }
}

struct Condition {
    field: Field,
    /// `=` rather than `!=`.
    is: bool,
}

enum Field {
    State(i32),
    Operation(i32),
    Reason(i32),
    Asset(String),
    Partition(String),
    Pool(String),
}

impl Condition {
    fn of(term: &Term) -> Result<Condition, Error> {
        let text = || term.value.clone();
        let field = match term.field.as_str() {
            "state" => Field::State(filter_terms::named(
                pb::TaskState::from_str_name,
                "TASK_STATE_",
                term,
            )?),
            "operation" => Field::Operation(filter_terms::named(
                pb::Operation::from_str_name,
                "OPERATION_",
                term,
            )?),
            "reason" => {
                let from_name = pb::TransitionReason::from_str_name;
                Field::Reason(filter_terms::named(from_name, "TRANSITION_REASON_", term)?)
            }
            "asset_key" => Field::Asset(term.value.replacen('.', "/", 1)),
            "partition_key" => Field::Partition(text()),
            _ => Field::Pool(text()),
        };
        Ok(Condition {
            field,
            is: term.is_equality()?,
        })
    }

    fn matches(&self, task: &pb::Task) -> bool {
        let equal = match &self.field {
            Field::State(state) => *state == task.state,
            Field::Operation(operation) => *operation == task.operation,
            Field::Reason(reason) => *reason == task.reason,
            Field::Asset(key) => *key == task.asset_key,
            Field::Partition(key) => *key == task.partition_key,
            Field::Pool(pool) => *pool == task.pool,
        };
        equal == self.is
    }
}
