//! The filter of ListPartitions.

use servo_mesh::Error;
use servo_mesh::filter::{self, Operator, Term};
use servo_proto::v1 as pb;

use super::filter_terms;

const FIELDS: [&str; 4] = [
    "state",
    "partition_key",
    "materialize_time",
    "last_attempt_outcome",
];

/// All conditions must hold.
#[derive(Debug)]
pub(crate) struct PartitionFilter(Vec<Condition>);

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

impl PartitionFilter {
    pub(crate) fn parse(filter: &str) -> Result<PartitionFilter, Error> {
        let terms = filter::parse(filter, &FIELDS)?;
        terms
            .iter()
            .map(Condition::of)
            .collect::<Result<_, _>>()
            .map(PartitionFilter)
    }

    /// The only partition that can match, if the filter names it.
    pub(crate) fn key(&self) -> Option<&str> {
        self.0.iter().find_map(|condition| match &condition.field {
            Field::Key(key) if condition.operator == Operator::Is => Some(key.as_str()),
            _ => None,
        })
    }

    pub(crate) fn matches(&self, partition: &pb::Partition) -> bool {
        self.0.iter().all(|condition| condition.matches(partition))
    }
}

impl Condition {
    fn of(term: &Term) -> Result<Condition, Error> {
        let field = match term.field.as_str() {
            "state" => Field::State(filter_terms::named(
                pb::PartitionState::from_str_name,
                "PARTITION_STATE_",
                term,
            )?),
            "partition_key" => Field::Key(term.value.clone()),
            "materialize_time" => Field::Materialized(term.time()?),
            _ => Field::Outcome(filter_terms::named(
                pb::Outcome::from_str_name,
                "OUTCOME_",
                term,
            )?),
        };
        if !matches!(field, Field::Materialized(_)) {
            term.is_equality()?;
        }
        Ok(Condition {
            field,
            operator: term.operator,
        })
    }

    fn matches(&self, partition: &pb::Partition) -> bool {
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
    fn a_partition_matches_when_every_term_holds() {
        let partition = pb::Partition {
            partition_key: "day=d:2026-01-01".to_owned(),
            state: pb::PartitionState::Stale.into(),
            last_attempt_outcome: pb::Outcome::Succeeded.into(),
            ..Default::default()
        };
        let matches = |filter: &str| PartitionFilter::parse(filter).unwrap().matches(&partition);
        assert!(matches("") && matches("state = STALE AND last_attempt_outcome != FAILED"));
        assert!(matches("partition_key = day=d:2026-01-01") && !matches("state = MISSING"));
        assert!(
            !matches("materialize_time > 2020-01-01T00:00:00Z"),
            "a partition that was never written has no such time"
        );
    }

    #[test]
    fn errors_name_the_faulty_term() {
        let fault = |filter: &str| PartitionFilter::parse(filter).unwrap_err().to_string();
        assert!(fault("state = GOOD").contains("`GOOD` is not a state"));
        assert!(fault("partition_key < a").contains("`partition_key` takes = and != only"));
        assert!(fault("asset_key = a/b").contains("`asset_key` cannot be filtered by"));
    }
}
