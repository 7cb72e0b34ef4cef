//! A quarantined output, and what is left to read before it.

use servo_model::states::MaterializationState;

use super::*;
use crate::core::Refusal;

fn finish_quarantined(id: RunId, ordinal: u32) -> Ask {
    let gating = v1::Gating::Quarantine.into();
    Ask::Event(Arc::new(RunEvent {
        tenant: "acme".to_owned(),
        run_id: id,
        event_id: event_id(),
        idempotency_key: format!("finished:{}", attempt_id(id, ordinal, 1)),
        body: Body::TaskFinished(v1::TaskFinished {
            gating,
            ..finished(id, ordinal, 1)
        }),
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
    assert_eq!(
        second_state(&one, run_id(1)).await,
        TaskState::Skipped.code()
    );
    // It quarantines again, and a quarantined version is no good one.
    run_with_quarantine(&one, &plan, run_id(2)).await;
    assert_eq!(
        second_state(&one, run_id(2)).await,
        TaskState::Skipped.code()
    );

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

/// Runs `t/a0` alone, quarantined or not, and answers the version it made.
async fn made(one: &Instance, plan: &v1::Plan, id: RunId, gating: v1::Gating) -> AttemptId {
    folded(&ask(one, new_run(one, plan, id, "f")).await);
    folded(&ask(one, claim(id, 0, 1, 1)).await);
    let outputs = vec![v1::Output {
        asset_key: "t/a0".to_owned(),
        ..Default::default()
    }];
    let check = |name: &str, passed| v1::CheckResult {
        name: name.to_owned(),
        passed,
        ..Default::default()
    };
    let checks = vec![
        check("rows", true),
        check("nulls", gating == v1::Gating::Allow),
    ];
    let end = v1::TaskFinished {
        gating: gating.into(),
        outputs,
        checks,
        ..finished(id, 0, 1)
    };
    folded(&ask(one, super::rebuild::finish_with(id, 0, end)).await);
    attempt_id(id, 0, 1)
}

fn decide(id: RunId, decision: v1::QuarantineDecision, version: u64) -> Ask {
    let materialization_id = attempt_id(id, 0, 1).to_string();
    Ask::Event(Arc::new(RunEvent {
        tenant: "acme".to_owned(),
        run_id: id,
        event_id: event_id(),
        idempotency_key: format!("quarantine:{materialization_id}:{version}"),
        body: Body::QuarantineResolved(v1::QuarantineResolved {
            run_id: id.to_string(),
            materialization_id,
            asset_key: "t/a0".to_owned(),
            decision: decision.into(),
            version,
            resolved_by: Some(v1::Actor {
                principal: "ann".to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        trace: None,
    }))
}

/// The version that readers get.
async fn read(one: &Instance) -> Option<AttemptId> {
    let select =
        query("SELECT materialization_id FROM scheduler.partitions WHERE asset_key = 't/a0'");
    let rows: Vec<(Option<Uuid>,)> = one.store.loops().all(select).await.unwrap();
    rows[0].0.map(|id| AttemptId::from_bytes(id.into_bytes()))
}

async fn rebuilt_alike(one: &Instance) {
    one.keeper.leave().await;
    for table in super::super::rebuild(&one.store, |_| ()).await.unwrap() {
        assert!(table.equal, "{table:?}");
    }
}

#[tokio::test]
async fn an_approved_version_is_read_unless_a_newer_one_is_and_a_rejected_one_never() {
    use v1::QuarantineDecision::{Approve, Reject};
    let database = TestDatabase::create().await.unwrap();
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    let one = instance(&database, "one").await;
    let first = made(&one, &plan, run_id(1), v1::Gating::Allow).await;
    let second = made(&one, &plan, run_id(2), v1::Gating::Quarantine).await;
    made(&one, &plan, run_id(3), v1::Gating::Quarantine).await;
    assert_eq!(read(&one).await, Some(first));

    let refused = |refusal: Refusal| DoneAs::Core(Verdict::Refused(refusal));
    let stale = ask(&one, decide(run_id(3), Reject, 3)).await.verdict;
    assert_eq!(stale, refused(Refusal::DataVersion(1)));
    let never_in_doubt = ask(&one, decide(run_id(1), Approve, 2)).await.verdict;
    assert_eq!(
        never_in_doubt,
        refused(Refusal::VersionIs(MaterializationState::Promoted))
    );

    folded(&ask(&one, decide(run_id(3), Reject, 2)).await);
    assert_eq!(
        read(&one).await,
        Some(first),
        "what is rejected is never read"
    );
    folded(&ask(&one, decide(run_id(2), Approve, 2)).await);
    assert_eq!(
        read(&one).await,
        Some(second),
        "the newest of those that are good"
    );
    assert_eq!(
        ask(&one, decide(run_id(2), Approve, 3)).await.verdict,
        DoneAs::Core(Verdict::Duplicate)
    );
    assert_eq!(
        ask(&one, decide(run_id(2), Reject, 3)).await.verdict,
        refused(Refusal::VersionIs(MaterializationState::Promoted))
    );

    // Approved only after a newer one came: that stays.
    made(&one, &plan, run_id(4), v1::Gating::Quarantine).await;
    let fifth = made(&one, &plan, run_id(5), v1::Gating::Allow).await;
    folded(&ask(&one, decide(run_id(4), Approve, 2)).await);
    assert_eq!(read(&one).await, Some(fifth));
    rebuilt_alike(&one).await;
}

#[tokio::test]
async fn what_checks_found_is_kept_once_and_rebuilt() {
    let database = TestDatabase::create().await.unwrap();
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    let one = instance(&database, "one").await;
    made(&one, &plan, run_id(1), v1::Gating::Quarantine).await;
    assert_eq!(
        ask(&one, finish(run_id(1), 0)).await.verdict,
        DoneAs::Core(Verdict::Duplicate)
    );
    let select = query(
        "SELECT name, passed, severity, asset_key FROM scheduler.check_results ORDER BY place",
    );
    let rows: Vec<(String, bool, i16, String)> = one.store.loops().all(select).await.unwrap();
    let error = v1::Severity::Error as i16;
    let row = |name: &str, passed| (name.to_owned(), passed, error, "t/a0".to_owned());
    assert_eq!(rows, [row("rows", true), row("nulls", false)]);
    rebuilt_alike(&one).await;
}
