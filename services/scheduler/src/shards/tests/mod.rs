//! Lanes on a real Postgres.

#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

mod announcements;
mod batching;
mod bus;
mod dispatcher_streams;
mod manual_lane;
mod plans;
mod quarantine;
mod races;
mod rebuild;
mod recovery;
mod requests;
mod run_limits;
mod set_aside;
mod sizes;
mod timers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use servo_bus::{BusDoorbell, Topic};
use servo_local::TestDatabase;
use servo_model::request::RequestFingerprint;
use servo_model::states::{RunState, TaskState};
use servo_model::{
    AttemptId, Digest, DispatchId, Epoch, EventType, Position, RunId, RunKey, Service, ShardId,
    Stream, TaskRef, TenantId,
};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::admit_response::Message as ToDispatcher;
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::{AppendResult, DatabaseConfig, LeaseTtl, NewEvent, Store, query};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Claim, Command, CommandResult, DispatcherStream, LaneContext, LeaseLoop, NewPlan, NewRun,
    Plans, RunEvent, Shards, SubmitError, UnplannedRun, event_id, lane_of,
};
use crate::core::{Limits, Verdict};
use crate::metrics::Metrics;
use crate::wire;

const LEASE: Duration = Duration::from_secs(3);

pub(crate) struct Instance {
    store: Store,
    shards: Shards,
    plans: Plans,
    lease_loop: LeaseLoop,
    waiting: mpsc::Receiver<UnplannedRun>,
    limits_tx: watch::Sender<Limits>,
    messages: mpsc::Receiver<mesh_pb::AdmitResponse>,
}

fn acme() -> TenantId {
    "acme".parse().unwrap()
}

fn store(database: &TestDatabase, service: Service) -> Store {
    let config = DatabaseConfig::new(database.service_url(), database.password().to_owned());
    Store::connect(service, &config).unwrap()
}

pub(crate) async fn instance(database: &TestDatabase, name: &str) -> Instance {
    limited(database, name, Limits::none()).await
}

async fn limited(database: &TestDatabase, name: &str, limits: Limits) -> Instance {
    with_plan_queue(database, name, limits, 10_000).await
}

/// An instance in which this many requests for plans may wait.
async fn with_plan_queue(
    database: &TestDatabase,
    name: &str,
    limits: Limits,
    plan_requests_max: usize,
) -> Instance {
    let (limits_tx, limits) = watch::channel(limits);
    let store = store(database, Service::Scheduler);
    let plans = Plans::default();
    let (plan_requests, waiting) = mpsc::channel(plan_requests_max);
    let bus_doorbell = Some(BusDoorbell::start(store.loops().clone(), Topic::Runs));
    let metrics = Metrics::default();
    let context = LaneContext {
        plans: plans.clone(),
        plan_requests,
        metrics,
        bus_doorbell,
        limits,
    };
    let shards = Shards::start(&store, context);
    let ttl = LeaseTtl::new(LEASE).unwrap();
    let lease_loop = LeaseLoop::new(
        &store,
        shards.clone(),
        name,
        &format!("https://{name}:1"),
        ttl,
    );
    lease_loop.clone().run_once().await.unwrap();
    let (stream, messages) = dispatcher_stream(1);
    shards.open_stream(&stream).await.unwrap();
    Instance {
        store,
        shards,
        plans,
        lease_loop,
        waiting,
        limits_tx,
        messages,
    }
}

/// A dispatcher stream for the admission shard of the test tenant.
fn dispatcher_stream(epoch: u64) -> (DispatcherStream, mpsc::Receiver<mesh_pb::AdmitResponse>) {
    let (responses, messages) = mpsc::channel(10_000);
    (
        DispatcherStream {
            id: 1,
            leases: BTreeMap::from([(acme().admission_shard(), Epoch::new(epoch))]),
            responses,
            stop: CancellationToken::new(),
        },
        messages,
    )
}

/// A plan from the upstreams of each task.
pub(crate) fn plan(upstreams: &[&[u32]]) -> pb::Plan {
    let asset = |n: usize| pb::PlannedAsset {
        asset_key: format!("t/a{n}"),
        ..Default::default()
    };
    let task = |(n, upstream): (usize, &&[u32])| pb::PlannedTask {
        task_key: format!("t/a{n}:materialize"),
        asset: n as u32,
        operation: pb::Operation::Materialize.into(),
        upstream: upstream.to_vec(),
        ..Default::default()
    };
    pb::Plan {
        plan_id: Digest::of(format!("{upstreams:?}")).to_string(),
        tenant: "acme".to_owned(),
        workspace: "prod".to_owned(),
        deployment_id: "d1".to_owned(),
        assets: (0..upstreams.len()).map(asset).collect(),
        tasks: upstreams.iter().enumerate().map(task).collect(),
        ..Default::default()
    }
}

