//! The filter of ListRuns.

use servo_mesh::Error;
use servo_mesh::filter::{self, Operator, Term, bad_filter};
use servo_proto::v1 as pb;

use super::filter_terms;
use crate::wire;

const FIELDS: [&str; 7] = [
    "state",
    "run_key",
    "labels.*",
    "trigger",
    "deployment_id",
    "create_time",
    "end_time",
];

/// The trigger types by the names that a filter uses.
const TRIGGERS: [&str; 5] = ["manual", "schedule", "sensor", "backfill", "condition"];

/// All conditions must hold.
#[derive(Debug)]
pub(crate) struct RunFilter(Vec<Condition>);

#[derive(Debug)]
struct Condition {
    field: Field,
    operator: Operator,
}

#[derive(Debug)]
enum Field {
    State(i32),
    Key(String),
    Label(String, String),
    Trigger(String),
    Deployment(String),
    Created(Nanos),
    Ended(Nanos),
}

/// Since 1970, UTC.
type Nanos = i128;

impl RunFilter {
    pub(crate) fn parse(filter: &str) -> Result<RunFilter, Error> {
        let terms = filter::parse(filter, &FIELDS)?;
        terms
            .iter()
            .map(Condition::of)
            .collect::<Result<_, _>>()
            .map(RunFilter)
    }

    pub(crate) fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// The only state that can match, if the filter names one; the store then leaves out the
    /// others.
    pub(crate) fn states(&self) -> Option<Vec<i16>> {
        self.0
            .iter()
            .find_map(|condition| match (&condition.field, condition.operator) {
                (Field::State(state), Operator::Is) => {
                    Some(vec![i16::try_from(*state).unwrap_or(0)])
                }
                _ => None,
            })
    }

    pub(crate) fn matches(&self, run: &pb::Run) -> bool {
        self.0.iter().all(|condition| condition.matches(run))
    }
}

impl Condition {
    fn of(term: &Term) -> Result<Condition, Error> {
        let text = || term.value.clone();
        let field = match term.field.as_str() {
            "state" => Field::State(filter_terms::named(
                pb::RunState::from_str_name,
                "RUN_STATE_",
                term,
            )?),
            "run_key" => Field::Key(text()),
            "labels" => Field::Label(term.key.clone().unwrap_or_default(), text()),
            "trigger" if TRIGGERS.contains(&term.value.as_str()) => Field::Trigger(text()),
            "trigger" => {
                let known = TRIGGERS.join(", ");
                return Err(bad_filter(&format!(
                    "`{}` is not a trigger; use one of {known}",
                    term.value
                )));
            }
            "deployment_id" => Field::Deployment(text()),
            "create_time" => Field::Created(term.time()?),
            _ => Field::Ended(term.time()?),
        };
        if !matches!(field, Field::Created(_) | Field::Ended(_)) {
            term.is_equality()?;
        }
        Ok(Condition {
            field,
            operator: term.operator,
        })
    }

    fn matches(&self, run: &pb::Run) -> bool {
        let holds = |left: &str, right: &str| self.operator.holds(left, right);
        let at = |time: Option<prost_types::Timestamp>, than: Nanos| {
            let nanos =
                time.map(|time| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos));
            nanos.is_some_and(|nanos| self.operator.holds(nanos, than))
        };
        match &self.field {
            Field::State(state) => self.operator.holds(run.state, *state),
            Field::Key(key) => holds(&run.run_key, key),
            Field::Label(key, value) => {
                let labels = run.spec.as_ref().map(|spec| &spec.labels);
                holds(
                    labels
                        .and_then(|labels| labels.get(key))
                        .map_or("", String::as_str),
                    value,
                )
            }
            Field::Trigger(name) => holds(wire::trigger_type(run.trigger.as_ref()).name(), name),
            Field::Deployment(id) => holds(&run.deployment_id, id),
            Field::Created(than) => at(run.create_time, *than),
            Field::Ended(than) => at(run.end_time, *than),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> pb::Run {
        let labels = [("team".to_owned(), "core".to_owned())].into();
        pb::Run {
            run_key: "nightly".to_owned(),
            state: pb::RunState::Failed.into(),
            spec: Some(pb::RunSpec {
                labels,
                ..Default::default()
            }),
            create_time: Some(prost_types::Timestamp {
                seconds: 1_767_225_600,
                nanos: 0,
            }),
            ..Default::default()
        }
    }

    #[test]
    fn a_run_matches_when_every_term_holds() {
        let matches = |filter: &str| RunFilter::parse(filter).unwrap().matches(&run());
        assert!(matches(""));
        assert!(matches(
            "state = FAILED AND run_key = nightly AND labels.team = core"
        ));
        assert!(matches(
            "state = run_state_failed AND trigger = manual AND labels.owner != me"
        ));
        assert!(
            !matches("state != FAILED")
                && !matches("labels.team = other")
                && !matches("trigger = sensor")
        );
        assert!(matches(
            "create_time >= 2026-01-01T00:00:00Z AND create_time < \"2026-01-01T00:00:01Z\""
        ));
        assert!(!matches("create_time > 2026-01-01T00:00:00Z"));
        assert!(
            !matches("end_time > 2020-01-01T00:00:00Z"),
            "a run that has not ended has no end time"
        );
    }

    #[test]
    fn errors_name_the_faulty_term() {
        let fault = |filter: &str| RunFilter::parse(filter).unwrap_err().to_string();
        assert!(fault("state = DONE").contains("`DONE` is not a state"));
        assert!(fault("state > FAILED").contains("`state` takes = and != only"));
        assert!(fault("create_time > yesterday").contains("`yesterday`"));
        assert!(
            fault("trigger = cron")
                .contains("use one of manual, schedule, sensor, backfill, condition")
        );
        assert!(fault("owner = me").contains("`owner` cannot be filtered by"));
    }
}
