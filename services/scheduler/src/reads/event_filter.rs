//! The filter of ListEvents.

use servo_mesh::Error;
use servo_mesh::filter::{self, Operator, Term, bad_filter};
use servo_model::{EventType, RunId, Stream};
use uuid::Uuid;

use crate::store::events::EventFilter;

const FIELDS: [&str; 5] = ["stream", "type", "correlation_id", "source", "record_time"];

#[derive(Debug)]
pub(crate) struct EventQuery {
    pub(crate) filter: EventFilter,
    run: Option<RunId>,
}

impl EventQuery {
    pub(crate) fn parse(filter: &str) -> Result<EventQuery, Error> {
        let mut query = EventQuery {
            filter: EventFilter {
                stream: Stream::Execution,
                kind: None,
                correlation: None,
                source: None,
                after: None,
                before: None,
            },
            run: None,
        };
        for term in filter::parse(filter, &FIELDS)? {
            query.add(&term)?;
        }
        Ok(query)
    }

    fn add(&mut self, term: &Term) -> Result<(), Error> {
        let value = term.value.as_str();
        if term.field == "record_time" {
            return self.add_time(term);
        }
        if term.operator != Operator::Is {
            return Err(bad_filter(&format!("`{}` takes = only", term.field)));
        }
        match term.field.as_str() {
            "stream" => {
                let known = Stream::ALL
                    .into_iter()
                    .find(|stream| stream.name() == value);
                let names = Stream::ALL.map(Stream::name).join(", ");
                self.filter.stream = known.ok_or_else(|| {
                    bad_filter(&format!("`{value}` is not a stream; use one of {names}"))
                })?;
            }
            "type" => {
                let known = EventType::ALL
                    .iter()
                    .copied()
                    .find(|kind| kind.name() == value);
                self.filter.kind = Some(known.ok_or_else(|| {
                    bad_filter(&format!(
                        "`{value}` is not an event type; write it like TaskFinished"
                    ))
                })?);
            }
            "correlation_id" => self.add_correlation(value)?,
            _ => self.filter.source = Some(value.to_owned()),
        }
        Ok(())
    }

    fn add_correlation(&mut self, value: &str) -> Result<(), Error> {
        self.run = value.parse().ok();
        let ulid = || {
            ulid::Ulid::from_string(value)
                .ok()
                .map(|id| Uuid::from_u128(id.into()))
        };
        let id = self
            .run
            .map(|run| Uuid::from_bytes(*run.as_bytes()))
            .or_else(ulid);
        let fault = || {
            bad_filter(&format!(
                "correlation_id `{value}` is not the id of a run, backfill, schedule or sensor"
            ))
        };
        self.filter.correlation = Some(id.ok_or_else(fault)?);
        Ok(())
    }

    fn add_time(&mut self, term: &Term) -> Result<(), Error> {
        let at = i64::try_from(term.time()? / 1_000).unwrap_or(i64::MAX);
        match term.operator {
            Operator::Greater => self.filter.after = Some(at + 1),
            Operator::AtLeast => self.filter.after = Some(at),
            Operator::Less => self.filter.before = Some(at - 1),
            Operator::AtMost => self.filter.before = Some(at),
            _ => return Err(bad_filter("`record_time` takes <, <=, > and >=")),
        }
        Ok(())
    }

    /// The shards to search; a run is in one shard.
    pub(crate) fn shards(&self) -> std::ops::Range<i16> {
        match (self.run, self.filter.stream) {
            (Some(run), Stream::Execution) => run.shard()..run.shard() + 1,
            (_, stream) => 0..stream.shards(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_searched_in_its_own_shard() {
        let run = RunId::from_bytes([7; 16]);
        let query =
            EventQuery::parse(&format!("correlation_id = {run} AND type = TaskFinished")).unwrap();
        assert_eq!(query.shards(), run.shard()..run.shard() + 1);
        assert_eq!(query.filter.kind, Some(EventType::TaskFinished));
        assert_eq!(EventQuery::parse("").unwrap().shards(), 0..64);
    }

    #[test]
    fn errors_name_the_faulty_term() {
        let fault = |filter: &str| EventQuery::parse(filter).unwrap_err().to_string();
        assert!(fault("type = Finished").contains("`Finished` is not an event type"));
        assert!(fault("stream = bus").contains("use one of execution"));
        assert!(fault("source != callback").contains("`source` takes = only"));
        assert!(fault("record_time = 2026-01-01T00:00:00Z").contains("takes <, <=, > and >="));
        assert!(fault("correlation_id = 7").contains("is not the id of a run"));
    }
}
