//! Which results of checks a list wants.

use servo_mesh::Error;
use servo_mesh::filter::{self, Operator, Term, bad_filter};
use servo_model::RunId;
use servo_proto::v1 as pb;

use super::answer;

const FIELDS: [&str; 7] = [
    "asset_key",
    "partition_key",
    "name",
    "passed",
    "severity",
    "run_id",
    "record_time",
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
    Asset(String),
    Partition(String),
    Name(String),
    ForwardedCommands(bool),
    Severity(i32),
    Run(RunId),
    Recorded(i128),
}

/// What the store can look up by itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Narrowed<'a> {
    Run(RunId),
    Asset(&'a str),
    Failed,
    Not,
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

    pub(super) fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn fits(&self, record: &pb::CheckRecord) -> bool {
        self.0.iter().all(|condition| condition.fits(record))
    }

    /// A run has fewer results than an asset; of all, few did not pass.
    pub(super) fn narrowed(&self) -> Narrowed<'_> {
        let exact = || {
            self.0
                .iter()
                .filter(|condition| condition.operator == Operator::Is)
        };
        let run = exact().find_map(|condition| match &condition.field {
            Field::Run(run) => Some(Narrowed::Run(*run)),
            _ => None,
        });
        let asset = exact().find_map(|condition| match &condition.field {
            Field::Asset(asset) => Some(Narrowed::Asset(asset)),
            _ => None,
        });
        let failed = self.0.iter().find_map(|condition| match condition.field {
            Field::ForwardedCommands(passed) if passed != (condition.operator == Operator::Is) => {
                Some(Narrowed::Failed)
            }
            _ => None,
        });
        run.or(asset).or(failed).unwrap_or(Narrowed::Not)
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
                    "`{}` is neither true nor false, as passed is",
                    term.value
                ))
            })?),
            "severity" => Field::Severity(answer::named(
                pb::Severity::from_str_name,
                "SEVERITY_",
                term,
            )?),
            "run_id" => {
                let parsed = term.value.parse();
                Field::Run(
                    parsed.map_err(|_| bad_filter(&format!("`{}` is no run id", term.value)))?,
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

    fn fits(&self, record: &pb::CheckRecord) -> bool {
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
    fn a_result_fits_when_every_term_holds() {
        let fits = |filter: &str| Wanted::parse(filter).unwrap().fits(&record());
        assert!(fits("") && fits("asset_key = sales.orders AND partition_key = day=d:2026-01-01"));
        assert!(fits(
            "name = rows AND passed = false AND severity = CRITICAL AND passed != true"
        ));
        assert!(fits(&format!("run_id = {}", RunId::from_bytes([5; 16]))));
        assert!(
            fits("record_time >= 2026-01-01T00:00:00Z")
                && !fits("record_time > 2026-01-01T00:00:00Z")
        );
        assert!(!fits("passed = true") && !fits("name != rows") && !fits("severity = INFO"));
    }

    #[test]
    fn what_is_named_exactly_is_looked_up_by_it() {
        let run = RunId::from_bytes([5; 16]);
        let narrowed = |filter: &str, expected: Narrowed<'_>| {
            assert_eq!(
                Wanted::parse(filter).unwrap().narrowed(),
                expected,
                "{filter}"
            );
        };
        narrowed("passed = true AND asset_key != a/b", Narrowed::Not);
        narrowed("passed = false", Narrowed::Failed);
        narrowed("passed != true", Narrowed::Failed);
        narrowed("passed = false AND asset_key = a.b", Narrowed::Asset("a/b"));
        narrowed(
            &format!("asset_key = a/b AND run_id = {run}"),
            Narrowed::Run(run),
        );
    }

    #[test]
    fn a_fault_says_what_is_meant() {
        let fault = |filter: &str| Wanted::parse(filter).unwrap_err().to_string();
        assert!(fault("passed = yes").contains("`yes` is neither true nor false"));
        assert!(fault("severity = BAD").contains("`BAD` is no severity"));
        assert!(fault("name > a").contains("`name` takes = and != only"));
        assert!(fault("owner = me").contains("`owner` cannot be filtered by"));
    }
}
