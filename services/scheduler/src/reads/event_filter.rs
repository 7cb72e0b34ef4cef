//! The filter of ListEvents.

use servo_mesh::Error;
use servo_mesh::filter::{Field, Filter, bad_filter};
use servo_model::{EventType, RunId, ShardId, Stream};
use uuid::Uuid;

use crate::store::events::EventFilter;

static FIELDS: [Field<()>; 5] = [
    Field::exact("stream"),
    Field::exact("type"),
    Field::exact("correlation_id"),
    Field::exact("source"),
    Field::range("record_time"),
];

#[derive(Debug)]
pub(crate) struct EventQuery {
    pub(crate) filter: EventFilter,
    run: Option<RunId>,
}

impl EventQuery {
    pub(crate) fn parse(filter: &str) -> Result<EventQuery, Error> {
        let terms = Filter::parse(filter, &FIELDS)?;
        let correlation = terms.exact("correlation_id");
        let filter = EventFilter {
            stream: terms
                .exact("stream")
                .map_or(Ok(Stream::Execution), stream)?,
            kind: terms.exact("type").map(event_type).transpose()?,
            correlation: correlation.map(correlation_id).transpose()?,
            source: terms.exact("source").map(str::to_owned),
            recorded: terms.range("record_time"),
        };
        Ok(EventQuery {
            filter,
            run: correlation.and_then(|id| id.parse().ok()),
        })
    }

    /// The shards to search; a run is in one shard.
    pub(crate) fn shards(&self) -> Vec<ShardId> {
        match (self.run, self.filter.stream) {
            (Some(run), Stream::Execution) => vec![run.shard()],
            (_, stream) => stream.shards().collect(),
        }
    }
}

fn stream(name: &str) -> Result<Stream, Error> {
    let known = Stream::ALL.into_iter().find(|stream| stream.name() == name);
    known.ok_or_else(|| {
        let names = Stream::ALL.map(Stream::name).join(", ");
        bad_filter(&format!("`{name}` is not a stream; use one of {names}"))
    })
}

fn event_type(name: &str) -> Result<EventType, Error> {
    let known = EventType::ALL
        .iter()
        .copied()
        .find(|kind| kind.name() == name);
    let sentence = "is not an event type; write it like TaskFinished";
    known.ok_or_else(|| bad_filter(&format!("`{name}` {sentence}")))
}

fn correlation_id(text: &str) -> Result<Uuid, Error> {
    let run = text.parse::<RunId>().ok();
    let ulid = || ulid::Ulid::from_string(text).ok();
    run.map(|run| Uuid::from_bytes(*run.as_bytes()))
        .or_else(|| ulid().map(|id| Uuid::from_u128(id.into())))
        .ok_or_else(|| {
            let sentence = "is not the id of a run, backfill, schedule or sensor";
            bad_filter(&format!("correlation_id `{text}` {sentence}"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_searched_in_its_own_shard() {
        let run = RunId::from_bytes([7; 16]);
        let query =
            EventQuery::parse(&format!("correlation_id = {run} AND type = TaskFinished")).unwrap();
        assert_eq!(query.shards(), vec![run.shard()]);
        assert_eq!(query.filter.kind, Some(EventType::TaskFinished));
        assert_eq!(EventQuery::parse("").unwrap().shards().len(), 64);
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
