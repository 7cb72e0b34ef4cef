//! The messages for the bus, on a real Postgres.

use std::time::Duration;

use prost::Message;
use servo_bus::{Acknowledgement, EventBus, PostgresBus, Subscription, Topic};
use servo_local::TestDatabase;
use servo_model::states::{RunState, TransitionReason};
use servo_model::{RunId, Service};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::v1 as pb;

use super::{
    Instance, apply, assert_folded, attempt_id, claim, finish, finished, instance, keep_plan,
    new_run, plan, run_id, store,
};
use crate::shards::rebuild;
use crate::shards::tests::rebuild::finish_with;

fn subscription() -> Subscription {
    Subscription {
        name: "quota.test".to_owned(),
        topic: Topic::Runs,
    }
}

async fn reader(database: &TestDatabase) -> PostgresBus {
    let bus = PostgresBus::new(&store(database, Service::Quota), "reader");
    let bus = bus.with_intervals(Duration::from_millis(20), Duration::from_secs(30));
    bus.subscribe(&subscription()).await.unwrap();
    bus
}

/// Receives all messages that were published since the last call.
async fn receive(bus: &PostgresBus) -> Vec<mesh_pb::RunChanged> {
    let batch = bus.receive(&subscription()).await.unwrap();
    let received = batch
        .messages
        .iter()
        .map(|message| mesh_pb::RunChanged::decode(&*message.payload).unwrap())
        .collect();
    let acknowledgements = vec![Acknowledgement::Ack; batch.messages.len()];
    bus.settle(&subscription(), batch, acknowledgements)
        .await
        .unwrap();
    received
}

async fn run_attempt(one: &Instance, id: RunId, ordinal: u32, end: pb::TaskFinished) {
    assert_folded(&apply(one, claim(id, ordinal, 1, 1)).await);
    assert_folded(&apply(one, finish_with(id, ordinal, end)).await);
}

#[tokio::test]
async fn a_run_is_published_when_it_begins_and_ends_but_not_for_each_success() {
    let database = TestDatabase::create().await.unwrap();
    let (one, bus) = (instance(&database, "one").await, reader(&database).await);
    let (plan, id) = (plan(&[&[], &[0], &[1]]), run_id(5));
    assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    let begun = receive(&bus).await;
    assert_eq!(begun.len(), 1, "{begun:?}");
    assert!(begun[0].created && begun[0].run_id == id.to_string() && begun[0].tenant == "acme");
    assert_eq!(begun[0].state(), pb::RunState::Running);
    for ordinal in 0..2 {
        assert_folded(&apply(&one, claim(id, ordinal, 1, 1)).await);
        assert_folded(&apply(&one, finish(id, ordinal)).await);
    }
    assert_eq!(receive(&bus).await, [], "task successes are not published");
    assert_folded(&apply(&one, claim(id, 2, 1, 1)).await);
    assert_folded(&apply(&one, finish(id, 2)).await);
    let ended = receive(&bus).await;
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(
        (ended[0].state(), ended[0].created),
        (pb::RunState::Succeeded, false)
    );
    assert!(
        ended[0].position > begun[0].position,
        "a later message has a greater position"
    );
    // A repeat publishes nothing.
    apply(&one, finish(id, 2)).await;
    assert_eq!(receive(&bus).await, []);
}

#[tokio::test]
async fn failures_and_materializations_are_published_once_even_after_a_rebuild() {
    let database = TestDatabase::create().await.unwrap();
    let (one, bus) = (instance(&database, "one").await, reader(&database).await);
    let (plan, id) = (plan(&[&[], &[]]), run_id(6));
    keep_plan(&database, &plan).await;
    assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    receive(&bus).await;
    let mut made = finished(id, 0, 1);
    made.outputs = vec![pb::Output {
        asset_key: "t/a0".to_owned(),
        ..Default::default()
    }];
    run_attempt(&one, id, 0, made).await;
    let updates = receive(&bus).await;
    let version = &updates[0].made[0];
    assert_eq!((updates.len(), version.asset_key.as_str()), (1, "t/a0"));
    assert_eq!(version.materialization_id, attempt_id(id, 0, 1).to_string());
    assert_eq!(version.state(), pb::MaterializationState::Promoted);
    let mut failed = finished(id, 1, 1);
    failed.outcome = pb::Outcome::Failed.into();
    let error = pb::TaskError {
        category: pb::ErrorCategory::Configuration.into(),
        ..Default::default()
    };
    failed.error = Some(error);
    run_attempt(&one, id, 1, failed).await;
    let updates = receive(&bus).await;
    assert_eq!(
        (updates.len(), updates[0].state()),
        (1, pb::RunState::Failed)
    );
    let task = &updates[0].failed_tasks[0];
    assert_eq!(
        (
            task.asset_key.as_str(),
            task.attempt,
            task.task.unwrap().ordinal
        ),
        ("t/a1", 1, 1)
    );
    one.lease_loop.leave().await;
    rebuild(&one.store, |_| ()).await.unwrap();
    assert_eq!(receive(&bus).await, [], "a rebuild publishes nothing again");
}

#[tokio::test]
async fn f28_runs_end_without_a_consumer_and_it_catches_up_later() {
    let database = TestDatabase::create().await.unwrap();
    let (one, bus) = (instance(&database, "one").await, reader(&database).await);
    let plan = plan(&[&[]]);
    for n in 1..=20 {
        let id = run_id(n);
        assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
        assert_folded(&apply(&one, claim(id, 0, 1, 1)).await);
        assert_folded(&apply(&one, finish(id, 0)).await);
        assert_eq!(
            super::states(&one.store, id).await.0,
            RunState::Succeeded.code()
        );
    }
    let received = receive(&bus).await;
    let ended = received
        .iter()
        .filter(|update| update.state() == pb::RunState::Succeeded)
        .count();
    assert_eq!((received.len(), ended), (40, 20));
}

/// Messages contain the stored codes.
#[test]
fn stored_codes_equal_the_proto_numbers() {
    for state in RunState::ALL {
        assert!(
            pb::RunState::try_from(i32::from(state.code())).is_ok(),
            "{state:?}"
        );
        let name = pb::RunState::try_from(i32::from(state.code()))
            .unwrap()
            .as_str_name();
        assert_eq!(name, format!("RUN_STATE_{}", state.name()));
    }
    for reason in TransitionReason::ALL {
        let name = pb::TransitionReason::try_from(i32::from(reason.code()))
            .unwrap()
            .as_str_name();
        assert_eq!(name, format!("TRANSITION_REASON_{}", reason.name()));
    }
}
