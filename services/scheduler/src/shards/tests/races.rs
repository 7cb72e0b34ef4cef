//! F18: concurrent flushes and appends never deadlock, and a statement that loses a race is
//! retried.

use std::sync::Arc;

use futures::future::join_all;
use prost::Message;
use servo_local::TestDatabase;
use servo_model::states::{RunState, TaskState};
use servo_model::{EventType, RunId, Service, ShardId, Stream};
use servo_proto::v1 as pb;
use servo_store::sqlx::{self, AssertSqlSafe, Connection, PgConnection};
use servo_store::{NewEvent, Store};
use uuid::Uuid;

use super::rebuild::finish_with;
use super::{
    Instance, LEASE, acme, apply, assert_folded, attempt_id, claim, event_id, finish, finished,
    instance, keep_plan, new_run, plan, run_id, states, store,
};
use crate::core::Verdict;
use crate::shards::{Command, CommandResult, Enqueued, SubmitError};

/// The number of deadlocks in this database. Backends report them when they are idle or exit, so
/// the stores are closed first.
async fn deadlocks(database: &TestDatabase, stores: &[&Store]) -> i64 {
    join_all(stores.iter().map(|store| store.close())).await;
    let mut admin = PgConnection::connect(&database.admin_url()).await.unwrap();
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    while sqlx::query_scalar::<_, i64>(others)
        .fetch_one(&mut admin)
        .await
        .unwrap()
        > 0
    {
        tokio::task::yield_now().await;
    }
    let count = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    sqlx::query_scalar(count)
        .fetch_one(&mut admin)
        .await
        .unwrap()
}

/// An event of an unknown run, which the fold skips.
fn foreign(shard: ShardId) -> NewEvent {
    let id = event_id();
    let nobody = std::array::from_fn(|place| {
        if place == 15 {
            u8::MAX
        } else {
            shard.get().to_be_bytes()[1]
        }
    });
    NewEvent {
        event_id: id,
        kind: EventType::TaskFinished,
        version: 1,
        shard,
        tenant: acme().into(),
        workspace: "prod".to_owned(),
        idempotency_key: format!("finished:{id}"),
        correlation_id: Some(Uuid::from_bytes(nobody)),
        causation_id: None,
        payload: pb::Event::default().encode_to_vec(),
    }
}

/// Submits until it succeeds. A shard that could not be read because of locks is loaded again by
/// the lease keeper.
async fn submit_until_folded(one: &Instance, command: impl Fn() -> Command) {
    loop {
        let command = command();
        match one
            .shards
            .submit(command.run_id().shard(), vec![command])
            .await
        {
            Ok(done) => {
                let done = &done[0].result;
                let folded = matches!(
                    done,
                    CommandResult::Exists
                        | CommandResult::Fold(Verdict::Folded | Verdict::Duplicate)
                );
                assert!(folded, "{done:?}");
                return;
            }
            Err(SubmitError::KeyTaken | SubmitError::Stopped) => {
                panic!("the command cannot succeed")
            }
            Err(_) => drop(one.lease_loop.clone().run_once().await),
        }
    }
}

fn making(id: RunId, ordinal: u32) -> Command {
    let outputs = vec![pb::Output {
        asset_key: format!("t/a{ordinal}"),
        ..Default::default()
    }];
    finish_with(
        id,
        ordinal,
        pb::TaskFinished {
            outputs,
            ..finished(id, ordinal, 1)
        },
    )
}

/// A run of three tasks that writes the same three partitions as all other runs.
async fn run_to_its_end(one: &Instance, plan: &pb::Plan, id: RunId) {
    submit_until_folded(one, || new_run(one, plan, id, "f")).await;
    // Half of the runs in ascending order, half in descending order.
    let tasks = [0, 1, 2].map(|n| {
        if id.as_bytes()[0].is_multiple_of(2) {
            n
        } else {
            2 - n
        }
    });
    let attempts = tasks.map(async |ordinal| {
        submit_until_folded(one, || claim(id, ordinal, 1, 1)).await;
        submit_until_folded(one, || making(id, ordinal)).await;
    });
    join_all(attempts).await;
}

#[tokio::test]
async fn f18_folds_and_appends_over_the_same_shards_and_partitions_never_deadlock() {
    let database = TestDatabase::create().await.unwrap();
    let (one, callback) = (
        instance(&database, "one").await,
        store(&database, Service::Callback),
    );
    let plan = plan(&[&[], &[], &[]]);
    keep_plan(&database, &plan).await;
    let rounds: u8 = if std::env::var_os("SERVO_FULL").is_some() {
        100
    } else {
        1
    };
    for round in 0..rounds {
        let id = |n: u8| {
            RunId::from_bytes(std::array::from_fn(
                |place| if place == 15 { round } else { n },
            ))
        };
        let runs = join_all((0..128).map(|n| run_to_its_end(&one, &plan, id(n))));
        // Batches over many shards, in different orders.
        let appends = join_all((0..64).map(|n| {
            let step = if n % 2 == 0 { 7 } else { 57 };
            let batch = (0..16)
                .map(|k| foreign(Stream::Execution.shard((n + k * step) % 64).unwrap()))
                .collect();
            callback.ledger().append(batch)
        }));
        let (_, appended) = tokio::join!(runs, appends);
        appended
            .into_iter()
            .for_each(|answer| drop(answer.unwrap()));
        for n in 0..128 {
            assert_eq!(
                states(&one.store, id(n)).await.0,
                RunState::Succeeded.code()
            );
        }
    }
    assert_eq!(deadlocks(&database, &[&one.store, &callback]).await, 0);
}

