//! The filter of ListMaterializations.

use servo_mesh::Error;
use servo_mesh::filter::{self, Operator, Term, bad_filter};
use servo_model::RunId;
use servo_proto::v1 as pb;

use super::filter_terms;
use crate::store::materializations::MaterializationIndex;

const FIELDS: [&str; 6] = [
    "asset_key",
    "partition_key",
    "state",
    "run_id",
    "gating",
    "record_time",
];

/// All conditions must hold.
#[derive(Debug)]
pub(crate) struct MaterializationFilter(Vec<Condition>);

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

impl MaterializationFilter {
    pub(crate) fn parse(filter: &str) -> Result<MaterializationFilter, Error> {
        let terms = filter::parse(filter, &FIELDS)?;
        terms
            .iter()
            .map(Condition::of)
            .collect::<Result<_, _>>()
            .map(MaterializationFilter)
    }

    pub(crate) fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, version: &pb::Materialization) -> bool {
        self.0.iter().all(|condition| condition.matches(version))
    }

    /// The most selective index: a run has fewer versions than an asset, and few are quarantined.
    pub(crate) fn index(&self) -> MaterializationIndex<'_> {
        let exact = || {
            self.0
                .iter()
                .filter(|condition| condition.operator == Operator::Is)
        };
        let run = exact().find_map(|condition| match &condition.field {
            Field::Run(run) => Some(MaterializationIndex::Run(*run)),
            _ => None,
        });
        let quarantined = pb::MaterializationState::Quarantined as i32;
        let waiting = exact().find_map(|condition| match &condition.field {
            Field::State(state) if *state == quarantined => Some(MaterializationIndex::Quarantined),
            _ => None,
        });
        let asset = exact().find_map(|condition| match &condition.field {
            Field::Asset(asset) => Some(MaterializationIndex::Asset(asset)),
            _ => None,
        });
        run.or(waiting)
            .or(asset)
            .unwrap_or(MaterializationIndex::All)
    }
}

impl Condition {
    fn of(term: &Term) -> Result<Condition, Error> {
        let field = match term.field.as_str() {
            "asset_key" => Field::Asset(term.value.replacen('.', "/", 1)),
            "partition_key" => Field::Partition(term.value.clone()),
            "state" => {
                let from_name = pb::MaterializationState::from_str_name;
                Field::State(filter_terms::named(
                    from_name,
                    "MATERIALIZATION_STATE_",
                    term,
                )?)
            }
            "run_id" => {
                let parsed = term.value.parse();
                Field::Run(
                    parsed.map_err(|_| bad_filter(&format!("`{}` is not a run id", term.value)))?,
                )
            }
            "gating" => Field::Gating(filter_terms::named(
                pb::Gating::from_str_name,
                "GATING_",
                term,
            )?),
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

    fn matches(&self, version: &pb::Materialization) -> bool {
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
    fn a_version_matches_when_every_term_holds() {
        let matches = |filter: &str| {
            MaterializationFilter::parse(filter)
                .unwrap()
                .matches(&version())
        };
        assert!(
            matches("") && matches("asset_key = sales.orders AND partition_key = day=d:2026-01-01")
        );
        assert!(matches(
            "state = QUARANTINED AND gating = quarantine AND asset_key != sales/returns"
        ));
        assert!(matches(&format!("run_id = {}", RunId::from_bytes([5; 16]))));
        assert!(
            matches("record_time >= 2026-01-01T00:00:00Z")
                && !matches("record_time > 2026-01-01T00:00:00Z")
        );
        assert!(
            !matches("state = PROMOTED")
                && !matches("gating = ALLOW")
                && !matches("asset_key = sales/returns")
        );
    }

    #[test]
    fn an_exact_term_selects_the_index() {
        let run = RunId::from_bytes([5; 16]);
        let index = |filter: &str, expected: MaterializationIndex<'_>| {
            assert_eq!(
                MaterializationFilter::parse(filter).unwrap().index(),
                expected,
                "{filter}"
            );
        };
        index("", MaterializationIndex::All);
        index(
            "asset_key != a/b AND state = PROMOTED",
            MaterializationIndex::All,
        );
        index(
            "asset_key = a.b AND partition_key = k=s:1",
            MaterializationIndex::Asset("a/b"),
        );
        index(
            "asset_key = a/b AND state = QUARANTINED",
            MaterializationIndex::Quarantined,
        );
        index(
            &format!("asset_key = a/b AND run_id = {run}"),
            MaterializationIndex::Run(run),
        );
    }

    #[test]
    fn errors_name_the_faulty_term() {
        let fault = |filter: &str| {
            MaterializationFilter::parse(filter)
                .unwrap_err()
                .to_string()
        };
        assert!(fault("state = GOOD").contains("`GOOD` is not a state"));
        assert!(fault("run_id = 7").contains("`7` is not a run id"));
        assert!(fault("asset_key > a/b").contains("`asset_key` takes = and != only"));
        assert!(fault("record_time > soon").contains("`soon`"));
        assert!(fault("owner = me").contains("`owner` cannot be filtered by"));
    }
}
