//! Events above the size limit, and flushes that are too slow.

use super::*;

pub(super) fn large_run(instance: &Instance, plan: &pb::Plan, id: RunId, keys: usize) -> Command {
    let Command::Run(new) = new_run(instance, plan, id, "f") else {
        unreachable!()
    };
    let mut new = Arc::into_inner(new).unwrap();
    let spec = pb::RunSpec {
        selection: (0..keys)
            .map(|n| format!("day=d:2026-01-01,customer=s:{n:010}"))
            .collect(),
        ..Default::default()
    };
    new.requested.spec = Some(spec);
    Command::Run(Arc::new(new))
}

pub(super) fn finish_saying(
    id: RunId,
    ordinal: u32,
    change: impl FnOnce(&mut pb::TaskFinished),
) -> Command {
    let Command::Event(event) = finish(id, ordinal) else {
        unreachable!()
    };
    let mut event = Arc::into_inner(event).unwrap();
    let mut message = finished(id, ordinal, 1);
    change(&mut message);
    event.body = Body::TaskFinished(message);
    Command::Event(Arc::new(event))
}

#[tokio::test]
async fn a_request_may_name_ten_thousand_but_not_a_hundred_thousand_partitions() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let plan = plan(&[&[]]);
    assert_folded(&apply(&one, large_run(&one, &plan, run_id(1), 10_000)).await);
    let done = apply(&one, large_run(&one, &plan, run_id(2), 100_000)).await;
    assert!(
        matches!(&done.result, CommandResult::TooLarge(why) if why.contains("1048576")),
        "{done:?}"
    );
}

#[tokio::test]
async fn an_outcome_that_cannot_be_stored_does_not_fail_other_submissions() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (plan, id) = (plan(&[&[], &[], &[]]), run_id(3));
    keep_plan(&database, &plan).await;
    assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    for ordinal in 0..3 {
        assert_folded(&apply(&one, claim(id, ordinal, 1, 1)).await);
    }
    let large = finish_saying(id, 0, |message| message.skip_reason = "x".repeat(70_000));
    let done = one
        .shards
        .submit(id.shard(), vec![large, finish(id, 1)])
        .await
        .unwrap();
    assert!(
        matches!(done[0].result, CommandResult::TooLarge(_)),
        "{done:?}"
    );
    assert_folded(&done[1]);
    super::set_aside::refuse_session(&database, "poison").await;
    let poison = finish_saying(id, 0, |message| message.session = "poison".to_owned());
    let (bad, good) = tokio::join!(
        one.shards.submit(id.shard(), vec![poison]),
        one.shards.submit(id.shard(), vec![finish(id, 2)])
    );
    assert!(matches!(bad, Err(SubmitError::Unavailable(_))), "{bad:?}");
    assert_folded(&good.unwrap()[0]);
}

/// Makes a statement that inserts more than this many tasks fail with a timeout.
async fn slow_above(database: &TestDatabase, tasks: usize) {
    let slow = format!(
        "CREATE FUNCTION scheduler.slow() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF (SELECT count(*) FROM added) > {tasks} THEN
                 RAISE 'too slow' USING ERRCODE = '57014';
             END IF;
             RETURN NULL;
         END $$;
         CREATE TRIGGER slow AFTER INSERT ON scheduler.tasks REFERENCING NEW TABLE AS added
             FOR EACH STATEMENT EXECUTE FUNCTION scheduler.slow();"
    );
    let mut admin = <sqlx::PgConnection as sqlx::Connection>::connect(&database.admin_url())
        .await
        .unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(slow))
        .execute(&mut admin)
        .await
        .unwrap();
}

#[tokio::test]
async fn runs_that_are_too_slow_together_are_stored_one_by_one() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    slow_above(&database, 3).await;
    let plan = plan(&[&[], &[], &[]]);
    keep_plan(&database, &plan).await;
    let submit = async |id: RunId| {
        one.shards
            .submit(id.shard(), vec![new_run(&one, &plan, id, "f")])
            .await
    };
    let (first, second) = tokio::join!(submit(run_id(1)), submit(run_id(2)));
    assert_folded(&first.unwrap()[0]);
    assert_folded(&second.unwrap()[0]);
}

#[tokio::test]
async fn an_event_is_found_by_its_idempotency_key() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (plan, id) = (plan(&[&[]]), run_id(4));
    assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    let pause = |version| {
        let (run_id, requested_by) = (id.to_string(), None);
        Command::Event(Arc::new(RunEvent {
            tenant: acme(),
            run_id: id,
            event_id: event_id(),
            idempotency_key: "control_by:r1".to_owned(),
            body: Body::RunPaused(pb::RunPaused {
                run_id,
                version,
                requested_by,
            }),
            trace: None,
        }))
    };
    let done = apply(&one, pause(1)).await;
    assert_folded(&done);
    let reader = one.store.reader();
    let found = reader
        .by_key(&acme().into(), "prod", "control_by:r1")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.event_id, done.event_id);
    assert_eq!(
        reader
            .by_key(&acme().into(), "test", "control_by:r1")
            .await
            .unwrap(),
        None
    );
}

#[tokio::test]
async fn f23_after_a_start_of_postgres_a_ready_task_gets_a_new_attempt_number() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (plan, id) = (plan(&[&[]]), run_id(5));
    keep_plan(&database, &plan).await;
    assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    one.lease_loop.leave().await;
    let mut admin = <sqlx::PgConnection as sqlx::Connection>::connect(&database.admin_url())
        .await
        .unwrap();
    sqlx::query("INSERT INTO ledger.starts VALUES (clock_timestamp())")
        .execute(&mut admin)
        .await
        .unwrap();
    let two = instance(&database, "two").await;
    let refused = CommandResult::Fold(Verdict::Refused(crate::core::Refusal::TaskNotReady(1)));
    assert_eq!(apply(&two, claim(id, 0, 1, 1)).await.result, refused);
    assert_folded(&apply(&two, claim(id, 0, 2, 1)).await);
}
