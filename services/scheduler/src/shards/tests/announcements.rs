//! Plans that are announced to dispatchers before their runs are stored.

use servo_local::TestDatabase;

use super::{ToDispatcher, apply, assert_folded, instance, new_run, plan, run_id};

#[tokio::test]
async fn a_plan_is_announced_once_and_before_its_run() {
    let database = TestDatabase::create().await.unwrap();
    let mut one = instance(&database, "one").await;
    let (small, large) = (plan(&[&[]]), plan(&[&[], &[0]]));
    for (n, plan) in [(1, &small), (2, &small), (3, &large)] {
        assert_folded(&apply(&one, new_run(&one, plan, run_id(n), "f")).await);
    }
    let mut received = Vec::new();
    while let Ok(message) = one.messages.try_recv() {
        match message.message.unwrap() {
            ToDispatcher::Announcement(announcement) => received.extend(
                announcement
                    .plans
                    .into_iter()
                    .map(|plan| ("announced", plan.plan_id)),
            ),
            ToDispatcher::Update(update) => {
                received.extend(update.ready.into_iter().map(|run| ("ready", run.plan_id)))
            }
            _ => {}
        }
    }
    let (small, large) = (small.plan_id, large.plan_id);
    let expected = [
        ("announced", small.clone()),
        ("ready", small.clone()),
        ("ready", small),
        ("announced", large.clone()),
        ("ready", large),
    ];
    assert_eq!(received, expected);
}
