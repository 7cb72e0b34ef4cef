//! ListPoisonMessages and ReplayMessage: what consumers of the bus could not digest, and giving it to them again.

use servo_bus::{Subscription, Topic, Version};
use servo_mesh::filter;
use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_proto::v1;
use servo_store::{Timestamp, query};

use super::{Scheduler, answer};
use crate::wire;

const FIELDS: [&str; 4] = ["consumer", "topic", "tenant", "fail_time"];
const PAYLOAD_BYTES_MAX: usize = 4 * 1024;

/// subscription, topic, shard, position, place, tenant, error, tries, failed at, payload
type Row = (String, i16, i16, i64, i32, String, String, i32, Timestamp, Vec<u8>);

pub(super) async fn list_poison_messages(
    scheduler: &Scheduler,
    asked: v1::ListPoisonMessagesRequest,
) -> Result<v1::ListPoisonMessagesResponse, Error> {
    let size = page_size(asked.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let wanted = filter::parse(&asked.filter, &FIELDS)?;
    let (from, until) = answer::within(&wanted, "fail_time")?;
    let list = ["poison", &asked.filter];
    let cursor = scheduler.tokens.read(&list, &asked.page_token)?;
    let (at, after) = cursor.as_deref().and_then(|cursor| cursor.split_once(' ')).unwrap_or_default();
    let select = query(include_str!("../store/list_poison.sql"))
        .bind(Timestamp::from_unix_us(at.parse().unwrap_or(answer::NEWEST)))
        .bind(after)
        .bind(answer::is(&wanted, "consumer")?)
        .bind(topic(answer::is(&wanted, "topic")?.as_deref())?)
        .bind(answer::is(&wanted, "tenant")?)
        .bind(size as i64 + 1)
        .bind(from)
        .bind(until);
    let mut rows: Vec<Row> = scheduler.store.loops().all(select).await.map_err(answer::store)?;
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows.last().filter(|_| more).map(|row| format!("{} {}", row.8.unix_us(), id(row)));
    Ok(v1::ListPoisonMessagesResponse {
        messages: rows.iter().map(show).collect(),
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

pub(super) async fn replay_message(
    scheduler: &Scheduler,
    asked: v1::ReplayMessageRequest,
) -> Result<v1::ReplayMessageResponse, Error> {
    let unknown = || {
        let told =
            format!("no message `{}` is set aside; ListPoisonMessages has their ids", asked.message_id);
        Error::new(Reason::MessageNotFound, told)
    };
    let (of, version) = parse(&asked.message_id).ok_or_else(unknown)?;
    let loops = scheduler.store.loops();
    match servo_bus::replay(loops, &of, version).await.map_err(answer::store)? {
        true => Ok(v1::ReplayMessageResponse::default()),
        false => Err(unknown()),
    }
}

fn id(row: &Row) -> String {
    format!("{}:{}:{}:{}:{}", row.0, row.1, row.2, row.3, row.4)
}

fn parse(id: &str) -> Option<(Subscription, Version)> {
    let parts: Vec<&str> = id.split(':').collect();
    let [name, topic, shard, position, place] = parts[..] else { return None };
    let topic = Topic::from_code(topic.parse().ok()?)?;
    let version =
        Version { shard: shard.parse().ok()?, position: position.parse().ok()?, place: place.parse().ok()? };
    Some((Subscription { name: name.to_owned(), topic }, version))
}

fn show(row: &Row) -> v1::PoisonMessage {
    let (consumer, topic, .., tenant, error, tries, failed_at, payload) = row;
    v1::PoisonMessage {
        message_id: id(row),
        consumer: consumer.clone(),
        topic: Topic::from_code(*topic).map_or("", Topic::name).to_owned(),
        tenant: tenant.clone(),
        error: error.clone(),
        tries: tries.unsigned_abs(),
        fail_time: Some(wire::timestamp(failed_at.unix_us())),
        payload: payload[..payload.len().min(PAYLOAD_BYTES_MAX)].to_vec().into(),
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
    fn fail_times_narrow_each_other_down() {
        let within = |filter: &str| {
            let (from, until) = answer::within(&filter::parse(filter, &FIELDS).unwrap(), "fail_time")?;
            Ok::<_, Error>((from.unix_us(), until.unix_us()))
        };
        let second = 1_767_225_600_000_000;
        assert_eq!(within("tenant = acme").unwrap(), (0, answer::NEWEST));
        let day = "fail_time >= 2026-01-01T00:00:00Z AND fail_time < 2026-01-01T00:00:01Z";
        assert_eq!(within(day).unwrap(), (second, second + 1_000_000));
        let edges = "fail_time > 2026-01-01T00:00:00Z AND fail_time <= 2026-01-01T00:00:01Z";
        assert_eq!(within(edges).unwrap(), (second + 1, second + 1_000_001));
        assert!(
            within("fail_time = 2026-01-01T00:00:00Z").unwrap_err().to_string().contains("<, <=, > and >=")
        );
    }

    #[test]
    fn an_id_names_subscription_and_place() {
        let (of, version) = parse("quota.usage:1:7:42:0").unwrap();
        assert_eq!((of.name.as_str(), of.topic), ("quota.usage", Topic::Runs));
        assert_eq!(version, Version { shard: 7, position: 42, place: 0 });
        for bad in ["", "x", "q:9:7:42:0", "q:1:7:42", "q:1:7:42:0:1", "q:1:a:42:0"] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }
}
