//! Filters of the planner's lists.

use std::collections::BTreeMap;

use servo_mesh::Error;
use servo_mesh::filter::{self, Operator, Term, bad_filter};
use servo_proto::v1::{AssetDefinition, Deployment, DynamicPartition};

/// The terms of a filter, parsed before the first entry is checked.
#[derive(Debug)]
pub(crate) struct Filter(Vec<(Term, Value)>);

#[derive(Debug)]
enum Value {
    Text,
    Flag(bool),
    /// In nanoseconds since 1970.
    Time(i128),
}

impl Filter {
    pub(crate) fn assets(filter: &str) -> Result<Filter, Error> {
        Filter::read(
            filter,
            &["key", "namespace", "tags.*", "owners", "pool", "source"],
        )
    }

    pub(crate) fn deployments(filter: &str) -> Result<Filter, Error> {
        Filter::read(filter, &["code_version", "deploy_time", "labels.*"])
    }

    pub(crate) fn values(filter: &str) -> Result<Filter, Error> {
        Filter::read(filter, &["value", "create_time"])
    }

    fn read(filter: &str, fields: &[&str]) -> Result<Filter, Error> {
        let with_value = |term: Term| value(&term).map(|value| (term, value));
        filter::parse(filter, fields)?
            .into_iter()
            .map(with_value)
            .collect::<Result<_, _>>()
            .map(Filter)
    }

    pub(crate) fn matches_asset(&self, asset: &AssetDefinition) -> bool {
        self.all(|term, value| match (term.field.as_str(), value) {
            ("key", _) => holds(term, &asset.key),
            ("namespace", _) => holds(term, asset.key.split('/').next().unwrap_or_default()),
            ("tags", _) => holds(term, entry(&asset.tags, term)),
            ("owners", _) => asset.owners.contains(&term.value),
            ("pool", _) => holds(term, &asset.pool),
            (_, Value::Flag(flag)) => term.operator.holds(asset.source, *flag),
            _ => false,
        })
    }

    pub(crate) fn matches_deployment(&self, deployment: &Deployment) -> bool {
        self.all(|term, value| match (term.field.as_str(), value) {
            ("code_version", _) => holds(term, &deployment.code_version),
            ("labels", _) => holds(term, entry(&deployment.labels, term)),
            (_, Value::Time(limit)) => time_holds(term, deployment.deploy_time, *limit),
            _ => false,
        })
    }

    pub(crate) fn matches_value(&self, partition: &DynamicPartition) -> bool {
        self.all(|term, value| match value {
            Value::Time(limit) => time_holds(term, partition.create_time, *limit),
            _ => holds(term, &partition.value),
        })
    }

    fn all(&self, holds: impl Fn(&Term, &Value) -> bool) -> bool {
        self.0.iter().all(|(term, value)| holds(term, value))
    }
}

fn value(term: &Term) -> Result<Value, Error> {
    match term.field.as_str() {
        "deploy_time" | "create_time" => return term.time().map(Value::Time),
        // A list can only be tested for an entry.
        "owners" if term.operator == Operator::Has => return Ok(Value::Text),
        "owners" => {
            return Err(bad_filter(
                "`owners` is a list; ask it for an entry with `:`",
            ));
        }
        _ => {}
    }
    term.is_equality()?;
    match (term.field.as_str(), term.value.as_str()) {
        ("source", "true") => Ok(Value::Flag(true)),
        ("source", "false") => Ok(Value::Flag(false)),
        ("source", other) => Err(bad_filter(&format!(
            "`{other}` is neither true nor false, as `source` is"
        ))),
        _ => Ok(Value::Text),
    }
}

fn holds(term: &Term, value: &str) -> bool {
    term.operator.holds(value, &term.value)
}

/// Returns the map entry that the term names; a missing entry is empty.
fn entry<'a>(map: &'a BTreeMap<String, String>, term: &Term) -> &'a str {
    term.key
        .as_ref()
        .and_then(|key| map.get(key))
        .map_or("", String::as_str)
}

fn time_holds(term: &Term, time: Option<prost_types::Timestamp>, limit: i128) -> bool {
    let nanos = |time: prost_types::Timestamp| {
        i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
    };
    time.is_some_and(|time| term.operator.holds(nanos(time), limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asset() -> AssetDefinition {
        AssetDefinition {
            key: "sales/orders".to_owned(),
            owners: vec!["ann".to_owned(), "bob".to_owned()],
            tags: [("tier".to_owned(), "gold".to_owned())].into(),
            pool: "db".to_owned(),
            ..AssetDefinition::default()
        }
    }

    #[test]
    fn an_asset_matches_when_every_term_holds() {
        let matches = |filter: &str| Filter::assets(filter).unwrap().matches_asset(&asset());
        assert!(matches(""));
        assert!(matches(
            "key = sales/orders AND namespace = sales AND tags.tier = gold AND owners : bob"
        ));
        assert!(matches("pool = db AND source = false AND tags.other != x"));
        assert!(
            !matches("namespace = raw") && !matches("owners : eve") && !matches("source = true")
        );
    }

    #[test]
    fn times_are_compared_as_instants() {
        let create_time = Some(prost_types::Timestamp {
            seconds: 1_767_225_600,
            nanos: 0,
        });
        let value = DynamicPartition {
            value: "de".to_owned(),
            create_time,
        };
        let matches = |filter: &str| Filter::values(filter).unwrap().matches_value(&value);
        assert!(matches(
            "value = de AND create_time >= 2026-01-01T00:00:00Z"
        ));
        assert!(!matches("create_time < 2026-01-01T00:00:00Z") && !matches("value != de"));
        let deployment = Deployment {
            deploy_time: create_time,
            ..Deployment::default()
        };
        let matches = |filter: &str| {
            Filter::deployments(filter)
                .unwrap()
                .matches_deployment(&deployment)
        };
        assert!(matches(
            "deploy_time <= 2026-01-01T00:00:00Z AND labels.team != core"
        ));
        assert!(!matches("code_version = 7"));
    }

    #[test]
    fn errors_explain_the_invalid_term() {
        let fault = |filter: &str| Filter::assets(filter).unwrap_err().to_string();
        assert!(fault("owner = me").contains("`owner` cannot be filtered by"));
        assert!(fault("owners = me").contains("with `:`"));
        assert!(fault("source = maybe").contains("neither true nor false"));
        assert!(fault("pool > a").contains("takes = and != only"));
    }
}
