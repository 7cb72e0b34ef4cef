//! What the bus is told, on a real Postgres.

use std::time::Duration;

use prost::Message;
use servo_bus::{EventBus, PostgresBus, Subscription, Topic, Verdict};
use servo_local::TestDatabase;
use servo_model::states::{RunState, TransitionReason};
use servo_model::{RunId, Service};
use servo_proto::v1;

use super::{
    Instance, ask, attempt_id, claim, finish, finished, folded, instance, keep_plan, new_run, plan,
    run_id, store,
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
async fn told(bus: &PostgresBus) -> Vec<v1::RunChanged> {
    let batch = bus.receive(&subscription()).await.unwrap();
    let told = batch
        .messages
        .iter()
        .map(|message| v1::RunChanged::decode(&*message.payload).unwrap())
        .collect();
    let verdicts = vec![Verdict::Ack; batch.messages.len()];
    bus.settle(&subscription(), batch, verdicts).await.unwrap();
    told
}

async fn work(one: &Instance, id: RunId, ordinal: u32, end: v1::TaskFinished) {
    folded(&ask(one, claim(id, ordinal, 1, 1)).await);
    folded(&ask(one, finish_with(id, ordinal, end)).await);
}

#[tokio::test]
async fn a_run_is_told_at_its_birth_and_its_end_and_plain_successes_cost_nothing() {
    let database = TestDatabase::create().await.unwrap();
    let (one, bus) = (instance(&database, "one").await, reader(&database).await);
    let (plan, id) = (plan(&[&[], &[0], &[1]]), run_id(5));
    folded(&ask(&one, new_run(&one, &plan, id, "f")).await);
    let born = told(&bus).await;
    assert_eq!(born.len(), 1, "{born:?}");
    assert!(born[0].created && born[0].run_id == id.to_string() && born[0].tenant == "acme");
    assert_eq!(born[0].state(), v1::RunState::Running);
    for ordinal in 0..2 {
        folded(&ask(&one, claim(id, ordinal, 1, 1)).await);
        folded(&ask(&one, finish(id, ordinal)).await);
    }
    assert_eq!(told(&bus).await, [], "nothing that others follow");
    folded(&ask(&one, claim(id, 2, 1, 1)).await);
    folded(&ask(&one, finish(id, 2)).await);
    let ended = told(&bus).await;
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(
        (ended[0].state(), ended[0].created),
        (v1::RunState::Succeeded, false)
    );
    assert!(
        ended[0].position > born[0].position,
        "a later message has a greater version"
    );
    // Asked again, nothing is told again.
    ask(&one, finish(id, 2)).await;
    assert_eq!(told(&bus).await, []);
}

#[tokio::test]
async fn failures_and_versions_of_data_are_told_once_also_after_a_rebuild() {
    let database = TestDatabase::create().await.unwrap();
    let (one, bus) = (instance(&database, "one").await, reader(&database).await);
    let (plan, id) = (plan(&[&[], &[]]), run_id(6));
    keep_plan(&database, &plan).await;
    folded(&ask(&one, new_run(&one, &plan, id, "f")).await);
    told(&bus).await;
    let mut made = finished(id, 0, 1);
    made.outputs = vec![v1::Output {
        asset_key: "t/a0".to_owned(),
        ..Default::default()
    }];
    work(&one, id, 0, made).await;
    let news = told(&bus).await;
    let version = &news[0].made[0];
    assert_eq!((news.len(), version.asset_key.as_str()), (1, "t/a0"));
    assert_eq!(version.materialization_id, attempt_id(id, 0, 1).to_string());
    assert_eq!(version.state(), v1::MaterializationState::Promoted);
    let mut failed = finished(id, 1, 1);
    failed.outcome = v1::Outcome::Failed.into();
    let error = v1::TaskError {
        category: v1::ErrorCategory::Configuration.into(),
        ..Default::default()
    };
    failed.error = Some(error);
    work(&one, id, 1, failed).await;
    let news = told(&bus).await;
    assert_eq!((news.len(), news[0].state()), (1, v1::RunState::Failed));
    let task = &news[0].failed_tasks[0];
    assert_eq!(
        (
            task.asset_key.as_str(),
            task.attempt,
            task.task.unwrap().ordinal
        ),
        ("t/a1", 1, 1)
    );
    one.keeper.leave().await;
    rebuild(&one.store, |_| ()).await.unwrap();
    assert_eq!(told(&bus).await, [], "what was told is not told again");
}

#[tokio::test]
async fn f28_without_a_consumer_runs_end_all_the_same_and_it_catches_up() {
    let database = TestDatabase::create().await.unwrap();
    let (one, bus) = (instance(&database, "one").await, reader(&database).await);
    let plan = plan(&[&[]]);
    for n in 1..=20 {
        let id = run_id(n);
        folded(&ask(&one, new_run(&one, &plan, id, "f")).await);
        folded(&ask(&one, claim(id, 0, 1, 1)).await);
        folded(&ask(&one, finish(id, 0)).await);
        assert_eq!(
            super::states(&one.store, id).await.0,
            RunState::Succeeded.code()
        );
    }
    let told = told(&bus).await;
    let ended = told
        .iter()
        .filter(|news| news.state() == v1::RunState::Succeeded)
        .count();
    assert_eq!((told.len(), ended), (40, 20));
}

/// Codes travel as they are stored.
#[test]
fn states_and_reasons_have_the_same_numbers_on_the_wire() {
    for state in RunState::ALL {
        assert!(
            v1::RunState::try_from(i32::from(state.code())).is_ok(),
            "{state:?}"
        );
        let name = v1::RunState::try_from(i32::from(state.code()))
            .unwrap()
            .as_str_name();
        assert_eq!(name, format!("RUN_STATE_{}", state.name()));
    }
    for reason in TransitionReason::ALL {
        let name = v1::TransitionReason::try_from(i32::from(reason.code()))
            .unwrap()
            .as_str_name();
        assert_eq!(name, format!("TRANSITION_REASON_{}", reason.name()));
    }
}