/// Stores a plan as the planner does.
async fn keep_plan(database: &TestDatabase, plan: &pb::Plan) {
    let planner = store(database, Service::Planner);
    let plan_id: Digest = plan.plan_id.parse().unwrap();
    let insert =
        query("INSERT INTO planner.plans (tenant, workspace, plan_id, plan) VALUES ('acme', 'prod', $1, $2)")
            .bind(plan_id.as_bytes().to_vec())
            .bind(plan.encode_to_vec());
    planner.loops().execute(insert).await.unwrap();
}

pub(crate) fn run_id(n: u8) -> RunId {
    RunId::from_bytes([n; 16])
}

pub(crate) fn new_run(
    instance: &Instance,
    plan: &pb::Plan,
    id: RunId,
    fingerprint: &str,
) -> Command {
    run_with(new_plan(instance, plan), id, fingerprint)
}

/// The same run, requested without a plan.
fn without_plan(command: Command) -> Command {
    let Command::Run(new) = command else {
        unreachable!()
    };
    Command::Run(Arc::new(NewRun {
        plan: None,
        ..Arc::into_inner(new).unwrap()
    }))
}

fn run_with(plan: NewPlan, id: RunId, fingerprint: &str) -> Command {
    let key = RunKey::chosen(&format!("key-{id}")).unwrap();
    let fingerprint = RequestFingerprint::from_digest(Digest::of(fingerprint));
    Command::Run(Arc::new(NewRun {
        tenant: acme(),
        workspace: "prod".to_owned(),
        run_id: id,
        event_id: event_id(),
        key: key.clone(),
        fingerprint,
        requested: pb::RunRequested {
            run_id: id.to_string(),
            run_key: key.to_string(),
            request_fingerprint: fingerprint.to_string(),
            generation: 1,
            ..Default::default()
        },
        plan: Some(plan),
        trace: None,
    }))
}

fn new_plan(instance: &Instance, plan: &pb::Plan) -> NewPlan {
    known_plan(&instance.plans, plan)
}

pub(super) fn known_plan(plans: &Plans, plan: &pb::Plan) -> NewPlan {
    let plan = plans.get_or_insert(plan).unwrap();
    NewPlan {
        event_id: event_id(),
        plan_fingerprint: "v1:sha256:x".to_owned(),
        plan,
    }
}

pub(crate) fn claim(id: RunId, ordinal: u32, attempt: u32, epoch: u64) -> Command {
    let message = mesh_pb::Claim {
        tenant: "acme".to_owned(),
        run_id: id.to_string(),
        task: Some(pb::TaskRef {
            ordinal,
            map_index: None,
        }),
        attempt,
        admission_epoch: epoch,
        mode: pb::DispatchMode::Pull.into(),
        worker_id: String::new(),
    };
    Command::Claim(Arc::new(Claim {
        stream: 1,
        tenant: acme(),
        run_id: id,
        admission_shard: acme().admission_shard(),
        task: TaskRef::planned(ordinal),
        event_id: event_id(),
        message,
    }))
}

fn attempt_id(id: RunId, ordinal: u32, attempt: u32) -> AttemptId {
    DispatchId::new(
        &id,
        &format!("t/a{ordinal}:materialize").parse().unwrap(),
        attempt,
    )
    .attempt_id()
}

pub(crate) fn finished(id: RunId, ordinal: u32, attempt: u32) -> pb::TaskFinished {
    pb::TaskFinished {
        run_id: id.to_string(),
        task: Some(pb::TaskRef {
            ordinal,
            map_index: None,
        }),
        attempt_id: attempt_id(id, ordinal, attempt).to_string(),
        session: "s".to_owned(),
        outcome: pb::Outcome::Succeeded.into(),
        ..Default::default()
    }
}

fn finish(id: RunId, ordinal: u32) -> Command {
    Command::Event(Arc::new(RunEvent {
        tenant: acme(),
        run_id: id,
        event_id: event_id(),
        idempotency_key: format!("finished:{}", attempt_id(id, ordinal, 1)),
        body: Body::TaskFinished(finished(id, ordinal, 1)),
        trace: None,
    }))
}

pub(crate) async fn apply(instance: &Instance, command: Command) -> super::Applied {
    let shard = command.run_id().shard();
    instance
        .shards
        .submit(shard, vec![command])
        .await
        .unwrap()
        .remove(0)
}

pub(crate) fn assert_folded(applied: &super::Applied) {
    assert_eq!(applied.result, CommandResult::Fold(Verdict::Folded));
}

