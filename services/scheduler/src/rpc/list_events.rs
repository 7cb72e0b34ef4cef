//! ListEvents: what the ledger holds about a workspace, shard by shard.

use std::collections::HashMap;
use std::sync::Arc;

use servo_mesh::filter::{self, Operator, Term, bad_filter};
use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_model::{EventType, RunId, Stream};
use servo_proto::v1 as pb;
use servo_store::{Event, Timestamp, query};
use uuid::Uuid;

use super::{Scheduler, answer};
use crate::core::Plan;
use crate::store::runs_by_id;
use crate::wire;

const FIELDS: [&str; 5] = ["stream", "type", "correlation_id", "source", "record_time"];

/// What a page looks at besides what it shows: other workspaces' events lie between.
const LOOKED_AT_MAX: i64 = 20_000;

pub(super) async fn list_events(
    scheduler: &Scheduler,
    request: pb::ListEventsRequest,
) -> Result<pb::ListEventsResponse, Error> {
    let wanted = Wanted::parse(&request.filter)?;
    let size = page_size(request.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let list = [
        "events",
        &request.tenant,
        &request.workspace,
        &request.filter,
    ];
    let mut place = match scheduler.tokens.read(&list, &request.page_token)? {
        None => Place {
            shard: wanted.shards().start,
            position: 0,
        },
        Some(cursor) => Place::parse(&cursor)?,
    };
    let mut tx = scheduler
        .store
        .requests()
        .begin(&request.tenant)
        .await
        .map_err(answer::store)?;
    let mut found: Vec<(i16, Event)> = Vec::new();
    let mut budget = LOOKED_AT_MAX;
    while wanted.shards().contains(&place.shard) && found.len() < size && budget > 0 {
        let (head,): (i64,) = tx
            .optional(
                query(include_str!("../store/head.sql"))
                    .bind(wanted.stream.code())
                    .bind(place.shard),
            )
            .await
            .map_err(answer::store)?
            .unwrap_or_default();
        let until = head.min(place.position.saturating_add(budget));
        let select = query(include_str!("../store/list_events.sql"))
            .bind(wanted.stream.code())
            .bind(place.shard)
            .bind(place.position)
            .bind(until)
            .bind(&request.workspace)
            .bind(wanted.kind.map(EventType::code))
            .bind(wanted.correlation)
            .bind(wanted.source.as_deref())
            .bind(wanted.after.map(Timestamp::from_unix_us))
            .bind(wanted.before.map(Timestamp::from_unix_us))
            .bind((size - found.len()) as i64);
        let events: Vec<Event> = tx.all(select).await.map_err(answer::store)?;
        let full = found.len() + events.len() >= size;
        let reached = events
            .last()
            .filter(|_| full)
            .map_or(until, |last| last.position);
        budget -= reached - place.position;
        found.extend(events.into_iter().map(|event| (place.shard, event)));
        place = match reached >= head {
            true => Place {
                shard: place.shard + 1,
                position: 0,
            },
            false => Place {
                position: reached,
                ..place
            },
        };
    }
    tx.commit().await.map_err(answer::store)?;
    let plans_by_run = plans_by_run(scheduler, &request.tenant, &found).await?;
    let show = |(shard, event): &(i16, Event)| {
        let plan = event.correlation_id.and_then(|run| plans_by_run.get(&run));
        wire::event_record(wanted.stream, *shard, event, plan.map(Arc::as_ref))
    };
    let more = wanted.shards().contains(&place.shard);
    Ok(pb::ListEventsResponse {
        events: found.iter().map(show).collect(),
        next_page_token: if more {
            scheduler.tokens.write(&list, &place.to_string())
        } else {
            String::new()
        },
    })
}

/// The plans of the runs these events are about, through which tasks get their names.
async fn plans_by_run(
    scheduler: &Scheduler,
    tenant: &str,
    found: &[(i16, Event)],
) -> Result<HashMap<Uuid, Arc<Plan>>, Error> {
    let mut runs: Vec<(&str, Uuid)> = found
        .iter()
        .filter_map(|(_, event)| Some((tenant, event.correlation_id?)))
        .collect();
    runs.sort_unstable();
    runs.dedup();
    let mut plans_by_run = HashMap::new();
    for run in runs_by_id(scheduler.store.loops(), &runs)
        .await
        .map_err(answer::store)?
    {
        let plan_id = run
            .plan_id
            .as_deref()
            .and_then(|id| <[u8; 32]>::try_from(id).ok());
        let Some(plan_id) = plan_id else { continue };
        let plan = scheduler
            .plans
            .find(scheduler.store.loops(), tenant, &run.workspace, plan_id)
            .await;
        plans_by_run.extend(plan.map_err(answer::store)?.map(|plan| (run.run_id, plan)));
    }
    Ok(plans_by_run)
}

/// Where a page begins: behind this.
#[derive(Debug, Clone, Copy)]
struct Place {
    shard: i16,
    position: i64,
}

impl Place {
    fn parse(cursor: &str) -> Result<Place, Error> {
        let parsed = cursor.split_once('.').and_then(|(shard, position)| {
            Some(Place {
                shard: shard.parse().ok()?,
                position: position.parse().ok()?,
            })
        });
        parsed.ok_or_else(|| {
            Error::new(
                Reason::InvalidPageToken,
                "page_token is not one that ListEvents gave; begin anew",
            )
        })
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.shard, self.position)
    }
}

