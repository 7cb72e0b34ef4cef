//! Limits on runs, with the shards of a tenant's runs spread over two instances.

use std::sync::Arc;
use std::time::Duration;

use servo_local::TestDatabase;
use servo_model::RunId;
use servo_model::states::RunState;
use servo_proto::v1 as pb;
use servo_store::query;
use servo_store::sqlx::{self, AssertSqlSafe, Connection, PgConnection};

use super::{
    Instance, apply, claim, finish, folded, instance, keep_plan, limited, new_plan, new_run, plan,
    run_id, states,
};
use crate::core::{Excess, Limits, RunLimits};
use crate::shards::{Command, CommandOutcome, NewRun, PlanOutcome, SubmitError, all_shards};

fn only(limits: RunLimits) -> Limits {
    Limits {
        tenants: [("acme".parse().unwrap(), Arc::new(limits))].into(),
        ..Limits::none()
    }
}

fn at_once(max: u32) -> RunLimits {
    RunLimits {
        max_concurrent_runs: Some(max),
        ..RunLimits::default()
    }
}

/// Gives a run that was called its plan, as the loop beside the lanes does.
async fn start_next(instance: &mut Instance, plan: &pb::Plan) -> (RunId, CommandOutcome) {
    let called = instance.waiting.recv().await.unwrap();
    assert_eq!(
        called.requested_plan.unwrap().plan_id.to_string(),
        plan.plan_id,
        "planned when it was asked for"
    );
    let result = Ok(new_plan(instance, plan));
    let plan = PlanOutcome {
        tenant: "acme".to_owned(),
        run_id: called.run_id,
        result,
    };
    (
        called.run_id,
        apply(instance, Command::Plan(Arc::new(plan))).await.outcome,
    )
}

async fn in_flight(instance: &Instance) -> i64 {
    let count = "SELECT count(*) FROM scheduler.runs WHERE state BETWEEN 2 AND 4";
    instance
        .store
        .loops()
        .all::<(i64,)>(query(count))
        .await
        .unwrap()[0]
        .0
}

#[tokio::test]
async fn above_the_limit_runs_wait_and_start_oldest_first() {
    let database = TestDatabase::create().await.unwrap();
    let mut one = limited(&database, "one", only(at_once(1))).await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    for n in [1, 66, 3] {
        folded(&apply(&one, new_run(&one, &plan, run_id(n), "f")).await);
    }
    assert_eq!(
        states(&one.store, run_id(1)).await.0,
        RunState::Running.code()
    );
    for n in [66, 3] {
        assert_eq!(
            states(&one.store, run_id(n)).await,
            (RunState::Pending.code(), vec![])
        );
    }
    for (ends, starts) in [(1, 66), (66, 3)] {
        folded(&apply(&one, claim(run_id(ends), 0, 1, 1)).await);
        folded(&apply(&one, finish(run_id(ends), 0)).await);
        let (started, verdict) = start_next(&mut one, &plan).await;
        assert_eq!(
            (started, verdict),
            (
                run_id(starts),
                CommandOutcome::Fold(crate::core::Verdict::Folded)
            )
        );
    }
    assert!(one.waiting.try_recv().is_err(), "nobody is called twice");
}

