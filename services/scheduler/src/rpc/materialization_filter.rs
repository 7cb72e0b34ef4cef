//! Which versions a list wants.

use servo_mesh::Error;
use servo_mesh::filter::{self, Operator, Term, bad_filter};
use servo_model::RunId;
use servo_proto::v1 as pb;

use super::answer;

const FIELDS: [&str; 6] = [
    "asset_key",
    "partition_key",
    "state",
    "run_id",
    "gating",
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
    State(i32),
    Run(RunId),
    Gating(i32),
    Recorded(i128),
}

/// What the store can look up by itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Narrowed<'a> {
    Run(RunId),
    Asset(&'a str),
    Quarantined,
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

    pub(super) fn fits(&self, version: &pb::Materialization) -> bool {
        self.0.iter().all(|condition| condition.fits(version))
    }

    /// A run has fewer versions than an asset, and few of all wait for a decision.
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
        let quarantined = pb::MaterializationState::Quarantined as i32;
        let waiting = exact().find_map(|condition| match &condition.field {
            Field::State(state) if *state == quarantined => Some(Narrowed::Quarantined),
            _ => None,
        });
        let asset = exact().find_map(|condition| match &condition.field {
            Field::Asset(asset) => Some(Narrowed::Asset(asset)),
            _ => None,
        });
        run.or(waiting).or(asset).unwrap_or(Narrowed::Not)
    }
}

impl Condition {
    fn of(term: &Term) -> Result<Condition, Error> {
        let field = match term.field.as_str() {
            "asset_key" => Field::Asset(term.value.replacen('.', "/", 1)),
            "partition_key" => Field::Partition(term.value.clone()),
            "state" => {
                let from_name = pb::MaterializationState::from_str_name;
                Field::State(answer::named(from_name, "MATERIALIZATION_STATE_", term)?)
            }
            "run_id" => {
                let parsed = term.value.parse();
                Field::Run(
                    parsed.map_err(|_| bad_filter(&format!("`{}` is no run id", term.value)))?,
                )
            }
            "gating" => Field::Gating(answer::named(pb::Gating::from_str_name, "GATING_", term)?),
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

    fn fits(&self, version: &pb::Materialization) -> bool {
        let output = version.output.as_ref();
        let holds = |left: &str, right: &str| self.operator.holds(left, right);
        match &self.field {
            Field::Asset(key) => holds(output.map_or("", |output| &output.asset_key), key),
            Field::Partition(key) => holds(output.map_or("", |output| &output.partition_key), key),
            Field::State(state) => self.operator.holds(version.state, *state),
            Field::Run(run) => holds(&version.run_id, &run.to_string()),
            Field::Gating(gating) => self.operator.holds(version.gating, *gating),
            Field::Recorded(than) => {
                let at = version.record_time.unwrap_or_default();
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

    fn version() -> pb::Materialization {
        let output = pb::Output {
            asset_key: "sales/orders".to_owned(),
            partition_key: "day=d:2026-01-01".to_owned(),
            ..Default::default()
        };
        pb::Materialization {
            output: Some(output),
            state: pb::MaterializationState::Quarantined.into(),
            gating: pb::Gating::Quarantine.into(),
            run_id: RunId::from_bytes([5; 16]).to_string(),
            record_time: Some(prost_types::Timestamp {
                seconds: 1_767_225_600,
                nanos: 0,
            }),
            ..Default::default()
        }
    }

    #[test]
    fn a_version_fits_when_every_term_holds() {
        let fits = |filter: &str| Wanted::parse(filter).unwrap().fits(&version());
        assert!(fits("") && fits("asset_key = sales.orders AND partition_key = day=d:2026-01-01"));
        assert!(fits(
            "state = QUARANTINED AND gating = quarantine AND asset_key != sales/returns"
        ));
        assert!(fits(&format!("run_id = {}", RunId::from_bytes([5; 16]))));
        assert!(
            fits("record_time >= 2026-01-01T00:00:00Z")
                && !fits("record_time > 2026-01-01T00:00:00Z")
        );
        assert!(
            !fits("state = PROMOTED")
                && !fits("gating = ALLOW")
                && !fits("asset_key = sales/returns")
        );
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
        narrowed("", Narrowed::Not);
        narrowed("asset_key != a/b AND state = PROMOTED", Narrowed::Not);
        narrowed(
            "asset_key = a.b AND partition_key = k=s:1",
            Narrowed::Asset("a/b"),
        );
        narrowed(
            "asset_key = a/b AND state = QUARANTINED",
            Narrowed::Quarantined,
        );
        narrowed(
            &format!("asset_key = a/b AND run_id = {run}"),
            Narrowed::Run(run),
        );
    }

    #[test]
    fn a_fault_says_what_is_meant() {
        let fault = |filter: &str| Wanted::parse(filter).unwrap_err().to_string();
        assert!(fault("state = GOOD").contains("`GOOD` is no state"));
        assert!(fault("run_id = 7").contains("`7` is no run id"));
        assert!(fault("asset_key > a/b").contains("`asset_key` takes = and != only"));
        assert!(fault("record_time > soon").contains("`soon` is no time"));
        assert!(fault("owner = me").contains("`owner` cannot be filtered by"));
    }
}
