//! The engine with a real database and without schedulers.

#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

use std::time::Duration;

use servo_local::{TestDatabase, wait};
use servo_model::presign::{KeyRing, SignatureGrace, SigningKey};
use servo_model::{Service, Stream, TaskRef};
use servo_queue::{PostgresQueue, QueueSettings};
use servo_store::{DatabaseConfig, LeaseTtl, Leases, Store};

use super::*;
use crate::core::{Resources, Worker};
use servo_proto::v1::pull_tasks_response::Message as ToWorker;

const OWN: &str = "https://here:7413";
const OTHER: &str = "https://there:7413";

pub(crate) struct World {
    pub(crate) database: TestDatabase,
    pub(crate) store: Store,
    pub(crate) engine: Engine,
}

impl World {
    pub(crate) async fn start() -> World {
        let database = TestDatabase::create().await.unwrap();
        let config = DatabaseConfig::new(database.service_url(), database.password());
        let store = Store::connect(Service::Dispatcher, &config).unwrap();
        let loops = store.loops().clone();
        let queue = PostgresQueue::new(store.clone(), [QueueSettings::new("dispatch-0")]).unwrap();
        let signer = Signer {
            callbacks: KeyRing::new(SigningKey::new("k", vec![7; 32]).unwrap(), []).unwrap(),
            envelope_secret: [0; 32].into(),
            envelope_key_id: "k".into(),
            callback_url: "".into(),
            output_base: "".into(),
            heartbeat_interval: Duration::from_secs(30),
            grace: SignatureGrace::default(),
        };
        let (handle, running) = engine(
            signer,
            Metrics::default(),
            |engine| Plans::new(engine, loops.clone(), 1 << 20),
            |engine| InputReader::start(engine, loops.clone()),
            |engine| PushQueue::start(engine, queue, vec!["dispatch-0".into()]),
            Redirects {
                loops: loops.clone(),
                own_address: OWN.to_owned(),
            },
        );
        tokio::spawn(running.run());
        World {
            database,
            store,
            engine: handle,
        }
    }

    /// Acquires all admission shards for an instance at this address.
    async fn hold(&self, address: &str) {
        let ttl = LeaseTtl::new(Duration::from_secs(3600)).unwrap();
        let leases = Leases::new(self.store.loops(), Stream::Dispatch, address, address, ttl);
        let all: Vec<ShardId> = Stream::Dispatch.shards().collect();
        assert_eq!(
            leases.acquire(&all, all.len()).await.unwrap().len(),
            all.len()
        );
    }

    async fn connect(&self) -> mpsc::Receiver<pb::PullTasksResponse> {
        let (responses, received) = mpsc::channel(RESPONSES_QUEUED_MAX);
        let worker = Worker {
            id: servo_model::WorkerId::from_bytes([1; 16]),
            session: "s".into(),
            tenant: "acme".parse().unwrap(),
            workspaces: BTreeSet::new(),
            pools: BTreeSet::new(),
            capabilities: BTreeSet::new(),
            handlers: BTreeSet::new(),
            resources: Resources::default(),
            slots: 1,
            credits: 1,
            draining: false,
            pushed: false,
        };
        let connection = WorkerConnection {
            worker,
            number: 1,
            attempts: BTreeSet::new(),
            key: [0; 32],
            responses,
            last_seen: servo_mesh::now(),
        };
        self.engine.send(Message::WorkerConnected(connection)).await;
        received
    }
}

/// Returns a handle whose messages the test receives.
pub(crate) fn message_capture() -> (Engine, mpsc::Receiver<Message>) {
    let (inbox, messages) = mpsc::channel(64);
    (
        Engine {
            inbox,
            held: watch::channel(BTreeMap::new()).1,
        },
        messages,
    )
}

/// Returns the address that the worker is redirected to.
async fn redirected_to(mut responses: mpsc::Receiver<pb::PullTasksResponse>) -> Option<String> {
    match responses.recv().await?.message? {
        ToWorker::Moved(moved) => Some(moved.address),
        _ => None,
    }
}

