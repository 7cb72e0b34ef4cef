//! Which entries of the planner's lists are wanted.

use std::collections::BTreeMap;

use servo_mesh::Error;
use servo_mesh::filter::{self, Operator, Term, bad_filter};
use servo_proto::v1::{AssetDefinition, Deployment, DynamicPartition};

/// The terms of a filter, each read before the first entry is looked at.
#[derive(Debug)]
pub(super) struct Wanted(Vec<(Term, Value)>);

#[derive(Debug)]
enum Value {
    Text,
    Flag(bool),
    /// In nanoseconds since 1970.
    Time(i128),
}

impl Wanted {
    pub(super) fn assets(filter: &str) -> Result<Wanted, Error> {
        Wanted::read(
            filter,
            &["key", "namespace", "tags.*", "owners", "pool", "source"],
        )
    }

    pub(super) fn deployments(filter: &str) -> Result<Wanted, Error> {
        Wanted::read(filter, &["code_version", "deploy_time", "labels.*"])
    }

    pub(super) fn values(filter: &str) -> Result<Wanted, Error> {
        Wanted::read(filter, &["value", "create_time"])
    }

    fn read(filter: &str, fields: &[&str]) -> Result<Wanted, Error> {
        let valued = |term: Term| value(&term).map(|value| (term, value));
        filter::parse(filter, fields)?
            .into_iter()
            .map(valued)
            .collect::<Result<_, _>>()
            .map(Wanted)
    }

    pub(super) fn fits_asset(&self, asset: &AssetDefinition) -> bool {
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

    pub(super) fn fits_deployment(&self, deployment: &Deployment) -> bool {
        self.all(|term, value| match (term.field.as_str(), value) {
            ("code_version", _) => holds(term, &deployment.code_version),
            ("labels", _) => holds(term, entry(&deployment.labels, term)),
            (_, Value::Time(than)) => is_at(term, deployment.deploy_time, *than),
            _ => false,
        })
    }

    pub(super) fn fits_value(&self, partition: &DynamicPartition) -> bool {
        self.all(|term, value| match value {
            Value::Time(than) => is_at(term, partition.create_time, *than),
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
        // A list is asked for an entry.
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

/// The entry of a map that the term names; one that is not there is empty.
fn entry<'a>(map: &'a BTreeMap<String, String>, term: &Term) -> &'a str {
    term.key
        .as_ref()
        .and_then(|key| map.get(key))
        .map_or("", String::as_str)
}

fn is_at(term: &Term, time: Option<prost_types::Timestamp>, than: i128) -> bool {
    let nanos = |time: prost_types::Timestamp| {
        i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
    };
    time.is_some_and(|time| term.operator.holds(nanos(time), than))
}

/// Rows that one page looks at; a page that found little says where to go on.
const ROWS_PER_PAGE_MAX: usize = 2_000;

/// A page of what fits, filled by stretches of rows that are each named by their place.
pub(super) struct Page<T> {
    size: usize,
    found: Vec<T>,
    looked: usize,
    /// Where the next stretch begins.
    pub(super) from: i64,
    more: bool,
}

impl<T> Page<T> {
    pub(super) fn new(size: usize, from: i64) -> Page<T> {
        Page {
            size,
            found: Vec::new(),
            looked: 0,
            from,
            more: true,
        }
    }

    pub(super) fn wants_more(&self) -> bool {
        self.more && self.found.len() < self.size && self.looked < ROWS_PER_PAGE_MAX
    }

    /// How many rows to read: one more than are looked at tells whether others follow.
    pub(super) fn stretch(&self) -> i64 {
        self.size as i64 + 1
    }

    pub(super) fn add(&mut self, rows: Vec<(i64, T)>, fits: impl Fn(&T) -> bool) {
        let count = rows.len();
        for (index, (place, row)) in rows.into_iter().take(self.size).enumerate() {
            self.from = place;
            self.looked += 1;
            self.more = index + 1 < count;
            self.found.extend(fits(&row).then_some(row));
            if self.found.len() == self.size {
                return;
            }
        }
        self.more = count > self.size;
    }

    /// What was found, and where the next page begins.
    pub(super) fn end(self) -> (Vec<T>, Option<i64>) {
        (self.found, self.more.then_some(self.from))
    }
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
    fn an_asset_fits_when_every_term_holds() {
        let fits = |filter: &str| Wanted::assets(filter).unwrap().fits_asset(&asset());
        assert!(fits(""));
        assert!(fits(
            "key = sales/orders AND namespace = sales AND tags.tier = gold AND owners : bob"
        ));
        assert!(fits("pool = db AND source = false AND tags.other != x"));
        assert!(!fits("namespace = raw") && !fits("owners : eve") && !fits("source = true"));
    }

    #[test]
    fn times_are_ordered() {
        let create_time = Some(prost_types::Timestamp {
            seconds: 1_767_225_600,
            nanos: 0,
        });
        let value = DynamicPartition {
            value: "de".to_owned(),
            create_time,
        };
        let fits = |filter: &str| Wanted::values(filter).unwrap().fits_value(&value);
        assert!(fits("value = de AND create_time >= 2026-01-01T00:00:00Z"));
        assert!(!fits("create_time < 2026-01-01T00:00:00Z") && !fits("value != de"));
        let deployment = Deployment {
            deploy_time: create_time,
            ..Deployment::default()
        };
        let fits = |filter: &str| {
            Wanted::deployments(filter)
                .unwrap()
                .fits_deployment(&deployment)
        };
        assert!(fits(
            "deploy_time <= 2026-01-01T00:00:00Z AND labels.team != core"
        ));
        assert!(!fits("code_version = 7"));
    }

    #[test]
    fn pages_hold_what_fits_and_miss_nothing() {
        let read = |from: i64, count: i64| {
            (from + 1..=(from + count).min(10))
                .map(|n| (n, n))
                .collect()
        };
        let mut seen = Vec::new();
        let mut from = Some(0);
        while let Some(begin) = from {
            let mut page = Page::new(2, begin);
            while page.wants_more() {
                let rows = read(page.from, page.stretch());
                page.add(rows, |n| n % 3 == 0 || *n == 10);
            }
            let (found, next) = page.end();
            assert!(found.len() <= 2);
            seen.extend(found);
            from = next;
        }
        assert_eq!(seen, [3, 6, 9, 10]);
    }

    #[test]
    fn a_fault_says_what_is_meant() {
        let fault = |filter: &str| Wanted::assets(filter).unwrap_err().to_string();
        assert!(fault("owner = me").contains("`owner` cannot be filtered by"));
        assert!(fault("owners = me").contains("with `:`"));
        assert!(fault("source = maybe").contains("neither true nor false"));
        assert!(fault("pool > a").contains("takes = and != only"));
    }
}
