//! ReplayMessage: delivers a message again that its consumer could not process.

use prost::Message;
use servo_bus::{Subscription, Topic, Version};
use servo_mesh::{Error, Reason};
use servo_model::{Digest, Position, ShardId};
use servo_proto::v1 as pb;
use servo_store::{LoopStore, Tx};

use super::support::{errors, parse};
use crate::store::requests::{self, RequestIdUse};

pub(super) async fn replay_message(
    loops: &LoopStore,
    request: pb::ReplayMessageRequest,
) -> Result<pb::ReplayMessageResponse, Error> {
    parse::request_id(&request.request_id)?;
    parse::comment(&request.comment)?;
    let unknown = || {
        let message = format!(
            "there is no poison message `{}`; ListPoisonMessages lists the ids",
            request.message_id
        );
        Error::new(Reason::MessageNotFound, message)
    };
    let mut tx = loops.begin().await.map_err(errors::store)?;
    if is_repeated(&mut tx, &request).await? {
        return Ok(pb::ReplayMessageResponse::default());
    }
    let (subscription, version) = parse_id(&request.message_id).ok_or_else(unknown)?;
    // A refused call records no request id, so that it may be repeated once the message exists.
    if !servo_bus::replay(&mut tx, &subscription, version)
        .await
        .map_err(errors::store)?
    {
        return Err(unknown());
    }
    tx.commit().await.map_err(errors::store)?;
    servo_bus::ring(loops, subscription.topic)
        .await
        .map_err(errors::store)?;
    Ok(pb::ReplayMessageResponse::default())
}

async fn is_repeated(tx: &mut Tx, request: &pb::ReplayMessageRequest) -> Result<bool, Error> {
    if request.request_id.is_empty() {
        return Ok(false);
    }
    let body = Digest::of([b"ReplayMessage".as_slice(), &request.encode_to_vec()].concat());
    match requests::record(tx, &request.request_id, &body)
        .await
        .map_err(errors::store)?
    {
        RequestIdUse::New => Ok(false),
        RequestIdUse::Repeated => Ok(true),
        RequestIdUse::Conflicting => {
            let message = "request_id was used before with another body; choose a new one";
            Err(Error::new(Reason::RequestIdReused, message))
        }
    }
}

/// Parses the id of a message, as ListPoisonMessages lists it.
fn parse_id(id: &str) -> Option<(Subscription, Version)> {
    let parts: Vec<&str> = id.split(':').collect();
    let [name, topic, shard, position, place] = parts[..] else {
        return None;
    };
    let topic = Topic::from_code(topic.parse().ok()?)?;
    let version = Version {
        shard: ShardId::new(shard.parse().ok()?)?,
        position: Position::new(position.parse().ok()?)?,
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

#[cfg(test)]
mod tests {
    use servo_local::TestDatabase;
    use servo_model::Service;
    use servo_store::{DatabaseConfig, Store, query};

    use super::*;

    const MESSAGE: &str = "quota.test:1:7:42:0";

    /// A message that its consumer could not process.
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
                .execute(
                    &world.quota,
                    "SELECT bus.subscribe('quota.test', 1::smallint, 64::smallint)",
                )
                .await;
            let publish = "SELECT bus.publish(1::smallint, '{7}', '{42}', ARRAY[gen_random_uuid()], '{acme}', '{main}', \
                               ARRAY['garbage'::bytea])";
            world.execute(&world.scheduler, publish).await;
            world.fail().await;
            world
        }

        async fn execute(&self, store: &Store, statement: &'static str) {
            store.loops().execute(query(statement)).await.unwrap();
        }

        async fn fail(&self) {
            let claim =
                "SELECT bus.claim('quota.test', 1::smallint, 'reader', interval '1 minute', 10)";
            self.execute(&self.quota, claim).await;
            let settle = "SELECT bus.settle('quota.test', 1::smallint, 'reader', '{}', '{}', '{}', '{}', '{}', '{}', \
                              '{7}', '{42}', '{0}', '{1}', '{what is this}', ARRAY[NULL]::double precision[])";
            self.execute(&self.quota, settle).await;
        }

        async fn process(&self) {
            let settle = "SELECT bus.settle('quota.test', 1::smallint, 'reader', '{}', '{}', '{}', '{7}', '{42}', '{0}', \
                              '{}', '{}', '{}', '{}', '{}', '{}')";
            self.execute(&self.quota, settle).await;
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

        /// For each stored message, whether it waits for an operator.
        async fn waiting(&self) -> Vec<(bool,)> {
            self.scheduler
                .loops()
                .all(query("SELECT due_at IS NULL FROM bus.parked"))
                .await
                .unwrap()
        }
    }

    #[tokio::test]
    async fn a_repeated_request_id_replays_once() {
        let database = TestDatabase::create().await.unwrap();
        let world = World::start(&database).await;
        assert_eq!(world.waiting().await, [(true,)]);
        assert_eq!(world.replay("r1", MESSAGE, "mended").await, None);
        assert_eq!(
            world.waiting().await,
            [(false,)],
            "the message is delivered again"
        );
        world.process().await;
        assert_eq!(
            world.replay("r1", MESSAGE, "mended").await,
            None,
            "although the message is gone"
        );
        world.fail().await;
        assert_eq!(world.replay("r1", MESSAGE, "mended").await, None);
        assert_eq!(
            world.waiting().await,
            [(true,)],
            "a repeat delivers nothing"
        );
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
            "another request id is another call"
        );
    }

    #[tokio::test]
    async fn a_refused_replay_records_no_request_id() {
        let database = TestDatabase::create().await.unwrap();
        let world = World::start(&database).await;
        world.process().await;
        assert_eq!(
            world.replay("r1", MESSAGE, "").await,
            Some(Reason::MessageNotFound)
        );
        assert_eq!(
            world.replay("", MESSAGE, "").await,
            Some(Reason::MessageNotFound)
        );
        world.fail().await;
        assert_eq!(world.replay("r1", MESSAGE, "").await, None);
        assert_eq!(
            world.replay("", MESSAGE, "").await,
            None,
            "without a request id every call counts"
        );
    }

    #[test]
    fn an_id_contains_subscription_and_position() {
        let (subscription, version) = parse_id("quota.usage:1:7:42:0").unwrap();
        assert_eq!(
            (subscription.name.as_str(), subscription.topic),
            ("quota.usage", Topic::Runs)
        );
        assert_eq!(
            version,
            Version {
                shard: ShardId::new(7).unwrap(),
                position: Position::START.plus(42),
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
            assert!(parse_id(bad).is_none(), "{bad}");
        }
    }
}
