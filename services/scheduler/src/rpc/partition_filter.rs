//! Which partitions a list wants.

use servo_mesh::Error;
use servo_mesh::filter::{self, Operator, Term};
use servo_proto::v1 as pb;

use super::answer;

const FIELDS: [&str; 4] = [
    "state",
    "partition_key",
    "materialize_time",
    "last_attempt_outcome",
];

/// All of its conditions must hold.
#[derive(Debug)]
pub(super) struct Wanted(Vec<Condition>);

#[derive(Debug)]
struct Condition {
    field: Field,
    operator: Operator,
}

#[derive(Debug)]
enum Field {
    State(i32),
    Key(String),
    Materialized(i128),
    Outcome(i32),
}

impl Wanted {
    pub(super) fn parse(filter: &str) -> Result<Wanted, Error> {
        let terms = filter::parse(filter, &FIELDS)?;
        terms
            .iter()
            .map(Condition::of)
            .collect::<Result<_, _>>()
            .map(Wanted)
    }

    /// The only partition that can fit, when the filter names it.
    pub(super) fn key(&self) -> Option<&str> {
        self.0.iter().find_map(|condition| match &condition.field {
            Field::Key(key) if condition.operator == Operator::Is => Some(key.as_str()),
            _ => None,
        })
    }

    pub(super) fn fits(&self, partition: &pb::Partition) -> bool {
        self.0.iter().all(|condition| condition.fits(partition))
    }
}

impl Condition {
    fn of(term: &Term) -> Result<Condition, Error> {
        let field = match term.field.as_str() {
            "state" => Field::State(answer::named(
                pb::PartitionState::from_str_name,
                "PARTITION_STATE_",
                term,
            )?),
            "partition_key" => Field::Key(term.value.clone()),
            "materialize_time" => Field::Materialized(term.time()?),
            _ => Field::Outcome(answer::named(pb::Outcome::from_str_name, "OUTCOME_", term)?),
        };
        if !matches!(field, Field::Materialized(_)) {
            term.is_equality()?;
        }
        Ok(Condition {
            field,
            operator: term.operator,
        })
    }

    fn fits(&self, partition: &pb::Partition) -> bool {
        match &self.field {
            Field::State(state) => self.operator.holds(partition.state, *state),
            Field::Key(key) => self.operator.holds(&partition.partition_key, key),
            Field::Outcome(outcome) => self
                .operator
                .holds(partition.last_attempt_outcome, *outcome),
            Field::Materialized(than) => partition.materialize_time.is_some_and(|at| {
                let nanos = i128::from(at.seconds) * 1_000_000_000 + i128::from(at.nanos);
                self.operator.holds(nanos, *than)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_fits_when_every_term_holds() {
        let partition = pb::Partition {
            partition_key: "day=d:2026-01-01".to_owned(),
            state: pb::PartitionState::Stale.into(),
            last_attempt_outcome: pb::Outcome::Succeeded.into(),
            ..Default::default()
        };
        let fits = |filter: &str| Wanted::parse(filter).unwrap().fits(&partition);
        assert!(fits("") && fits("state = STALE AND last_attempt_outcome != FAILED"));
        assert!(fits("partition_key = day=d:2026-01-01") && !fits("state = MISSING"));
        assert!(
            !fits("materialize_time > 2020-01-01T00:00:00Z"),
            "what was never made has no such time"
        );
    }

    #[test]
    fn a_fault_says_what_is_meant() {
        let fault = |filter: &str| Wanted::parse(filter).unwrap_err().to_string();
        assert!(fault("state = GOOD").contains("`GOOD` is no state"));
        assert!(fault("partition_key < a").contains("`partition_key` takes = and != only"));
        assert!(fault("asset_key = a/b").contains("`asset_key` cannot be filtered by"));
    }
}