async fn states(store: &Store, id: RunId) -> (i16, Vec<i16>) {
    let mut tx = store.requests().begin(&acme()).await.unwrap();
    let uuid = Uuid::from_bytes(*id.as_bytes());
    let run: (i16, i64) = tx
        .one(query("SELECT state, run_number FROM scheduler.runs WHERE run_id = $1").bind(uuid))
        .await
        .unwrap();
    let tasks: Vec<(i16,)> = tx
        .all(
            query("SELECT state FROM scheduler.tasks WHERE run_number = $1 ORDER BY ordinal")
                .bind(run.1),
        )
        .await
        .unwrap();
    (run.0, tasks.into_iter().map(|(state,)| state).collect())
}

#[tokio::test]
async fn a_run_is_folded_from_its_request_to_its_end() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (plan, id) = (plan(&[&[], &[0]]), run_id(5));
    assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    assert_eq!(
        states(&one.store, id).await,
        (
            RunState::Running.code(),
            vec![TaskState::Ready.code(), TaskState::Blocked.code()]
        )
    );
    for ordinal in 0..2 {
        assert_folded(&apply(&one, claim(id, ordinal, 1, 1)).await);
        assert_folded(&apply(&one, finish(id, ordinal)).await);
    }
    assert_eq!(
        states(&one.store, id).await,
        (
            RunState::Succeeded.code(),
            vec![TaskState::Succeeded.code(); 2]
        )
    );
    // A repeat changes nothing.
    assert_eq!(
        apply(&one, finish(id, 1)).await.result,
        CommandResult::Fold(Verdict::Duplicate)
    );
    assert_eq!(
        apply(&one, new_run(&one, &plan, id, "f")).await.result,
        CommandResult::Exists
    );
    let mark: Vec<(Position, Position)> = one
        .store
        .loops()
        .all(
            query("SELECT head, watermark FROM ledger.shards WHERE stream = 1 AND shard = $1")
                .bind(id.shard()),
        )
        .await
        .unwrap();
    let last = Position::START.plus(6);
    assert_eq!(mark, [(last, last)]);
}

#[tokio::test]
async fn another_instance_continues_where_the_first_stopped() {
    let database = TestDatabase::create().await.unwrap();
    let (plan, id) = (plan(&[&[], &[0], &[0], &[1, 2]]), run_id(9));
    keep_plan(&database, &plan).await;
    let one = instance(&database, "one").await;
    assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    assert_folded(&apply(&one, claim(id, 0, 1, 1)).await);
    one.lease_loop.leave().await;
    let refused = one
        .shards
        .submit(id.shard(), vec![finish(id, 0)])
        .await
        .unwrap_err();
    assert_eq!(refused, SubmitError::NotHeld);

    let two = instance(&database, "two").await;
    assert_folded(&apply(&two, finish(id, 0)).await);
    let (run, tasks) = states(&two.store, id).await;
    assert_eq!(run, RunState::Running.code());
    assert_eq!(
        tasks,
        [
            TaskState::Succeeded,
            TaskState::Ready,
            TaskState::Ready,
            TaskState::Blocked
        ]
        .map(TaskState::code)
    );
}

#[tokio::test]
async fn events_of_others_are_folded_before_those_of_the_holder() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (plan, id) = (plan(&[&[], &[]]), run_id(3));
    keep_plan(&database, &plan).await;
    assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    assert_folded(&apply(&one, claim(id, 0, 1, 1)).await);
    record_finish(&database, id).await;
    // The holder has not read the event yet; its next flush does.
    assert_folded(&apply(&one, claim(id, 1, 1, 1)).await);
    let (_, tasks) = states(&one.store, id).await;
    assert_eq!(
        tasks,
        [TaskState::Succeeded, TaskState::Queued].map(TaskState::code)
    );
    assert_eq!(
        apply(&one, finish(id, 0)).await.result,
        CommandResult::Fold(Verdict::Duplicate)
    );
}

/// Appends the outcome of the first attempt as the callback does when no holder answers.
pub(crate) async fn record_finish(database: &TestDatabase, id: RunId) -> AppendResult {
    let body = Body::TaskFinished(finished(id, 0, 1));
    record(
        database,
        id,
        pb::Event {
            version: 1,
            trace: None,
            body: Some(body),
        }
        .encode_to_vec(),
    )
    .await
}

async fn record(database: &TestDatabase, id: RunId, payload: Vec<u8>) -> AppendResult {
    let callback = store(database, Service::Callback);
    let event = NewEvent {
        event_id: event_id(),
        kind: EventType::TaskFinished,
        version: 1,
        shard: id.shard(),
        tenant: acme().into(),
        workspace: "prod".to_owned(),
        idempotency_key: format!("finished:{}", attempt_id(id, 0, 1)),
        correlation_id: Some(Uuid::from_bytes(*id.as_bytes())),
        causation_id: None,
        payload,
    };
    let appended = callback.ledger().append(vec![event]).await.unwrap();
    appended[0].result
}