#[derive(Debug)]
struct Wanted {
    stream: Stream,
    kind: Option<EventType>,
    correlation: Option<Uuid>,
    run: Option<RunId>,
    source: Option<String>,
    /// Microseconds, both included.
    after: Option<i64>,
    before: Option<i64>,
}

impl Wanted {
    fn parse(filter: &str) -> Result<Wanted, Error> {
        let mut wanted = Wanted {
            stream: Stream::Execution,
            kind: None,
            correlation: None,
            run: None,
            source: None,
            after: None,
            before: None,
        };
        for term in filter::parse(filter, &FIELDS)? {
            wanted.add(&term)?;
        }
        Ok(wanted)
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
                self.stream = known.ok_or_else(|| {
                    bad_filter(&format!("`{value}` is no stream; there are {names}"))
                })?;
            }
            "type" => {
                let known = EventType::ALL
                    .iter()
                    .copied()
                    .find(|kind| kind.name() == value);
                self.kind = Some(known.ok_or_else(|| {
                    bad_filter(&format!(
                        "`{value}` is no type of event; write it like TaskFinished"
                    ))
                })?);
            }
            "correlation_id" => self.add_correlation(value)?,
            _ => self.source = Some(value.to_owned()),
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
                "correlation_id `{value}` is no id of a run, backfill, schedule or sensor"
            ))
        };
        self.correlation = Some(id.ok_or_else(fault)?);
        Ok(())
    }

    fn add_time(&mut self, term: &Term) -> Result<(), Error> {
        let at = i64::try_from(term.time()? / 1_000).unwrap_or(i64::MAX);
        match term.operator {
            Operator::Greater => self.after = Some(at + 1),
            Operator::AtLeast => self.after = Some(at),
            Operator::Less => self.before = Some(at - 1),
            Operator::AtMost => self.before = Some(at),
            _ => return Err(bad_filter("`record_time` takes <, <=, > and >=")),
        }
        Ok(())
    }

    /// A run lives in one shard.
    fn shards(&self) -> std::ops::Range<i16> {
        match (self.run, self.stream) {
            (Some(run), Stream::Execution) => run.shard()..run.shard() + 1,
            (_, stream) => 0..stream.shards(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_looked_for_in_its_own_shard() {
        let run = RunId::from_bytes([7; 16]);
        let wanted =
            Wanted::parse(&format!("correlation_id = {run} AND type = TaskFinished")).unwrap();
        assert_eq!(wanted.shards(), run.shard()..run.shard() + 1);
        assert_eq!(wanted.kind, Some(EventType::TaskFinished));
        assert_eq!(Wanted::parse("").unwrap().shards(), 0..64);
    }

    #[test]
    fn faults_are_named() {
        let fault = |filter: &str| Wanted::parse(filter).unwrap_err().to_string();
        assert!(fault("type = Finished").contains("`Finished` is no type of event"));
        assert!(fault("stream = bus").contains("there are execution"));
        assert!(fault("source != callback").contains("`source` takes = only"));
        assert!(fault("record_time = 2026-01-01T00:00:00Z").contains("takes <, <=, > and >="));
        assert!(fault("correlation_id = 7").contains("is no id of a run"));
    }
}
