//! What the bus is told, on a real Postgres.

use std::time::Duration;

use prost::Message;
use servo_bus::{EventBus, PostgresBus, Subscription, Topic, Verdict};
use servo_local::TestDatabase;
use servo_model::states::{RunState, TransitionReason};
use servo_model::{RunId, Service};
use servo_proto::v1 as pb;

use super::{
    Instance, apply, attempt_id, claim, finish, finished, folded, instance, keep_plan, new_run,
    plan, run_id, store,
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
    let bus = bus.at_pace(Duration::from_millis(20), Duration::from_secs(30));
    bus.subscribe(&subscription()).await.unwrap();
    bus
}

/// All that was published since.
async fn message(bus: &PostgresBus) -> Vec<pb::RunChanged> {
    let batch = bus.receive(&subscription()).await.unwrap();
    let message = batch
        .messages
        .iter()
        .map(|message| pb::RunChanged::decode(&*message.payload).unwrap())
        .collect();
    let verdicts = vec![Verdict::Ack; batch.messages.len()];
    bus.settle(&subscription(), batch, verdicts).await.unwrap();
    message
}

async fn submission(one: &Instance, id: RunId, ordinal: u32, end: pb::TaskFinished) {
    folded(&apply(one, claim(id, ordinal, 1, 1)).await);
    folded(&apply(one, finish_with(id, ordinal, end)).await);
}

#[tokio::test]
async fn a_run_is_told_at_its_birth_and_its_end_and_plain_successes_cost_nothing() {
    let database = TestDatabase::create().await.unwrap();
    let (one, bus) = (instance(&database, "one").await, reader(&database).await);
    let (plan, id) = (plan(&[&[], &[0], &[1]]), run_id(5));
    folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    let born = message(&bus).await;
    assert_eq!(born.len(), 1, "{born:?}");
    assert!(born[0].created && born[0].run_id == id.to_string() && born[0].tenant == "acme");
    assert_eq!(born[0].state(), pb::RunState::Running);
    for ordinal in 0..2 {
        folded(&apply(&one, claim(id, ordinal, 1, 1)).await);
        folded(&apply(&one, finish(id, ordinal)).await);
    }
    assert_eq!(message(&bus).await, [], "nothing that others follow");
    folded(&apply(&one, claim(id, 2, 1, 1)).await);
    folded(&apply(&one, finish(id, 2)).await);
    let ended = message(&bus).await;
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(
        (ended[0].state(), ended[0].created),
        (pb::RunState::Succeeded, false)
    );
    assert!(
        ended[0].position > born[0].position,
        "a later message has a greater version"
    );
    // Asked again, nothing is told again.
    apply(&one, finish(id, 2)).await;
    assert_eq!(message(&bus).await, []);
}

#[tokio::test]
async fn failures_and_versions_of_data_are_told_once_also_after_a_rebuild() {
    let database = TestDatabase::create().await.unwrap();
    let (one, bus) = (instance(&database, "one").await, reader(&database).await);
    let (plan, id) = (plan(&[&[], &[]]), run_id(6));
    keep_plan(&database, &plan).await;
    folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    message(&bus).await;
    let mut made = finished(id, 0, 1);
    made.outputs = vec![pb::Output {
        asset_key: "t/a0".to_owned(),
        ..Default::default()
    }];
    submission(&one, id, 0, made).await;
    let news = message(&bus).await;
    let version = &news[0].made[0];
    assert_eq!((news.len(), version.asset_key.as_str()), (1, "t/a0"));
    assert_eq!(version.materialization_id, attempt_id(id, 0, 1).to_string());
    assert_eq!(version.state(), pb::MaterializationState::Promoted);
    let mut failed = finished(id, 1, 1);
    failed.outcome = pb::Outcome::Failed.into();
    let error = pb::TaskError {
        category: pb::ErrorCategory::Configuration.into(),
        ..Default::default()
    };
    failed.error = Some(error);
    submission(&one, id, 1, failed).await;
    let news = message(&bus).await;
    assert_eq!((news.len(), news[0].state()), (1, pb::RunState::Failed));
    let task = &news[0].failed_tasks[0];
    assert_eq!(
        (
            task.asset_key.as_str(),
            task.attempt,
            task.task.unwrap().ordinal
        ),
        ("t/a1", 1, 1)
    );
    one.lease_keeper.leave().await;
    rebuild(&one.store, |_| ()).await.unwrap();
    assert_eq!(message(&bus).await, [], "what was told is not told again");
}

#[tokio::test]
async fn f28_without_a_consumer_runs_end_all_the_same_and_it_catches_up() {
    let database = TestDatabase::create().await.unwrap();
    let (one, bus) = (instance(&database, "one").await, reader(&database).await);
    let plan = plan(&[&[]]);
    for n in 1..=20 {
        let id = run_id(n);
        folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
        folded(&apply(&one, claim(id, 0, 1, 1)).await);
        folded(&apply(&one, finish(id, 0)).await);
        assert_eq!(
            super::states(&one.store, id).await.0,
            RunState::Succeeded.code()
        );
    }
    let message = message(&bus).await;
    let ended = message
        .iter()
        .filter(|news| news.state() == pb::RunState::Succeeded)
        .count();
    assert_eq!((message.len(), ended), (40, 20));
}

/// Codes travel as they are stored.
#[test]
fn states_and_reasons_have_the_same_numbers_on_the_wire() {
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