/// The claim of a pushed task, and the report that the queue accepted it.
fn pushed(id: RunId) -> (Command, Command) {
    let Command::Claim(claimed) = claim(id, 0, 1, 1) else {
        unreachable!()
    };
    let mut claimed = Arc::into_inner(claimed).unwrap();
    claimed.message.mode = pb::DispatchMode::Push.into();
    let entry = pb::DispatchEnqueued {
        run_id: id.to_string(),
        task: claimed.message.task,
        attempt_id: attempt_id(id, 0, 1).to_string(),
        queue_entry_id: "d_x".to_owned(),
        queue: "q".to_owned(),
    };
    let enqueued = Enqueued {
        stream: 1,
        run_id: id,
        task: claimed.task,
        event_id: event_id(),
        entry,
    };
    (
        Command::Claim(Arc::new(claimed)),
        Command::Enqueued(Arc::new(enqueued)),
    )
}

#[tokio::test]
async fn a_queue_report_is_folded_after_its_flush_was_retried() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (plan, id) = (plan(&[&[]]), run_id(5));
    keep_plan(&database, &plan).await;
    assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    let (claimed, enqueued) = pushed(id);
    assert_folded(&apply(&one, claimed).await);
    // The holder has not read this event: its flush is retried with reloaded runs.
    let callback = store(&database, Service::Callback);
    callback
        .ledger()
        .append(vec![foreign(id.shard())])
        .await
        .unwrap();
    assert_folded(&apply(&one, enqueued).await);
    assert_eq!(
        states(&one.store, id).await.1,
        [TaskState::Dispatched.code()]
    );
}

#[tokio::test]
async fn an_instance_with_an_expired_lease_does_not_refuse_events() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (plan, id) = (plan(&[&[]]), run_id(6));
    keep_plan(&database, &plan).await;
    assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    tokio::time::sleep(LEASE).await;
    let two = instance(&database, "two").await;
    submit_until_folded(&two, || claim(id, 0, 1, 1)).await;
    // Its memory does not contain the attempt.
    let refused = one
        .shards
        .submit(id.shard(), vec![finish(id, 0)])
        .await
        .unwrap_err();
    assert_eq!(refused, SubmitError::NotHeld);
    assert_folded(&apply(&two, finish(id, 0)).await);
}

/// Makes the next statement that writes to the table fail with a serialization error, and about
/// half of the later ones.
async fn race_at(database: &TestDatabase, table: &str, code: &str) {
    let mut admin = PgConnection::connect(&database.admin_url()).await.unwrap();
    // A sequence keeps counting when its statement fails. Randomness lets a sequence of statements
    // succeed eventually.
    let harm = format!(
        "CREATE SCHEMA harm;
         GRANT USAGE ON SCHEMA harm TO PUBLIC;
         CREATE SEQUENCE harm.tries;
         CREATE FUNCTION harm.race() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
         BEGIN
             IF nextval('harm.tries') = 1 OR random() < 0.5 THEN
                 RAISE 'lost a race' USING ERRCODE = '{code}';
             END IF;
             RETURN NULL;
         END $$;
         CREATE TRIGGER race AFTER INSERT OR UPDATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION harm.race();"
    );
    sqlx::raw_sql(AssertSqlSafe(harm))
        .execute(&mut admin)
        .await
        .unwrap();
}

#[tokio::test]
async fn f18_a_lost_race_is_retried_and_ends_no_loop() {
    let tables = [
        "ledger.shards",
        "ledger.events",
        "scheduler.runs",
        "scheduler.tasks",
        "scheduler.partitions",
    ];
    for (n, table) in tables.into_iter().enumerate() {
        let code = if n % 2 == 0 { "40P01" } else { "40001" };
        let database = TestDatabase::create().await.unwrap();
        let one = instance(&database, "one").await;
        let mut plan = plan(&[&[], &[], &[]]);
        let soon = prost_types::Duration {
            seconds: 0,
            nanos: 50_000_000,
        };
        plan.assets[0].timeouts = Some(pb::Timeouts {
            dispatch_ack: Some(soon),
            ..Default::default()
        });
        keep_plan(&database, &plan).await;
        race_at(&database, table, code).await;
        // A request, a timer, and an append of another service.
        let id = run_id(u8::try_from(n).unwrap());
        submit_until_folded(&one, || new_run(&one, &plan, id, "f")).await;
        submit_until_folded(&one, || claim(id, 0, 1, 1)).await;
        while states(&one.store, id).await.1[0] != TaskState::Ready.code() {
            // A shard that could not be reloaded is loaded again by the lease keeper.
            let _ = one.lease_loop.clone().run_once().await;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        super::record_finish(&database, id).await;
        submit_until_folded(&one, || claim(id, 1, 1, 1)).await;
        submit_until_folded(&one, || making(id, 1)).await;
        let mut admin = PgConnection::connect(&database.admin_url()).await.unwrap();
        let tries: i64 = sqlx::query_scalar("SELECT last_value FROM harm.tries")
            .fetch_one(&mut admin)
            .await
            .unwrap();
        assert!(tries >= 2, "{table}: no race was lost");
    }
}
