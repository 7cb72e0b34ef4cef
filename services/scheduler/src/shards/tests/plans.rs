//! A shard whose runs follow more distinct plans than the cache keeps without a run.

use std::collections::BTreeSet;

use servo_local::TestDatabase;
use servo_model::states::RunState;
use servo_model::{Digest, RunId, Service};
use servo_proto::mesh::v1::admit_response::Message as ToDispatcher;
use servo_proto::v1 as pb;
use servo_store::query;

use super::{Instance, apply, assert_folded, claim, instance, new_run, plan, store};
use crate::shards::rebuild;

/// More than the cache keeps without a run.
const PLANS: u8 = 70;

fn nth_run(n: u8) -> RunId {
    let mut id = [7; 16];
    id[15] = n;
    RunId::from_bytes(id)
}

fn nth_plan(n: u8) -> pb::Plan {
    pb::Plan {
        plan_id: Digest::of(format!("plan {n}")).to_string(),
        ..plan(&[&[]])
    }
}

async fn keep_plans(database: &TestDatabase) {
    let (ids, plans): (Vec<_>, Vec<_>) = (0..PLANS)
        .map(nth_plan)
        .map(|plan| {
            let id: Digest = plan.plan_id.parse().unwrap();
            (id.as_bytes().to_vec(), prost::Message::encode_to_vec(&plan))
        })
        .unzip();
    let insert = query(
        "INSERT INTO planner.plans (tenant, workspace, plan_id, plan)
         SELECT 'acme', 'prod', * FROM unnest($1::bytea[], $2::bytea[])",
    );
    let planner = store(database, Service::Planner);
    let insert = insert.bind(ids).bind(plans);
    planner.loops().execute(insert).await.unwrap();
}

/// Starts one run per plan, all in one shard.
async fn runs_of_many_plans(database: &TestDatabase) -> Instance {
    keep_plans(database).await;
    let one = instance(database, "one").await;
    for n in 0..PLANS {
        assert_folded(&apply(&one, new_run(&one, &nth_plan(n), nth_run(n), "f")).await);
    }
    one.lease_loop.leave().await;
    one
}

async fn readable_runs(one: &Instance) -> i64 {
    let count = query(
        "SELECT count(*) FROM scheduler.runs WHERE state = $1 AND plan_id IS NOT NULL AND set_aside IS NULL",
    );
    let count = count.bind(RunState::Running.code());
    let rows: Vec<(i64,)> = one.store.loops().all(count).await.unwrap();
    rows[0].0
}

#[tokio::test]
async fn the_next_holder_restores_runs_of_more_plans_than_are_cached() {
    let database = TestDatabase::create().await.unwrap();
    runs_of_many_plans(&database).await;
    let mut two = instance(&database, "two").await;
    // The answer follows the opening of the stream, so the snapshots were sent.
    assert_folded(&apply(&two, claim(nth_run(0), 0, 1, 1)).await);
    let mut ready = BTreeSet::new();
    while let Ok(message) = two.messages.try_recv() {
        if let Some(ToDispatcher::Snapshot(part)) = message.message {
            ready.extend(part.ready.into_iter().map(|task| task.run_id));
        }
    }
    assert_eq!(ready.len(), usize::from(PLANS));
}

#[tokio::test]
async fn a_rebuild_folds_runs_of_more_plans_than_are_cached() {
    let database = TestDatabase::create().await.unwrap();
    let one = runs_of_many_plans(&database).await;
    let rebuilt = rebuild(&one.store, |_| ()).await.unwrap();
    assert_eq!(readable_runs(&one).await, i64::from(PLANS));
    assert!(rebuilt.iter().all(|table| table.equal), "{rebuilt:?}");
}
