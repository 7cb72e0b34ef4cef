//! The engine with a real database and without schedulers.

#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

use std::time::Duration;

use servo_local::{TestDatabase, wait};
use servo_model::presign::{KeyRing, SignatureGrace, SigningKey};
use servo_model::{RunId, Service, Stream, TaskRef};
use servo_queue::{PostgresQueue, QueueSettings};
use servo_store::{DatabaseConfig, LeaseTtl, Leases, Store};

use super::*;
use crate::core::{AdmissionPlan, ReadyRun, ReadyTask, Resources, Worker};
use servo_proto::v1::pull_tasks_response::Message as ToWorker;

const OWN: &str = "https://here:7413";
const OTHER: &str = "https://there:7413";
const PLANS_BYTES_MAX: usize = 1 << 20;
const STREAM: SchedulerStreamId = SchedulerStreamId(1);

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
            |engine| Plans::new(engine, loops.clone(), PLANS_BYTES_MAX),
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
        let (connection, received) = connection(1);
        self.engine.send(Message::WorkerConnected(connection)).await;
        received
    }

    /// Holds all admission shards.
    async fn admit_all(&self) {
        let held = AdmissionShard::all().map(|shard| (shard, Epoch::new(1)));
        self.engine.send(Message::HeldShards(held.collect())).await;
    }

    /// Queues messages that the engine handles in one turn: it runs only while the test waits.
    fn send_together(&self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            assert!(self.engine.inbox.try_send(message).is_ok());
        }
    }

    async fn connected_workers(&self) -> usize {
        let workers = self
            .engine
            .query(|admission, _| admission.workers().count());
        workers.await.unwrap()
    }

    /// Stores a plan of one task as the planner does.
    async fn store_plan(&self) -> PlanRef {
        let plan = plan_ref("a plan");
        let config = DatabaseConfig::new(self.database.service_url(), self.database.password());
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
        plan
    }

    /// Opens the stream of a scheduler that offers one task of this plan, and returns the number of
    /// the batch in which the task is claimed.
    async fn claim(&self, plan: PlanRef) -> u64 {
        let (requests, mut received) = mpsc::channel(REQUESTS_QUEUED_MAX);
        let connection = SchedulerConnection {
            requests,
            stop: CancellationToken::new(),
        };
        let run = RunId::from_bytes([1; 16]);
        let offer = ReadyTask {
            task: TaskRef::planned(0),
            attempt: 1,
            failures: 0,
            item_json: String::new(),
        };
        let ready = ReadyRun {
            run,
            plan,
            backfill: false,
            trace: Default::default(),
            tasks: vec![offer],
        };
        let snapshot = Snapshot {
            shard: run.shard(),
            epoch: Epoch::new(1),
            first: true,
            last: true,
            ready: vec![ready],
            live: Vec::new(),
        };
        let shards = AdmissionShard::all().collect();
        self.engine.send(Message::Limits(Limits::none())).await;
        for message in [
            StreamMessage::Opened(shards, connection),
            StreamMessage::Snapshot(snapshot),
        ] {
            self.engine.send(Message::Scheduler(STREAM, message)).await;
        }
        match received.recv().await.unwrap().message {
            Some(ToScheduler::Claims(batch)) => batch.number,
            other => panic!("{other:?}"),
        }
    }
}

/// The connection of a worker with one slot, and the messages that it receives.
fn connection(number: u64) -> (WorkerConnection, mpsc::Receiver<pb::PullTasksResponse>) {
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
        number,
        attempts: BTreeSet::new(),
        key: [0; 32],
        responses,
        last_seen: servo_mesh::now(),
    };
    (connection, received)
}

fn plan_ref(name: &str) -> PlanRef {
    PlanRef {
        tenant: "acme".parse().unwrap(),
        workspace: "prod".parse().unwrap(),
        plan_id: servo_model::Digest::of(name),
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
    assert_eq!(
        world.connected_workers().await,
        0,
        "nothing is admitted for it here"
    );
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
    world.admit_all().await;
    let mut responses = world.connect().await;
    for _ in 0..RESPONSES_QUEUED_MAX {
        world.engine.send(Message::Tick).await;
    }
    assert_eq!(
        world.connected_workers().await,
        1,
        "its queue is full, and nothing is lost"
    );
    world.engine.send(Message::Tick).await;
    world.connected_workers().await;
    let mut received = 0;
    while responses.recv().await.is_some() {
        received += 1;
    }
    assert_eq!(received, RESPONSES_QUEUED_MAX, "its stream ends");
    assert_eq!(world.connected_workers().await, 0, "it gets no more tasks");
}

#[tokio::test]
async fn worker_that_reconnects_while_its_full_stream_is_found_keeps_its_new_stream() {
    let world = World::start().await;
    world.admit_all().await;
    let _unread = world.connect().await;
    for _ in 0..RESPONSES_QUEUED_MAX {
        world.engine.send(Message::Tick).await;
    }
    assert_eq!(world.connected_workers().await, 1);
    let (connection, mut responses) = connection(2);
    world.send_together([Message::Tick, Message::WorkerConnected(connection)]);
    world.connected_workers().await;
    world.engine.send(Message::Tick).await;
    let received = responses.recv().await.and_then(|received| received.message);
    assert!(matches!(received, Some(ToWorker::Idle(_))), "{received:?}");
    assert_eq!(world.connected_workers().await, 1);
}

#[tokio::test]
async fn handover_waits_for_an_envelope_whose_plan_is_loaded_again() {
    let world = World::start().await;
    world.admit_all().await;
    let mut envelopes = world.connect().await;
    let number = world.claim(world.store_plan().await).await;
    let larger = StoredPlan {
        tenant: "acme".parse().unwrap(),
        plan: pb::Plan::default(),
        pinned: Default::default(),
        admission: Arc::new(AdmissionPlan {
            assets: Vec::new(),
            tasks: Vec::new(),
        }),
        bytes: PLANS_BYTES_MAX,
    };
    let (done, handed_over) = oneshot::channel();
    world.send_together([
        // Evicts the plan of the claimed task.
        Message::PlanLoaded(plan_ref("a larger plan"), Some(Arc::new(larger))),
        Message::Scheduler(STREAM, StreamMessage::ClaimResults(number, BTreeSet::new())),
        Message::HandOver(AdmissionShard::all().collect(), done),
    ]);
    handed_over.await.unwrap();
    let received = envelopes.try_recv().ok().and_then(|sent| sent.message);
    assert!(
        matches!(received, Some(ToWorker::Envelopes(_))),
        "{received:?}"
    );
}

#[tokio::test]
async fn announced_plan_is_loaded_at_once() {
    let world = World::start().await;
    let plan = world.store_plan().await;
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
            STREAM,
            StreamMessage::PlansAnnounced(vec![plan.clone()]),
        ))
    };

    announce().await;
    assert_eq!(key().await, None, "the tenant is not admitted here");
    world.admit_all().await;
    announce().await;
    wait::until("the plan to be cached", async || key().await).await;
}
