//! ListPoisonMessages: bus messages that their consumer could not process.

use servo_bus::Topic;
use servo_mesh::Error;
use servo_mesh::filter::{Field, Filter, TimeRange, bad_filter};
use servo_proto::{proto_time, v1 as pb};

use super::Scheduler;
use super::support::{errors, pages};
use crate::store::poison_messages::{self, PoisonFilter, PoisonMessage};

static FIELDS: [Field<PoisonMessage>; 4] = [
    Field::exact("consumer"),
    Field::exact("topic"),
    Field::exact("tenant"),
    Field::range("fail_time"),
];
const PAYLOAD_BYTES_MAX: usize = 4 * 1024;

pub(super) async fn list_poison_messages(
    scheduler: &Scheduler,
    request: pb::ListPoisonMessagesRequest,
) -> Result<pb::ListPoisonMessagesResponse, Error> {
    let size = pages::size(request.page_size)?;
    let terms = Filter::parse(&request.filter, &FIELDS)?;
    let list = ["poison", &request.filter];
    let cursor = scheduler.tokens.read(&list, &request.page_token)?;
    let (at, after) = cursor
        .as_deref()
        .and_then(|cursor| cursor.split_once(' '))
        .unwrap_or_default();
    let filter = PoisonFilter {
        subscription: terms.exact("consumer"),
        topic: topic(terms.exact("topic"))?,
        tenant: terms.exact("tenant"),
        failed: terms.range("fail_time"),
    };
    let loops = scheduler.reads.store.loops();
    let before = (
        pages::cursor_time(at).unwrap_or(TimeRange::ALL.until),
        after,
    );
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
        tenant: row.tenant.to_string(),
        error: row.error.clone(),
        tries: row.tries.unsigned_abs(),
        fail_time: Some(proto_time(row.failed_at)),
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
        .ok_or_else(|| bad_filter(&format!("there is no topic `{name}`")))
}