#[tokio::test]
async fn f23_timers_continue_after_a_lost_claim_with_a_recorded_outcome() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (mut plan, id) = (plan(&[&[]]), run_id(6));
    let soon = prost_types::Duration {
        seconds: 0,
        nanos: 50_000_000,
    };
    plan.assets[0].timeouts = Some(pb::Timeouts {
        dispatch_ack: Some(soon),
        ..Default::default()
    });
    keep_plan(&database, &plan).await;
    assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    // Its claim was lost, so the outcome has no effect; then the same attempt is claimed again.
    record_finish(&database, id).await;
    assert_folded(&apply(&one, claim(id, 0, 1, 1)).await);
    let refused = one
        .shards
        .submit(id.shard(), vec![finish(id, 0)])
        .await
        .unwrap_err();
    assert_eq!(refused, SubmitError::KeyTaken);
    // No worker can start the attempt any more; a new one follows when it expires.
    while states(&one.store, id).await.1 != [TaskState::Ready.code()] {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_dispatcher_receives_ready_tasks_and_claims_of_an_older_one_are_refused() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (plan, id) = (plan(&[&[], &[0]]), run_id(4));
    assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    let (stream, mut messages) = dispatcher_stream(7);
    one.shards.open_stream(&stream).await.unwrap();
    // The answer follows the opening of the stream, so the snapshots were sent.
    assert_eq!(
        apply(&one, claim(id, 0, 1, 6)).await.result,
        CommandResult::StaleAdmission
    );
    let mut ready = Vec::new();
    while let Ok(message) = messages.try_recv() {
        if let Some(ToDispatcher::Snapshot(part)) = message.message {
            ready.extend(part.ready.into_iter().flat_map(|run| run.tasks));
        }
    }
    assert_eq!(
        ready
            .iter()
            .map(|task| (wire::task_ref_from_proto(task.task.unwrap()), task.attempt))
            .collect::<Vec<_>>(),
        [(TaskRef::planned(0), 1)]
    );

    assert_folded(&apply(&one, claim(id, 0, 1, 7)).await);
    assert_folded(&apply(&one, finish(id, 0)).await);
    let mut updates = Vec::new();
    while let Ok(message) = messages.try_recv() {
        if let Some(ToDispatcher::Update(update)) = message.message {
            updates.push(update);
        }
    }
    let [update] = &updates[..] else {
        panic!("one update, not {updates:?}")
    };
    assert_eq!(update.ended[0].attempt_id, attempt_id(id, 0, 1).to_string());
    assert_eq!(update.ready[0].tasks[0].task.unwrap().ordinal, 1);
}

#[tokio::test]
async fn large_snapshots_and_updates_are_split_into_messages() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (plan, id) = (plan(&vec![&[] as &[u32]; 600]), run_id(4));
    assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    let submit = async |commands: Vec<Command>| {
        one.shards
            .submit(id.shard(), commands)
            .await
            .unwrap()
            .iter()
            .for_each(assert_folded);
    };
    submit((0..600).map(|ordinal| claim(id, ordinal, 1, 1)).collect()).await;
    let (again, mut messages) = dispatcher_stream(1);
    one.shards.open_stream(&again).await.unwrap();
    submit((0..600).map(|ordinal| finish(id, ordinal)).collect()).await;
    let (mut live, mut ended) = (Vec::new(), Vec::new());
    while let Ok(message) = messages.try_recv() {
        match message.message {
            Some(ToDispatcher::Snapshot(part)) => {
                live.extend((!part.live.is_empty()).then_some(part.live.len()))
            }
            Some(ToDispatcher::Update(part)) => ended.push(part.ended.len()),
            _ => {}
        }
    }
    // The withdrawal of the run comes first.
    assert_eq!((live, ended), (vec![256, 256, 88], vec![255, 256, 89]));
}

#[tokio::test]
async fn instances_share_all_shards() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let two = instance(&database, "two").await;
    for _ in 0..3 {
        one.lease_loop.clone().run_once().await.unwrap();
        two.lease_loop.clone().run_once().await.unwrap();
    }
    let holders = one.store.loops().holders(Stream::Execution).await.unwrap();
    let of = |name: &str| -> Vec<ShardId> {
        holders
            .iter()
            .filter(|holder| holder.holder == name)
            .map(|holder| holder.shard)
            .collect()
    };
    assert_eq!((of("one").len(), of("two").len()), (32, 32));
    for name in ["one", "two"] {
        let lanes: BTreeSet<usize> = of(name).into_iter().map(lane_of).collect();
        assert_eq!(
            lanes.len(),
            1,
            "{name} uses one lane, so that its flushes are large"
        );
    }
}
