//! Limits on runs.

use std::sync::Arc;
use std::time::Duration;

use servo_local::TestDatabase;
use servo_model::RunId;
use servo_model::states::RunState;
use servo_proto::v1 as pb;
use servo_store::query;
use servo_store::sqlx::{self, AssertSqlSafe, Connection, PgConnection};

use super::sizes::large_run;
use super::{
    Instance, acme, apply, assert_folded, claim, finish, instance, keep_plan, limited, new_plan,
    new_run, plan, run_id, states, with_plan_queue, without_plan,
};
use crate::core::{Excess, Limits, RunLimits};
use crate::shards::{Command, CommandResult, PlanResult, SubmitError};
use crate::store::limits;
use crate::store::shards::all_shards;

fn only(limits: RunLimits) -> Limits {
    Limits {
        tenants: [("acme".parse().unwrap(), Arc::new(limits))].into(),
        ..Limits::none()
    }
}

fn max_concurrent(max: u32) -> RunLimits {
    RunLimits {
        max_concurrent_runs: Some(max),
        ..RunLimits::default()
    }
}

/// Submits the plan of the next run that may start, as the plan requester does.
async fn start_next(instance: &mut Instance, plan: &pb::Plan) -> (RunId, CommandResult) {
    let startable = instance.waiting.recv().await.unwrap();
    assert_eq!(
        startable.requested_plan.unwrap().plan_id.to_string(),
        plan.plan_id,
        "the plan of the request"
    );
    let result = Ok(new_plan(instance, plan));
    let plan = PlanResult {
        tenant: acme(),
        run_id: startable.run_id,
        result,
    };
    (
        startable.run_id,
        apply(instance, Command::Plan(Arc::new(plan))).await.result,
    )
}