#[tokio::test]
async fn worker_that_connects_after_its_shard_moved_is_redirected() {
    let world = World::start().await;
    world.hold(OTHER).await;
    assert_eq!(
        redirected_to(world.connect().await).await.as_deref(),
        Some(OTHER)
    );
    let joined = world
        .engine
        .query(|admission, _| admission.workers().count())
        .await;
    assert_eq!(joined.unwrap(), 0, "nothing is admitted for it here");
}

#[tokio::test]
async fn redirect_may_point_back_to_this_instance_once_it_holds_the_shard_again() {
    let world = World::start().await;
    world.hold(OWN).await;
    let responses = world.connect().await;
    let redirected = tokio::spawn(redirected_to(responses));
    let held = AdmissionShard::all().map(|shard| (shard, Epoch::new(2)));
    world.engine.send(Message::HeldShards(held.collect())).await;
    assert_eq!(redirected.await.unwrap().as_deref(), Some(OWN));
}

#[tokio::test]
async fn worker_that_does_not_read_its_stream_is_disconnected() {
    let world = World::start().await;
    let held = AdmissionShard::all().map(|shard| (shard, Epoch::new(1)));
    world.engine.send(Message::HeldShards(held.collect())).await;
    let mut responses = world.connect().await;
    let connected = async || {
        let workers = world
            .engine
            .query(|admission, _| admission.workers().count());
        workers.await.unwrap()
    };
    for _ in 0..RESPONSES_QUEUED_MAX {
        world.engine.send(Message::Tick).await;
    }
    assert_eq!(
        connected().await,
        1,
        "its queue is full, and nothing is lost"
    );
    world.engine.send(Message::Tick).await;
    connected().await;
    let mut received = 0;
    while responses.recv().await.is_some() {
        received += 1;
    }
    assert_eq!(received, RESPONSES_QUEUED_MAX, "its stream ends");
    assert_eq!(connected().await, 0, "it gets no more tasks");
}

#[tokio::test]
async fn announced_plan_is_loaded_at_once() {
    let world = World::start().await;
    let plan = crate::core::PlanRef {
        tenant: "acme".parse().unwrap(),
        workspace: "prod".parse().unwrap(),
        plan_id: servo_model::Digest::of("a plan"),
    };
    let config = DatabaseConfig::new(world.database.service_url(), world.database.password());
    let planner = Store::connect(Service::Planner, &config).unwrap();
    let stored = pb::Plan {
        workspace: "prod".to_owned(),
        assets: vec![pb::PlannedAsset {
            asset_key: "t/a".to_owned(),
            ..Default::default()
        }],
        tasks: vec![pb::PlannedTask {
            task_key: "t/a:materialize".to_owned(),
            operation: pb::Operation::Materialize.into(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let insert = servo_store::query(
        "INSERT INTO planner.plans (tenant, workspace, plan_id, plan) VALUES ('acme', 'prod', $1, $2)",
    );
    let insert = insert
        .bind(plan.plan_id.as_bytes().to_vec())
        .bind(prost::Message::encode_to_vec(&stored));
    planner.loops().execute(insert).await.unwrap();
    let key = async || {
        let (plan, task) = (plan.clone(), TaskRef::planned(0));
        world
            .engine
            .query(move |admission, _| admission.task_key(&plan, task))
            .await
            .unwrap()
    };
    let announce = || {
        world.engine.send(Message::Scheduler(
            SchedulerStreamId(1),
            StreamMessage::PlansAnnounced(vec![plan.clone()]),
        ))
    };

    announce().await;
    assert_eq!(key().await, None, "the tenant is not admitted here");
    let held = AdmissionShard::all().map(|shard| (shard, Epoch::new(1)));
    world.engine.send(Message::HeldShards(held.collect())).await;
    announce().await;
    wait::until("the plan to be cached", async || key().await).await;
}
