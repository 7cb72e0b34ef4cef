//! Rebuilt tables equal the original ones.

use std::sync::Arc;

use servo_local::TestDatabase;
use servo_model::RunId;
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::sqlx::{self, Connection, PgConnection};
use servo_store::{Store, query};

use super::{
    acme, apply, assert_folded, attempt_id, claim, event_id, finished, instance, keep_plan,
    new_run, plan, run_id, states,
};
use crate::shards::{Command, Rebuilt, RunEvent, rebuild};

/// A database with ended, failed and open runs.
async fn lived_in() -> (TestDatabase, Store) {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let plan = plan(&[&[], &[0], &[0], &[1, 2]]);
    keep_plan(&database, &plan).await;
    for n in 1..=6 {
        let id = run_id(n);
        assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
        for ordinal in 0..u32::from(n.min(4)) {
            assert_folded(&apply(&one, claim(id, ordinal, 1, 1)).await);
            let mut end = finished(id, ordinal, 1);
            end.outputs = vec![pb::Output {
                asset_key: format!("t/a{ordinal}"),
                ..Default::default()
            }];
            if (n, ordinal) == (6, 1) {
                end.outcome = pb::Outcome::Failed.into();
                end.error = Some(pb::TaskError {
                    message: "no".to_owned(),
                    ..Default::default()
                });
            }
            assert_folded(&apply(&one, finish_with(id, ordinal, end)).await);
            if (n, ordinal) == (6, 2) {
                break;
            }
        }
    }
    // Several runs write the same partitions at once; the result must not depend on which share a
    // flush.
    for n in 7..=12 {
        assert_folded(&apply(&one, new_run(&one, &plan, run_id(n), "f")).await);
        assert_folded(&apply(&one, claim(run_id(n), 0, 1, 1)).await);
    }
    let ends = (7..=12).map(|n| {
        let mut end = finished(run_id(n), 0, 1);
        end.outputs = vec![pb::Output {
            asset_key: "t/a0".to_owned(),
            ..Default::default()
        }];
        apply(&one, finish_with(run_id(n), 0, end))
    });
    futures::future::join_all(ends)
        .await
        .iter()
        .for_each(assert_folded);
    one.lease_loop.leave().await;
    (database, one.store)
}

pub(super) fn finish_with(id: RunId, ordinal: u32, end: pb::TaskFinished) -> Command {
    Command::Event(Arc::new(RunEvent {
        tenant: acme(),
        run_id: id,
        event_id: event_id(),
        idempotency_key: format!("finished:{}", attempt_id(id, ordinal, 1)),
        body: Body::TaskFinished(end),
        trace: None,
    }))
}

#[tokio::test]
async fn inv_21_rebuilt_tables_equal_the_original_ones() {
    let (_database, store) = lived_in().await;
    let mut shards = 0;
    let rebuilt = rebuild(&store, |_| shards += 1).await.unwrap();
    assert_eq!(shards, 64);
    let rows = |table: &str| {
        rebuilt
            .iter()
            .find(|t| t.table == table)
            .map(|t| t.rows_before)
            .unwrap()
    };
    assert_eq!((rows("runs"), rows("tasks")), (12, 48));
    assert!(
        rows("partitions") > 0 && rows("materializations") > 0,
        "{rebuilt:?}"
    );
    assert!(rebuilt.iter().all(|table| table.equal), "{rebuilt:?}");
}

#[tokio::test]
async fn a_rebuild_repairs_and_reports_wrong_rows() {
    let (_database, store) = lived_in().await;
    for broken in [
        "UPDATE scheduler.tasks SET attempt = 9 WHERE ordinal = 0",
        "DELETE FROM scheduler.materializations",
        "UPDATE scheduler.partitions SET attempted_at = now() + interval '1 day'",
    ] {
        store.loops().execute(query(broken)).await.unwrap();
    }
    let unequal = |rebuilt: Vec<Rebuilt>| -> Vec<&str> {
        rebuilt
            .into_iter()
            .filter(|table| !table.equal)
            .map(|table| table.table)
            .collect()
    };
    let first = unequal(rebuild(&store, |_| ()).await.unwrap());
    assert_eq!(first, ["tasks", "materializations", "partitions"]);
    assert!(unequal(rebuild(&store, |_| ()).await.unwrap()).is_empty());
}

#[tokio::test]
async fn a_rebuild_may_exceed_the_statement_timeout() {
    let (database, store) = lived_in().await;
    let slow = "CREATE FUNCTION scheduler.slow() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN PERFORM pg_sleep(2.6); RETURN NULL; END $$;
                CREATE TRIGGER slow AFTER DELETE ON scheduler.partitions
                    FOR EACH STATEMENT EXECUTE FUNCTION scheduler.slow();";
    let mut admin = PgConnection::connect(&database.admin_url()).await.unwrap();
    sqlx::raw_sql(slow).execute(&mut admin).await.unwrap();
    let rebuilt = rebuild(&store, |_| ()).await.unwrap();
    assert!(rebuilt.iter().all(|table| table.equal), "{rebuilt:?}");
}

#[tokio::test]
async fn a_rebuild_is_refused_while_a_scheduler_holds_shards() {
    let (database, store) = lived_in().await;
    let two = instance(&database, "two").await;
    let before = states(&store, run_id(4)).await;
    let refused = rebuild(&store, |_| ()).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("a scheduler holds 64 of the shards"),
        "{refused}"
    );
    assert_eq!(states(&store, run_id(4)).await, before);
    two.lease_loop.leave().await;
}

#[tokio::test]
async fn a_rebuild_fails_when_the_ledger_has_a_gap() {
    let (database, store) = lived_in().await;
    let shard = run_id(4).shard();
    let lose = "DELETE FROM ledger.events WHERE stream = 1 AND shard = $1 AND position = 3";
    let mut admin = PgConnection::connect(&database.admin_url()).await.unwrap();
    let lose = sqlx::query(lose).bind(shard.get());
    assert_eq!(lose.execute(&mut admin).await.unwrap().rows_affected(), 1);
    let incomplete = rebuild(&store, |_| ()).await.unwrap_err();
    assert_eq!(
        incomplete.to_string(),
        format!(
            "the ledger lacks events of shard {shard}, so its tables are incomplete; restore the ledger and rebuild again"
        )
    );
}
