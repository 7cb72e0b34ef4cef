//! Runs that are set aside because an event cannot be folded.

use super::*;

async fn reason(store: &Store, id: RunId) -> Option<String> {
    let mut tx = store.requests().begin(&acme()).await.unwrap();
    let uuid = Uuid::from_bytes(*id.as_bytes());
    let (reason,): (Option<String>,) = tx
        .one(query("SELECT set_aside FROM scheduler.runs WHERE run_id = $1").bind(uuid))
        .await
        .unwrap();
    reason
}

/// Two runs of one shard, each with a claimed task.
async fn two_runs(database: &TestDatabase, one: &Instance) -> (RunId, RunId) {
    let plan = plan(&[&[], &[]]);
    keep_plan(database, &plan).await;
    let (bad, good) = (
        run_id(7),
        RunId::from_bytes([[7; 8], [8; 8]].concat().try_into().unwrap()),
    );
    assert_eq!(bad.shard(), good.shard());
    for id in [bad, good] {
        assert_folded(&apply(one, new_run(one, &plan, id, "f")).await);
        assert_folded(&apply(one, claim(id, 0, 1, 1)).await);
    }
    (bad, good)
}

/// Makes the table of tasks refuse rows with this session.
pub(super) async fn refuse_session(database: &TestDatabase, session: &str) {
    let hash = i64::from_be_bytes(*Digest::of(session).as_bytes().first_chunk().unwrap());
    let refuse = format!(
        "ALTER TABLE scheduler.tasks ADD CONSTRAINT no_session CHECK (session IS DISTINCT FROM {hash})"
    );
    let mut admin = <sqlx::PgConnection as sqlx::Connection>::connect(&database.admin_url())
        .await
        .unwrap();
    sqlx::query(sqlx::AssertSqlSafe(refuse))
        .execute(&mut admin)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_run_with_an_unreadable_event_is_set_aside_and_its_shard_continues() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (bad, good) = two_runs(&database, &one).await;
    record(&database, bad, vec![0xff, 0xff]).await;
    record_finish(&database, good).await;
    assert_folded(&apply(&one, claim(good, 1, 1, 1)).await);
    assert_eq!(
        states(&one.store, good).await.1,
        [TaskState::Succeeded, TaskState::Queued].map(TaskState::code)
    );
    let message = reason(&one.store, bad).await.unwrap();
    assert!(message.contains("TaskFinished"), "{message}");
    assert_eq!(reason(&one.store, good).await, None);
    // Its state is kept, on this and on the next holder of its shard.
    assert_eq!(
        apply(&one, claim(bad, 1, 1, 1)).await.result,
        CommandResult::SetAside
    );
    one.lease_loop.leave().await;
    let two = instance(&database, "two").await;
    assert_eq!(
        apply(&two, finish(bad, 0)).await.result,
        CommandResult::SetAside
    );
    assert_eq!(
        states(&two.store, bad).await.1,
        [TaskState::Queued, TaskState::Ready].map(TaskState::code)
    );
    assert_folded(&apply(&two, finish(good, 1)).await);
}

#[tokio::test]
async fn only_the_run_whose_rows_cannot_be_stored_is_set_aside() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (bad, good) = two_runs(&database, &one).await;
    refuse_session(&database, "poison").await;
    let poison = pb::TaskFinished {
        session: "poison".to_owned(),
        ..finished(bad, 0, 1)
    };
    let body = Some(Body::TaskFinished(poison));
    record(
        &database,
        bad,
        pb::Event {
            version: 1,
            trace: None,
            body,
        }
        .encode_to_vec(),
    )
    .await;
    record_finish(&database, good).await;
    assert_folded(&apply(&one, claim(good, 1, 1, 1)).await);
    assert!(
        reason(&one.store, bad)
            .await
            .unwrap()
            .contains("no_session")
    );
    assert_eq!(
        states(&one.store, good).await.1,
        [TaskState::Succeeded, TaskState::Queued].map(TaskState::code)
    );
    assert_eq!(
        states(&one.store, bad).await.1,
        [TaskState::Queued, TaskState::Ready].map(TaskState::code)
    );
}

#[tokio::test]
async fn a_lane_reloads_its_shards_after_a_panic() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (_, good) = two_runs(&database, &one).await;
    let panic = super::super::lane::Message::Panic;
    one.shards.try_send(good.shard(), panic);
    let lost = one
        .shards
        .submit(good.shard(), vec![finish(good, 0)])
        .await
        .unwrap_err();
    assert_eq!(lost, SubmitError::NotHeld);
    one.lease_loop.clone().run_once().await.unwrap();
    assert_folded(&apply(&one, finish(good, 0)).await);
    // The dispatcher's stream is still open.
    assert_folded(&apply(&one, claim(good, 1, 1, 1)).await);
}

/// Changes rows behind the back of the holder, as another version or a fault would.
async fn tamper(one: &Instance, statement: &'static str) {
    one.store.loops().execute(query(statement)).await.unwrap();
}

#[tokio::test]
async fn a_run_whose_plan_is_gone_is_set_aside_and_its_shard_continues() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (bad, good) = two_runs(&database, &one).await;
    one.lease_loop.leave().await;
    let uuid = Uuid::from_bytes(*bad.as_bytes());
    let lose_plan = query(
        "UPDATE scheduler.runs SET plan_id = decode(repeat('00', 32), 'hex') WHERE run_id = $1",
    );
    one.store
        .loops()
        .execute(lose_plan.bind(uuid))
        .await
        .unwrap();
    record_finish(&database, bad).await;
    let two = instance(&database, "two").await;
    assert_folded(&apply(&two, finish(good, 0)).await);
    assert_eq!(
        apply(&two, finish(bad, 0)).await.result,
        CommandResult::SetAside
    );
    let message = reason(&two.store, bad).await.unwrap();
    assert!(message.contains("plan"), "{message}");
    assert_eq!(reason(&two.store, good).await, None);
}

#[tokio::test]
async fn a_shard_with_a_state_of_a_newer_version_is_released() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (bad, good) = two_runs(&database, &one).await;
    one.lease_loop.leave().await;
    tamper(
        &one,
        "UPDATE scheduler.tasks SET reason = 999 WHERE ordinal = 1",
    )
    .await;
    record_finish(&database, bad).await;
    let before = watermark(&one, bad.shard()).await;
    let two = instance(&database, "two").await;
    for id in [bad, good] {
        let refused = two.shards.submit(id.shard(), vec![finish(id, 0)]).await;
        assert_eq!(refused.unwrap_err(), SubmitError::NotHeld);
    }
    assert!(two.shards.is_unreadable(bad.shard()));
    assert_eq!(reason(&two.store, bad).await, None);
    assert_eq!(
        watermark(&two, bad.shard()).await,
        before,
        "no event is skipped"
    );
}

async fn watermark(one: &Instance, shard: ShardId) -> Position {
    let loops = one.store.loops();
    crate::store::shards::watermark(loops, shard).await.unwrap()
}
