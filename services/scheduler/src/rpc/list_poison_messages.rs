//! ListPoisonMessages: bus messages that their consumer could not process.

use servo_bus::Topic;
use servo_mesh::{Error, filter};
use servo_proto::v1 as pb;

use super::Scheduler;
use super::support::{errors, pages};
use crate::reads::filter_terms::{self, NEWEST};
use crate::store::poison_messages::{self, PoisonFilter, PoisonMessage};
use crate::wire;

const FIELDS: [&str; 4] = ["consumer", "topic", "tenant", "fail_time"];
const PAYLOAD_BYTES_MAX: usize = 4 * 1024;

pub(super) async fn list_poison_messages(
    scheduler: &Scheduler,
    request: pb::ListPoisonMessagesRequest,
) -> Result<pb::ListPoisonMessagesResponse, Error> {
    let size = pages::size(request.page_size)?;
    let terms = filter::parse(&request.filter, &FIELDS)?;
    let list = ["poison", &request.filter];
    let cursor = scheduler.tokens.read(&list, &request.page_token)?;
    let (at, after) = cursor
        .as_deref()
        .and_then(|cursor| cursor.split_once(' '))
        .unwrap_or_default();
    let filter = PoisonFilter {
        subscription: filter_terms::is(&terms, "consumer")?,
        topic: topic(filter_terms::is(&terms, "topic")?.as_deref())?,
        tenant: filter_terms::is(&terms, "tenant")?,
        failed: filter_terms::within(&terms, "fail_time")?,
    };
    let loops = scheduler.reads.store.loops();
    let before = (at.parse().unwrap_or(NEWEST), after);
    let mut rows = poison_messages::list(loops, filter, before, size + 1)
        .await
        .map_err(errors::store)?;
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows
        .last()
        .filter(|_| more)
        .map(|row| format!("{} {}", row.failed_at.unix_us(), row.id()));
    Ok(pb::ListPoisonMessagesResponse {
        messages: rows.iter().map(to_proto).collect(),
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

fn to_proto(row: &PoisonMessage) -> pb::PoisonMessage {
    pb::PoisonMessage {
        message_id: row.id(),
        consumer: row.subscription.clone(),
        topic: Topic::from_code(row.topic)
            .map_or("", Topic::name)
            .to_owned(),
        tenant: row.tenant.clone(),
        error: row.error.clone(),
        tries: row.tries.unsigned_abs(),
        fail_time: Some(wire::timestamp(row.failed_at.unix_us())),
        payload: row.payload[..row.payload.len().min(PAYLOAD_BYTES_MAX)]
            .to_vec()
            .into(),
    }
}

fn topic(name: Option<&str>) -> Result<Option<i16>, Error> {
    let Some(name) = name else { return Ok(None) };
    let known = Topic::ALL.into_iter().find(|topic| topic.name() == name);
    known
        .map(|topic| Some(topic.code()))
        .ok_or_else(|| filter::bad_filter(&format!("there is no topic `{name}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_time_terms_are_combined() {
        let within = |filter: &str| {
            let (from, until) =
                filter_terms::within(&filter::parse(filter, &FIELDS).unwrap(), "fail_time")?;
            Ok::<_, Error>((from.unix_us(), until.unix_us()))
        };
        let second = 1_767_225_600_000_000;
        assert_eq!(within("tenant = acme").unwrap(), (0, NEWEST));
        let day = "fail_time >= 2026-01-01T00:00:00Z AND fail_time < 2026-01-01T00:00:01Z";
        assert_eq!(within(day).unwrap(), (second, second + 1_000_000));
        let edges = "fail_time > 2026-01-01T00:00:00Z AND fail_time <= 2026-01-01T00:00:01Z";
        assert_eq!(within(edges).unwrap(), (second + 1, second + 1_000_001));
        assert!(
            within("fail_time = 2026-01-01T00:00:00Z")
                .unwrap_err()
                .to_string()
                .contains("<, <=, > and >=")
        );
    }
}
