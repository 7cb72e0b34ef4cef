//! ListPoisonMessages and ReplayMessage: what consumers of the bus could not digest, and giving it to them again.

use prost::Message;
use servo_bus::{Subscription, Topic, Version};
use servo_mesh::filter;
use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_model::Digest;
use servo_proto::v1 as pb;
use servo_store::{LoopStore, Timestamp, Tx, query};

use super::{Scheduler, answer};
use crate::store::requests::{self, Seen};
use crate::wire;

const FIELDS: [&str; 4] = ["consumer", "topic", "tenant", "fail_time"];
const PAYLOAD_BYTES_MAX: usize = 4 * 1024;

/// subscription, topic, shard, position, place, tenant, error, tries, failed at, payload
type Row = (
    String,
    i16,
    i16,
    i64,
    i32,
    String,
    String,
    i32,
    Timestamp,
    Vec<u8>,
);

pub(super) async fn list_poison_messages(
    scheduler: &Scheduler,
    request: pb::ListPoisonMessagesRequest,
) -> Result<pb::ListPoisonMessagesResponse, Error> {
    let size = page_size(request.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let wanted = filter::parse(&request.filter, &FIELDS)?;
    let (from, until) = answer::within(&wanted, "fail_time")?;
    let list = ["poison", &request.filter];
    let cursor = scheduler.tokens.read(&list, &request.page_token)?;
    let (at, after) = cursor
        .as_deref()
        .and_then(|cursor| cursor.split_once(' '))
        .unwrap_or_default();
    let select = query(include_str!("../store/list_poison.sql"))
        .bind(Timestamp::from_unix_us(
            at.parse().unwrap_or(answer::NEWEST),
        ))
        .bind(after)
        .bind(answer::is(&wanted, "consumer")?)
        .bind(topic(answer::is(&wanted, "topic")?.as_deref())?)
        .bind(answer::is(&wanted, "tenant")?)
        .bind(size as i64 + 1)
        .bind(from)
        .bind(until);
    let mut rows: Vec<Row> = scheduler
        .store
        .loops()
        .all(select)
        .await
        .map_err(answer::store)?;
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows
        .last()
        .filter(|_| more)
        .map(|row| format!("{} {}", row.8.unix_us(), id(row)));
    Ok(pb::ListPoisonMessagesResponse {
        messages: rows.iter().map(show).collect(),
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

pub(super) async fn replay_message(
    loops: &LoopStore,
    request: pb::ReplayMessageRequest,
) -> Result<pb::ReplayMessageResponse, Error> {
    answer::request_id(&request.request_id)?;
    answer::comment(&request.comment)?;
    let unknown = || {
        let message = format!(
            "no message `{}` is set aside; ListPoisonMessages has their ids",
            request.message_id
        );
        Error::new(Reason::MessageNotFound, message)
    };
    let mut tx = loops.begin().await.map_err(answer::store)?;
    if was_asked_before(&mut tx, &request).await? {
        return Ok(pb::ReplayMessageResponse::default());
    }
    let (of, version) = parse(&request.message_id).ok_or_else(unknown)?;
    // What is refused is not noted: it may be asked again once the message is there.
    if !servo_bus::replay(&mut tx, &of, version)
        .await
        .map_err(answer::store)?
    {
        return Err(unknown());
    }
    tx.commit().await.map_err(answer::store)?;
    servo_bus::ring(loops, of.topic)
        .await
        .map_err(answer::store)?;
    Ok(pb::ReplayMessageResponse::default())
}

async fn was_asked_before(tx: &mut Tx, request: &pb::ReplayMessageRequest) -> Result<bool, Error> {
    if request.request_id.is_empty() {
        return Ok(false);
    }
    let body = Digest::of([b"ReplayMessage".as_slice(), &request.encode_to_vec()].concat());
    match requests::note(tx, &request.request_id, &body)
        .await
        .map_err(answer::store)?
    {
        Seen::Never => Ok(false),
        Seen::Before => Ok(true),
        Seen::Otherwise => {
            let message = "request_id was used before with another body; choose a new one";
            Err(Error::new(Reason::RequestIdReused, message))
        }
    }
}

fn id(row: &Row) -> String {
    format!("{}:{}:{}:{}:{}", row.0, row.1, row.2, row.3, row.4)
}

fn parse(id: &str) -> Option<(Subscription, Version)> {
    let parts: Vec<&str> = id.split(':').collect();
    let [name, topic, shard, position, place] = parts[..] else {
        return None;
    };
    let topic = Topic::from_code(topic.parse().ok()?)?;
    let version = Version {
        shard: shard.parse().ok()?,
        position: position.parse().ok()?,
        place: place.parse().ok()?,
    };
    Some((
        Subscription {
            name: name.to_owned(),
            topic,
        },
        version,
    ))
}

fn show(row: &Row) -> pb::PoisonMessage {
    let (consumer, topic, .., tenant, error, tries, failed_at, payload) = row;
    pb::PoisonMessage {
        message_id: id(row),
        consumer: consumer.clone(),
        topic: Topic::from_code(*topic).map_or("", Topic::name).to_owned(),
        tenant: tenant.clone(),
        error: error.clone(),
        tries: tries.unsigned_abs(),
        fail_time: Some(wire::timestamp(failed_at.unix_us())),
        payload: payload[..payload.len().min(PAYLOAD_BYTES_MAX)]
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
    use servo_local::TestDatabase;
    use servo_model::Service;
    use servo_store::{DatabaseConfig, Store};

    use super::*;

    const MESSAGE: &str = "quota.test:1:7:42:0";

    /// A message of which its consumer could make nothing at its only try.
    struct World {
        scheduler: Store,
        quota: Store,
    }

    impl World {
        async fn start(database: &TestDatabase) -> World {
            let config =
                DatabaseConfig::new(database.service_url(), database.password().to_owned());
            let connect = |service| Store::connect(service, &config).unwrap();
            let world = World {
                scheduler: connect(Service::Scheduler),
                quota: connect(Service::Quota),
            };
            world
                .does(
                    &world.quota,
                    "SELECT bus.subscribe('quota.test', 1::smallint, 64::smallint)",
                )
                .await;
            let publish = "SELECT bus.publish(1::smallint, '{7}', '{42}', ARRAY[gen_random_uuid()], '{acme}', '{main}', \
                               ARRAY['garbage'::bytea])";
            world.does(&world.scheduler, publish).await;
            world.set_aside().await;
            world
        }

        async fn does(&self, store: &Store, statement: &'static str) {
            store.loops().execute(query(statement)).await.unwrap();
        }

        async fn set_aside(&self) {
            let claim =
                "SELECT bus.claim('quota.test', 1::smallint, 'reader', interval '1 minute', 10)";
            self.does(&self.quota, claim).await;
            let settle = "SELECT bus.settle('quota.test', 1::smallint, 'reader', '{}', '{}', '{}', '{}', '{}', '{}', \
                              '{7}', '{42}', '{0}', '{1}', '{what is this}', ARRAY[NULL]::double precision[])";
            self.does(&self.quota, settle).await;
        }

        async fn digest(&self) {
            let settle = "SELECT bus.settle('quota.test', 1::smallint, 'reader', '{}', '{}', '{}', '{7}', '{42}', '{0}', \
                              '{}', '{}', '{}', '{}', '{}', '{}')";
            self.does(&self.quota, settle).await;
        }

        async fn replay(
            &self,
            request_id: &str,
            message_id: &str,
            comment: &str,
        ) -> Option<Reason> {
            let request = pb::ReplayMessageRequest {
                request_id: request_id.to_owned(),
                message_id: message_id.to_owned(),
                comment: comment.to_owned(),
            };
            replay_message(self.scheduler.loops(), request)
                .await
                .err()
                .map(|error| error.reason())
        }

        /// Whether each message that is kept waits for somebody to replay it.
        async fn waiting(&self) -> Vec<(bool,)> {
            self.scheduler
                .loops()
                .all(query("SELECT due_at IS NULL FROM bus.parked"))
                .await
                .unwrap()
        }
    }

    #[tokio::test]
    async fn a_repeated_replay_gets_the_first_answer_and_replays_once() {
        let database = TestDatabase::create().await.unwrap();
        let world = World::start(&database).await;
        assert_eq!(world.waiting().await, [(true,)]);
        assert_eq!(world.replay("r1", MESSAGE, "mended").await, None);
        assert_eq!(world.waiting().await, [(false,)], "it is given again");
        world.digest().await;
        assert_eq!(
            world.replay("r1", MESSAGE, "mended").await,
            None,
            "though the message is gone"
        );
        world.set_aside().await;
        assert_eq!(world.replay("r1", MESSAGE, "mended").await, None);
        assert_eq!(world.waiting().await, [(true,)], "a repeat gives nothing");
        assert_eq!(
            world.replay("r1", "quota.test:1:7:43:0", "mended").await,
            Some(Reason::RequestIdReused)
        );
        assert_eq!(
            world.replay("r1", MESSAGE, "another").await,
            Some(Reason::RequestIdReused)
        );
        assert_eq!(world.replay("r2", MESSAGE, "mended").await, None);
        assert_eq!(
            world.waiting().await,
            [(false,)],
            "another call is a call of its own"
        );
    }

    #[tokio::test]
    async fn a_refused_replay_is_not_remembered() {
        let database = TestDatabase::create().await.unwrap();
        let world = World::start(&database).await;
        world.digest().await;
        assert_eq!(
            world.replay("r1", MESSAGE, "").await,
            Some(Reason::MessageNotFound)
        );
        assert_eq!(
            world.replay("", MESSAGE, "").await,
            Some(Reason::MessageNotFound)
        );
        world.set_aside().await;
        assert_eq!(world.replay("r1", MESSAGE, "").await, None);
        assert_eq!(
            world.replay("", MESSAGE, "").await,
            None,
            "without a name each call counts"
        );
    }

    #[test]
    fn fail_times_narrow_each_other_down() {
        let within = |filter: &str| {
            let (from, until) =
                answer::within(&filter::parse(filter, &FIELDS).unwrap(), "fail_time")?;
            Ok::<_, Error>((from.unix_us(), until.unix_us()))
        };
        let second = 1_767_225_600_000_000;
        assert_eq!(within("tenant = acme").unwrap(), (0, answer::NEWEST));
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

    #[test]
    fn an_id_names_subscription_and_place() {
        let (of, version) = parse("quota.usage:1:7:42:0").unwrap();
        assert_eq!((of.name.as_str(), of.topic), ("quota.usage", Topic::Runs));
        assert_eq!(
            version,
            Version {
                shard: 7,
                position: 42,
                place: 0
            }
        );
        for bad in [
            "",
            "x",
            "q:9:7:42:0",
            "q:1:7:42",
            "q:1:7:42:0:1",
            "q:1:a:42:0",
        ] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }
}