#[tokio::test]
async fn f19_two_instances_never_let_in_more_than_the_limit() {
    let database = TestDatabase::create().await.unwrap();
    let limits = only(at_once(3));
    let one = limited(&database, "one", limits.clone()).await;
    let two = limited(&database, "two", limits).await;
    for _ in 0..3 {
        one.lease_keeper.clone().run_once().await.unwrap();
        two.lease_keeper.clone().run_once().await.unwrap();
    }
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    let submit = async |n: u8| {
        for instance in [&one, &two].iter().cycle() {
            let requested = new_run(instance, &plan, run_id(n), "f");
            match instance
                .shards
                .submit(run_id(n).shard(), vec![requested])
                .await
            {
                Ok(done) => return folded(&done[0]),
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    futures::future::join_all((0..40).map(submit)).await;
    assert_eq!(in_flight(&one).await, 3);
    let waiting: Vec<(i64,)> = one
        .store
        .loops()
        .all(query("SELECT count(*) FROM scheduler.runs WHERE state = 1"))
        .await
        .unwrap();
    assert_eq!(waiting, [(37,)]);
}

#[tokio::test]
async fn a_place_that_another_took_leaves_the_run_waiting_and_it_is_called_again() {
    let database = TestDatabase::create().await.unwrap();
    let mut one = limited(&database, "one", only(at_once(1))).await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    for n in [1, 2] {
        folded(&apply(&one, new_run(&one, &plan, run_id(n), "f")).await);
    }
    one.board.send_replace(only(at_once(2)));
    one.shards.recheck_capacity();
    let called = one.waiting.recv().await.unwrap();
    // The limit goes down again before the plan is there.
    one.board.send_replace(only(at_once(1)));
    let result = Ok(new_plan(&one, &plan));
    let late = PlanOutcome {
        tenant: "acme".to_owned(),
        run_id: called.run_id,
        result,
    };
    assert_eq!(
        apply(&one, Command::Plan(Arc::new(late))).await.outcome,
        CommandOutcome::NoCapacity
    );
    assert_eq!(
        states(&one.store, run_id(2)).await.0,
        RunState::Pending.code()
    );
    one.board.send_replace(only(at_once(2)));
    one.shards.recheck_capacity();
    assert_eq!(start_next(&mut one, &plan).await.0, run_id(2));
    assert_eq!(in_flight(&one).await, 2);
}

#[tokio::test]
async fn a_limit_that_comes_before_the_plan_leaves_the_run_waiting_for_its_turn() {
    let database = TestDatabase::create().await.unwrap();
    let mut one = instance(&database, "one").await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    let Command::Run(new) = new_run(&one, &plan, run_id(4), "f") else {
        unreachable!()
    };
    let new = NewRun {
        plan: None,
        ..Arc::into_inner(new).unwrap()
    };
    folded(&apply(&one, Command::Run(Arc::new(new))).await);
    let called = one.waiting.recv().await.unwrap();
    one.board.send_replace(only(at_once(0)));
    let result = |one: &Instance| {
        let result = Ok(new_plan(one, &plan));
        Command::Plan(Arc::new(PlanOutcome {
            tenant: "acme".to_owned(),
            run_id: called.run_id,
            result,
        }))
    };
    assert_eq!(
        apply(&one, result(&one)).await.outcome,
        CommandOutcome::NoCapacity
    );
    one.board.send_replace(only(at_once(1)));
    one.shards.recheck_capacity();
    let again = tokio::time::timeout(Duration::from_secs(20), one.waiting.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(again.run_id, run_id(4));
    folded(&apply(&one, result(&one)).await);
}

/// Hides the rows of runs from everybody, or shows them again.
async fn rename_runs(database: &TestDatabase, from: &str, to: &str) {
    let mut admin = PgConnection::connect(&database.admin_url()).await.unwrap();
    let rename = format!("ALTER TABLE scheduler.{from} RENAME TO {to}");
    sqlx::raw_sql(AssertSqlSafe(rename))
        .execute(&mut admin)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_run_that_was_called_is_called_again_after_its_shard_could_not_be_loaded() {
    let database = TestDatabase::create().await.unwrap();
    let mut one = limited(&database, "one", only(at_once(0))).await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    folded(&apply(&one, new_run(&one, &plan, run_id(2), "f")).await);
    one.board.send_replace(only(at_once(1)));
    one.shards.recheck_capacity();
    let called = one.waiting.recv().await.unwrap();
    rename_runs(&database, "runs", "hidden").await;
    let late = PlanOutcome {
        tenant: called.tenant,
        run_id: called.run_id,
        result: Ok(new_plan(&one, &plan)),
    };
    let lost = one
        .shards
        .submit(called.run_id.shard(), vec![Command::Plan(Arc::new(late))])
        .await;
    assert!(matches!(lost, Err(SubmitError::Unavailable(_))), "{lost:?}");
    rename_runs(&database, "hidden", "runs").await;
    one.lease_keeper.clone().run_once().await.unwrap();
    one.shards.recheck_capacity();
    let again = tokio::time::timeout(Duration::from_secs(20), start_next(&mut one, &plan)).await;
    assert_eq!(again.unwrap().0, run_id(2));
}

#[tokio::test]
async fn whoever_holds_the_shard_next_knows_who_waits() {
    let database = TestDatabase::create().await.unwrap();
    let one = limited(&database, "one", only(at_once(0))).await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    folded(&apply(&one, new_run(&one, &plan, run_id(7), "f")).await);
    one.lease_keeper.leave().await;
    let mut two = instance(&database, "two").await;
    assert_eq!(start_next(&mut two, &plan).await.0, run_id(7));
}

#[tokio::test]
async fn until_limits_are_known_runs_are_accepted_and_wait() {
    let database = TestDatabase::create().await.unwrap();
    let mut one = limited(&database, "one", Limits::default()).await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    folded(&apply(&one, new_run(&one, &plan, run_id(8), "f")).await);
    assert_eq!(
        states(&one.store, run_id(8)).await.0,
        RunState::Pending.code()
    );
    one.board.send_replace(Limits::none());
    one.shards.recheck_capacity();
    assert_eq!(start_next(&mut one, &plan).await.0, run_id(8));
    assert_eq!(
        states(&one.store, run_id(8)).await.0,
        RunState::Running.code()
    );
}

#[tokio::test]
async fn too_many_in_the_queue_or_in_a_day_are_refused_and_leave_nothing() {
    let database = TestDatabase::create().await.unwrap();
    let queue = RunLimits {
        max_queued_runs: Some(1),
        ..at_once(1)
    };
    let one = limited(&database, "one", only(queue)).await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    for n in [1, 2] {
        folded(&apply(&one, new_run(&one, &plan, run_id(n), "f")).await);
    }
    let refused = apply(&one, new_run(&one, &plan, run_id(3), "f")).await;
    assert_eq!(
        refused.outcome,
        CommandOutcome::OverLimit(Excess::Queued { max: 1 })
    );
    one.board.send_replace(only(RunLimits {
        max_daily_runs: Some(2),
        ..RunLimits::default()
    }));
    let refused = apply(&one, new_run(&one, &plan, run_id(3), "f")).await;
    assert_eq!(
        refused.outcome,
        CommandOutcome::OverLimit(Excess::Daily { max: 2 })
    );
    let events: Vec<(i64,)> = one
        .store
        .loops()
        .all(query(
            "SELECT sum(head)::bigint FROM ledger.shards WHERE stream = 1",
        ))
        .await
        .unwrap();
    assert_eq!(
        events,
        [(3,)],
        "a request with its plan, and one that waits"
    );
}

#[tokio::test]
async fn however_long_the_history_is_today_is_found_by_its_beginning() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let mut tx = one.store.loops().begin().await.unwrap();
    // So few rows would be read as they come.
    tx.execute(query("SET LOCAL enable_seqscan = off"))
        .await
        .unwrap();
    let explain = query(concat!(
        "EXPLAIN ",
        include_str!("../../store/runs_in_use.sql")
    ));
    let explain = explain
        .bind(vec!["acme"])
        .bind(vec![5_i64])
        .bind(all_shards());
    let lines: Vec<(String,)> = tx.all(explain).await.unwrap();
    let by_age = |line: &str| line.contains("Index Cond") && line.contains("created_at >=");
    assert!(lines.iter().any(|(line,)| by_age(line)), "{lines:#?}");
}
