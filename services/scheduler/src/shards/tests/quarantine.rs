//! A quarantined output, and what is left to read before it.

use super::*;

fn finish_quarantined(id: RunId, ordinal: u32) -> Ask {
    let gating = v1::Gating::Quarantine.into();
    Ask::Event(Arc::new(RunEvent {
        tenant: "acme".to_owned(),
        run_id: id,
        event_id: event_id(),
        idempotency_key: format!("finished:{}", attempt_id(id, ordinal, 1)),
        body: Body::TaskFinished(v1::TaskFinished { gating, ..finished(id, ordinal, 1) }),
        trace: None,
    }))
}

/// Runs `t/a0` before `t/a1`, the first with a quarantined output.
async fn run_with_quarantine(instance: &Instance, plan: &v1::Plan, id: RunId) {
    folded(&ask(instance, new_run(instance, plan, id, "f")).await);
    folded(&ask(instance, claim(id, 0, 1, 1)).await);
    folded(&ask(instance, finish_quarantined(id, 0)).await);
}

async fn second_state(instance: &Instance, id: RunId) -> i16 {
    states(&instance.store, id).await.1[1]
}

#[tokio::test]
async fn whether_there_is_a_version_before_a_quarantined_one_stands_in_its_event() {
    let database = TestDatabase::create().await.unwrap();
    let plan = plan(&[&[], &[0]]);
    keep_plan(&database, &plan).await;
    let one = instance(&database, "one").await;

    // Nothing was ever made: nothing can be read.
    run_with_quarantine(&one, &plan, run_id(1)).await;
    assert_eq!(second_state(&one, run_id(1)).await, TaskState::Skipped.code());
    // It quarantines again, and a quarantined version is no good one.
    run_with_quarantine(&one, &plan, run_id(2)).await;
    assert_eq!(second_state(&one, run_id(2)).await, TaskState::Skipped.code());

    folded(&ask(&one, new_run(&one, &plan, run_id(3), "f")).await);
    folded(&ask(&one, claim(run_id(3), 0, 1, 1)).await);
    folded(&ask(&one, finish(run_id(3), 0)).await);
    // Now there is one, made by another run on another shard.
    run_with_quarantine(&one, &plan, run_id(4)).await;
    assert_eq!(second_state(&one, run_id(4)).await, TaskState::Ready.code());

    // The events say all of it: what is folded from them anew is the same.
    one.keeper.leave().await;
    for table in super::super::rebuild(&one.store, |_| ()).await.unwrap() {
        assert!(table.equal, "{table:?}");
    }
}
