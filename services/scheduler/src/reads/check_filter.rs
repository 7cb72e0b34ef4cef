//! The filter of ListCheckResults.

use servo_mesh::Error;
use servo_mesh::filter::{self, Operator, Term, bad_filter};
use servo_model::RunId;
use servo_proto::v1 as pb;

use super::filter_terms;
use crate::store::checks::CheckIndex;

const FIELDS: [&str; 7] = [
    "asset_key",
    "partition_key",
    "name",
    "passed",
    "severity",
    "run_id",
    "record_time",
];

/// All conditions must hold.
#[derive(Debug)]
pub(crate) struct CheckFilter(Vec<Condition>);

#[derive(Debug)]
struct Condition {
    field: Field,
    operator: Operator,
}

#[derive(Debug)]
enum Field {
    Asset(String),
    Partition(String),
    Name(String),
    ForwardedCommands(bool),
    Severity(i32),
    Run(RunId),
    Recorded(i128),
}

impl CheckFilter {
    pub(crate) fn parse(filter: &str) -> Result<CheckFilter, Error> {
        let terms = filter::parse(filter, &FIELDS)?;
        terms
            .iter()
            .map(Condition::of)
            .collect::<Result<_, _>>()
            .map(CheckFilter)
    }

    pub(crate) fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, record: &pb::CheckRecord) -> bool {
        self.0.iter().all(|condition| condition.matches(record))
    }

    /// The most selective index: a run has fewer results than an asset, and few results failed.
    pub(crate) fn index(&self) -> CheckIndex<'_> {
        let exact = || {
            self.0
                .iter()
                .filter(|condition| condition.operator == Operator::Is)
        };
        let run = exact().find_map(|condition| match &condition.field {
            Field::Run(run) => Some(CheckIndex::Run(*run)),
            _ => None,
        });
        let asset = exact().find_map(|condition| match &condition.field {
            Field::Asset(asset) => Some(CheckIndex::Asset(asset)),
            _ => None,
        });
        let failed = self.0.iter().find_map(|condition| match condition.field {
            Field::ForwardedCommands(passed) if passed != (condition.operator == Operator::Is) => {
                Some(CheckIndex::Failed)
            }
            _ => None,
        });
        run.or(asset).or(failed).unwrap_or(CheckIndex::All)
    }
}

impl Condition {
    fn of(term: &Term) -> Result<Condition, Error> {
        let field = match term.field.as_str() {
            "asset_key" => Field::Asset(term.value.replacen('.', "/", 1)),
            "partition_key" => Field::Partition(term.value.clone()),
            "name" => Field::Name(term.value.clone()),
            "passed" => Field::ForwardedCommands(term.value.parse().map_err(|_| {
                bad_filter(&format!(
                    "`{}` is neither true nor false; `passed` takes one of them",
                    term.value
                ))
            })?),
            "severity" => Field::Severity(filter_terms::named(
                pb::Severity::from_str_name,
                "SEVERITY_",
                term,
            )?),
            "run_id" => {
                let parsed = term.value.parse();
                Field::Run(
                    parsed.map_err(|_| bad_filter(&format!("`{}` is not a run id", term.value)))?,
                )
            }
            _ => Field::Recorded(term.time()?),
        };
        if !matches!(field, Field::Recorded(_)) {
            term.is_equality()?;
        }
        Ok(Condition {
            field,
            operator: term.operator,
        })
    }

    fn matches(&self, record: &pb::CheckRecord) -> bool {
        let result = record.result.clone().unwrap_or_default();
        let holds = |left: &str, right: &str| self.operator.holds(left, right);
        match &self.field {
            Field::Asset(key) => holds(&record.asset_key, key),
            Field::Partition(key) => holds(&record.partition_key, key),
            Field::Name(name) => holds(&result.name, name),
            Field::ForwardedCommands(passed) => self.operator.holds(result.passed, *passed),
            Field::Severity(severity) => self.operator.holds(result.severity, *severity),
            Field::Run(run) => holds(&record.run_id, &run.to_string()),
            Field::Recorded(than) => {
                let at = record.record_time.unwrap_or_default();
                self.operator.holds(
                    i128::from(at.seconds) * 1_000_000_000 + i128::from(at.nanos),
                    *than,
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> pb::CheckRecord {
        let result = pb::CheckResult {
            name: "rows".to_owned(),
            passed: false,
            severity: pb::Severity::Critical.into(),
            ..Default::default()
        };
        pb::CheckRecord {
            result: Some(result),
            asset_key: "sales/orders".to_owned(),
            partition_key: "day=d:2026-01-01".to_owned(),
            run_id: RunId::from_bytes([5; 16]).to_string(),
            record_time: Some(prost_types::Timestamp {
                seconds: 1_767_225_600,
                nanos: 0,
            }),
            ..Default::default()
        }
    }

    #[test]
    fn a_result_matches_when_every_term_holds() {
        let matches = |filter: &str| CheckFilter::parse(filter).unwrap().matches(&record());
        assert!(
            matches("") && matches("asset_key = sales.orders AND partition_key = day=d:2026-01-01")
        );
        assert!(matches(
            "name = rows AND passed = false AND severity = CRITICAL AND passed != true"
        ));
        assert!(matches(&format!("run_id = {}", RunId::from_bytes([5; 16]))));
        assert!(
            matches("record_time >= 2026-01-01T00:00:00Z")
                && !matches("record_time > 2026-01-01T00:00:00Z")
        );
        assert!(
            !matches("passed = true") && !matches("name != rows") && !matches("severity = INFO")
        );
    }

    #[test]
    fn an_exact_term_selects_the_index() {
        let run = RunId::from_bytes([5; 16]);
        let index = |filter: &str, expected: CheckIndex<'_>| {
            assert_eq!(
                CheckFilter::parse(filter).unwrap().index(),
                expected,
                "{filter}"
            );
        };
        index("passed = true AND asset_key != a/b", CheckIndex::All);
        index("passed = false", CheckIndex::Failed);
        index("passed != true", CheckIndex::Failed);
        index(
            "passed = false AND asset_key = a.b",
            CheckIndex::Asset("a/b"),
        );
        index(
            &format!("asset_key = a/b AND run_id = {run}"),
            CheckIndex::Run(run),
        );
    }

    #[test]
    fn errors_name_the_faulty_term() {
        let fault = |filter: &str| CheckFilter::parse(filter).unwrap_err().to_string();
        assert!(fault("passed = yes").contains("`yes` is neither true nor false"));
        assert!(fault("severity = BAD").contains("`BAD` is not a severity"));
        assert!(fault("name > a").contains("`name` takes = and != only"));
        assert!(fault("owner = me").contains("`owner` cannot be filtered by"));
    }
}
