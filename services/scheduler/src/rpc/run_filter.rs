//! Which runs a list wants.

use servo_mesh::Error;
use servo_mesh::filter::{self, Operator, Term, bad_filter};
use servo_proto::v1 as pb;

use super::answer;
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

/// How runs come to be, by the names that a filter uses.
const TRIGGERS: [&str; 5] = ["manual", "schedule", "sensor", "backfill", "condition"];

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
    Label(String, String),
    Trigger(String),
    Deployment(String),
    Created(Nanos),
    Ended(Nanos),
}

/// Since 1970, UTC.
type Nanos = i128;

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

    /// The only states it wants, if it names one, so that the store leaves out the others.
    pub(super) fn states(&self) -> Option<Vec<i16>> {
        self.0
            .iter()
            .find_map(|condition| match (&condition.field, condition.operator) {
                (Field::State(state), Operator::Is) => {
                    Some(vec![i16::try_from(*state).unwrap_or(0)])
                }
                _ => None,
            })
    }

    pub(super) fn fits(&self, run: &pb::Run) -> bool {
        self.0.iter().all(|condition| condition.fits(run))
    }
}

impl Condition {
    fn of(term: &Term) -> Result<Condition, Error> {
        let text = || term.value.clone();
        let field = match term.field.as_str() {
            "state" => Field::State(answer::named(
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
                    "`{}` is no trigger; there are {known}",
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

    fn fits(&self, run: &pb::Run) -> bool {
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
    fn a_run_fits_when_every_term_holds() {
        let fits = |filter: &str| Wanted::parse(filter).unwrap().fits(&run());
        assert!(fits(""));
        assert!(fits(
            "state = FAILED AND run_key = nightly AND labels.team = core"
        ));
        assert!(fits(
            "state = run_state_failed AND trigger = manual AND labels.owner != me"
        ));
        assert!(
            !fits("state != FAILED") && !fits("labels.team = other") && !fits("trigger = sensor")
        );
        assert!(fits(
            "create_time >= 2026-01-01T00:00:00Z AND create_time < \"2026-01-01T00:00:01Z\""
        ));
        assert!(!fits("create_time > 2026-01-01T00:00:00Z"));
        assert!(
            !fits("end_time > 2020-01-01T00:00:00Z"),
            "what has not ended has no such time"
        );
    }

    #[test]
    fn a_fault_says_what_is_meant() {
        let fault = |filter: &str| Wanted::parse(filter).unwrap_err().to_string();
        assert!(fault("state = DONE").contains("`DONE` is no state"));
        assert!(fault("state > FAILED").contains("`state` takes = and != only"));
        assert!(fault("create_time > yesterday").contains("`yesterday` is no time"));
        assert!(
            fault("trigger = cron")
                .contains("there are manual, schedule, sensor, backfill, condition")
        );
        assert!(fault("owner = me").contains("`owner` cannot be filtered by"));
    }
}