async fn running_runs(instance: &Instance) -> i64 {
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
async fn runs_above_the_limit_wait_and_start_oldest_first() {
    let database = TestDatabase::create().await.unwrap();
    let mut one = limited(&database, "one", only(max_concurrent(1))).await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    for n in [1, 66, 3] {
        assert_folded(&apply(&one, new_run(&one, &plan, run_id(n), "f")).await);
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
        assert_folded(&apply(&one, claim(run_id(ends), 0, 1, 1)).await);
        assert_folded(&apply(&one, finish(run_id(ends), 0)).await);
        let (started, result) = start_next(&mut one, &plan).await;
        assert_eq!(
            (started, result),
            (
                run_id(starts),
                CommandResult::Fold(crate::core::Verdict::Folded)
            )
        );
    }
    assert!(one.waiting.try_recv().is_err(), "no run is started twice");
}

#[tokio::test]
async fn f19_two_instances_never_exceed_the_limit() {
    let database = TestDatabase::create().await.unwrap();
    let limits = only(max_concurrent(3));
    let one = limited(&database, "one", limits.clone()).await;
    let two = limited(&database, "two", limits).await;
    for _ in 0..3 {
        one.lease_loop.clone().run_once().await.unwrap();
        two.lease_loop.clone().run_once().await.unwrap();
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
                Ok(done) => return assert_folded(&done[0]),
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    futures::future::join_all((0..40).map(submit)).await;
    assert_eq!(running_runs(&one).await, 3);
    let waiting: Vec<(i64,)> = one
        .store
        .loops()
        .all(query("SELECT count(*) FROM scheduler.runs WHERE state = 1"))
        .await
        .unwrap();
    assert_eq!(waiting, [(37,)]);
}

#[tokio::test]
async fn a_run_waits_again_when_its_capacity_is_gone() {
    let database = TestDatabase::create().await.unwrap();
    let mut one = limited(&database, "one", only(max_concurrent(1))).await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    for n in [1, 2] {
        assert_folded(&apply(&one, new_run(&one, &plan, run_id(n), "f")).await);
    }
    one.limits_tx.send_replace(only(max_concurrent(2)));
    one.shards.recheck_capacity();
    let startable = one.waiting.recv().await.unwrap();
    // The limit is lowered before the plan arrives.
    one.limits_tx.send_replace(only(max_concurrent(1)));
    let result = Ok(new_plan(&one, &plan));
    let late = PlanResult {
        tenant: acme(),
        run_id: startable.run_id,
        result,
    };
    assert_eq!(
        apply(&one, Command::Plan(Arc::new(late))).await.result,
        CommandResult::NoCapacity
    );
    assert_eq!(
        states(&one.store, run_id(2)).await.0,
        RunState::Pending.code()
    );
    one.limits_tx.send_replace(only(max_concurrent(2)));
    one.shards.recheck_capacity();
    assert_eq!(start_next(&mut one, &plan).await.0, run_id(2));
    assert_eq!(running_runs(&one).await, 2);
}

#[tokio::test]
async fn a_limit_that_arrives_before_the_plan_makes_the_run_wait() {
    let database = TestDatabase::create().await.unwrap();
    let mut one = instance(&database, "one").await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    let new = without_plan(new_run(&one, &plan, run_id(4), "f"));
    assert_folded(&apply(&one, new).await);
    let startable = one.waiting.recv().await.unwrap();
    one.limits_tx.send_replace(only(max_concurrent(0)));
    let plan_command = |one: &Instance| {
        let result = Ok(new_plan(one, &plan));
        Command::Plan(Arc::new(PlanResult {
            tenant: acme(),
            run_id: startable.run_id,
            result,
        }))
    };
    assert_eq!(
        apply(&one, plan_command(&one)).await.result,
        CommandResult::NoCapacity
    );
    one.limits_tx.send_replace(only(max_concurrent(1)));
    one.shards.recheck_capacity();
    let again = tokio::time::timeout(Duration::from_secs(20), one.waiting.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(again.run_id, run_id(4));
    assert_folded(&apply(&one, plan_command(&one)).await);
}

/// Hides the table of runs, or shows it again.
async fn rename_runs(database: &TestDatabase, from: &str, to: &str) {
    let mut admin = PgConnection::connect(&database.admin_url()).await.unwrap();
    let rename = format!("ALTER TABLE scheduler.{from} RENAME TO {to}");
    sqlx::raw_sql(AssertSqlSafe(rename))
        .execute(&mut admin)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_starting_run_is_started_again_after_its_shard_was_reloaded() {
    let database = TestDatabase::create().await.unwrap();
    let mut one = limited(&database, "one", only(max_concurrent(0))).await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    assert_folded(&apply(&one, new_run(&one, &plan, run_id(2), "f")).await);
    one.limits_tx.send_replace(only(max_concurrent(1)));
    one.shards.recheck_capacity();
    let startable = one.waiting.recv().await.unwrap();
    rename_runs(&database, "runs", "hidden").await;
    let late = PlanResult {
        tenant: startable.tenant,
        run_id: startable.run_id,
        result: Ok(new_plan(&one, &plan)),
    };
    let lost = one
        .shards
        .submit(
            startable.run_id.shard(),
            vec![Command::Plan(Arc::new(late))],
        )
        .await;
    assert!(matches!(lost, Err(SubmitError::Unavailable(_))), "{lost:?}");
    rename_runs(&database, "hidden", "runs").await;
    one.lease_loop.clone().run_once().await.unwrap();
    one.shards.recheck_capacity();
    let again = tokio::time::timeout(Duration::from_secs(20), start_next(&mut one, &plan)).await;
    assert_eq!(again.unwrap().0, run_id(2));
}

#[tokio::test]
async fn the_next_holder_finds_waiting_runs() {
    let database = TestDatabase::create().await.unwrap();
    let one = limited(&database, "one", only(max_concurrent(0))).await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    assert_folded(&apply(&one, new_run(&one, &plan, run_id(7), "f")).await);
    one.lease_loop.leave().await;
    let mut two = instance(&database, "two").await;
    assert_eq!(start_next(&mut two, &plan).await.0, run_id(7));
}

#[tokio::test]
async fn runs_wait_until_limits_are_known() {
    let database = TestDatabase::create().await.unwrap();
    let mut one = limited(&database, "one", Limits::default()).await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    assert_folded(&apply(&one, new_run(&one, &plan, run_id(8), "f")).await);
    assert_eq!(
        states(&one.store, run_id(8)).await.0,
        RunState::Pending.code()
    );
    one.limits_tx.send_replace(Limits::none());
    one.shards.recheck_capacity();
    assert_eq!(start_next(&mut one, &plan).await.0, run_id(8));
    assert_eq!(
        states(&one.store, run_id(8)).await.0,
        RunState::Running.code()
    );
}

#[tokio::test]
async fn runs_above_the_queue_or_daily_limit_are_refused_without_an_event() {
    let database = TestDatabase::create().await.unwrap();
    let queue = RunLimits {
        max_queued_runs: Some(1),
        ..max_concurrent(1)
    };
    let one = limited(&database, "one", only(queue)).await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    for n in [1, 2] {
        assert_folded(&apply(&one, new_run(&one, &plan, run_id(n), "f")).await);
    }
    let refused = apply(&one, new_run(&one, &plan, run_id(3), "f")).await;
    assert_eq!(
        refused.result,
        CommandResult::OverLimit(Excess::Queued { max: 1 })
    );
    one.limits_tx.send_replace(only(RunLimits {
        max_daily_runs: Some(2),
        ..RunLimits::default()
    }));
    let refused = apply(&one, new_run(&one, &plan, run_id(3), "f")).await;
    assert_eq!(
        refused.result,
        CommandResult::OverLimit(Excess::Daily { max: 2 })
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
        "a request with its plan, and a request that waits"
    );
}

#[tokio::test]
async fn runs_of_today_are_read_by_an_index_range() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let mut tx = one.store.loops().begin().await.unwrap();
    // Postgres would scan so few rows.
    tx.execute(query("SET LOCAL enable_seqscan = off"))
        .await
        .unwrap();
    let explain = query(concat!(
        "EXPLAIN ",
        include_str!("../../store/count_runs_in_use.sql")
    ));
    let explain = explain
        .bind(vec!["acme"])
        .bind(vec![5_i64])
        .bind(all_shards());
    let lines: Vec<(String,)> = tx.all(explain).await.unwrap();
    let by_age = |line: &str| line.contains("Index Cond") && line.contains("created_at >=");
    assert!(lines.iter().any(|(line,)| by_age(line)), "{lines:#?}");
}

#[tokio::test]
async fn a_run_that_is_set_aside_does_not_block_waiting_runs() {
    let database = TestDatabase::create().await.unwrap();
    let mut one = limited(&database, "one", only(max_concurrent(0))).await;
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    for n in [1, 2] {
        assert_folded(&apply(&one, new_run(&one, &plan, run_id(n), "f")).await);
    }
    let set_aside = "UPDATE scheduler.runs SET set_aside = 'x' WHERE run_id = $1";
    let uuid = uuid::Uuid::from_bytes(*run_id(1).as_bytes());
    let loops = one.store.loops();
    loops.execute(query(set_aside).bind(uuid)).await.unwrap();
    one.limits_tx.send_replace(only(RunLimits {
        max_queued_runs: Some(1),
        ..max_concurrent(1)
    }));
    one.shards.recheck_capacity();
    let started = tokio::time::timeout(Duration::from_secs(5), start_next(&mut one, &plan)).await;
    assert_eq!(started.unwrap().0, run_id(2));
    // It does not count as a waiting run either.
    assert_folded(&apply(&one, new_run(&one, &plan, run_id(3), "f")).await);
}

#[tokio::test]
async fn a_run_that_is_refused_for_its_size_takes_no_capacity() {
    let database = TestDatabase::create().await.unwrap();
    let one = limited(&database, "one", only(max_concurrent(1))).await;
    let (plan, large, small) = (plan(&[&[]]), run_id(7), neighbour(7));
    let commands = vec![
        large_run(&one, &plan, large, 100_000),
        new_run(&one, &plan, small, "f"),
    ];
    let applied = one.shards.submit(small.shard(), commands).await.unwrap();
    let result = &applied[0].result;
    assert!(matches!(result, CommandResult::TooLarge(_)), "{result:?}");
    assert_folded(&applied[1]);
    assert_eq!(states(&one.store, small).await.0, RunState::Running.code());
}

/// Another run of the same shard.
fn neighbour(n: u8) -> RunId {
    let mut id = *run_id(n).as_bytes();
    id[15] = !n;
    RunId::from_bytes(id)
}

#[tokio::test]
async fn runs_of_today_are_counted_up_to_the_daily_limit_over_all_workspaces() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let plan = plan(&[&[]]);
    for (n, workspace) in [(1, "prod"), (2, "prod"), (3, "dev"), (4, "dev")] {
        let Command::Run(new) = new_run(&one, &plan, run_id(n), "f") else {
            unreachable!()
        };
        let mut new = Arc::into_inner(new).unwrap();
        new.workspace = workspace.to_owned();
        assert_folded(&apply(&one, Command::Run(Arc::new(new))).await);
    }
    let mut tx = one.store.loops().begin().await.unwrap();
    for (daily_max, counted) in [(0, 0), (3, 3), (9, 4)] {
        let daily = [(acme(), daily_max)].into();
        let (in_use, _) = limits::count_in_use(&mut tx, &daily).await.unwrap();
        assert_eq!(in_use[&acme()].today, counted);
    }
}

#[tokio::test]
async fn plan_request_that_finds_its_queue_full_is_repeated() {
    let database = TestDatabase::create().await.unwrap();
    let mut one = with_plan_queue(&database, "one", Limits::none(), 1).await;
    let plan = plan(&[&[]]);
    for n in [1, 2] {
        let new = without_plan(new_run(&one, &plan, run_id(n), "f"));
        assert_folded(&apply(&one, new).await);
    }
    for n in [1, 2] {
        limits::notify_capacity(one.store.loops()).await.unwrap();
        let requested = tokio::time::timeout(Duration::from_secs(30), one.waiting.recv()).await;
        let requested = requested.unwrap().unwrap();
        assert_eq!(requested.run_id, run_id(n));
    }
    assert!(
        one.waiting.try_recv().is_err(),
        "no plan is requested twice"
    );
}
