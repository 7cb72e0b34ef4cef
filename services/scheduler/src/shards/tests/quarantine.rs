//! Quarantined outputs and decisions about them.

use servo_model::states::MaterializationState;

use super::*;
use crate::core::Refusal;

fn finish_quarantined(id: RunId, ordinal: u32) -> Command {
    let gating = pb::Gating::Quarantine.into();
    Command::Event(Arc::new(RunEvent {
        tenant: acme(),
        run_id: id,
        event_id: event_id(),
        idempotency_key: format!("finished:{}", attempt_id(id, ordinal, 1)),
        body: Body::TaskFinished(pb::TaskFinished {
            gating,
            ..finished(id, ordinal, 1)
        }),
        trace: None,
    }))
}

/// Runs `t/a0` before `t/a1`, the first with a quarantined output.
async fn run_with_quarantine(instance: &Instance, plan: &pb::Plan, id: RunId) {
    assert_folded(&apply(instance, new_run(instance, plan, id, "f")).await);
    assert_folded(&apply(instance, claim(id, 0, 1, 1)).await);
    assert_folded(&apply(instance, finish_quarantined(id, 0)).await);
}

async fn second_state(instance: &Instance, id: RunId) -> i16 {
    states(&instance.store, id).await.1[1]
}

#[tokio::test]
async fn the_event_of_a_quarantined_output_records_whether_a_promoted_version_exists() {
    let database = TestDatabase::create().await.unwrap();
    let plan = plan(&[&[], &[0]]);
    keep_plan(&database, &plan).await;
    let one = instance(&database, "one").await;

    // No version exists.
    run_with_quarantine(&one, &plan, run_id(1)).await;
    assert_eq!(
        second_state(&one, run_id(1)).await,
        TaskState::Skipped.code()
    );
    // A quarantined version does not count as a promoted one.
    run_with_quarantine(&one, &plan, run_id(2)).await;
    assert_eq!(
        second_state(&one, run_id(2)).await,
        TaskState::Skipped.code()
    );

    assert_folded(&apply(&one, new_run(&one, &plan, run_id(3), "f")).await);
    assert_folded(&apply(&one, claim(run_id(3), 0, 1, 1)).await);
    assert_folded(&apply(&one, finish(run_id(3), 0)).await);
    // Now there is one, written by a run on another shard.
    run_with_quarantine(&one, &plan, run_id(4)).await;
    assert_eq!(second_state(&one, run_id(4)).await, TaskState::Ready.code());

    // A rebuild from the events gives the same rows.
    one.lease_loop.leave().await;
    for table in super::super::rebuild(&one.store, |_| ()).await.unwrap() {
        assert!(table.equal, "{table:?}");
    }
}

/// Runs `t/a0` and returns the version it wrote.
async fn made(one: &Instance, plan: &pb::Plan, id: RunId, gating: pb::Gating) -> AttemptId {
    assert_folded(&apply(one, new_run(one, plan, id, "f")).await);
    assert_folded(&apply(one, claim(id, 0, 1, 1)).await);
    let outputs = vec![pb::Output {
        asset_key: "t/a0".to_owned(),
        ..Default::default()
    }];
    let check = |name: &str, passed| pb::CheckResult {
        name: name.to_owned(),
        passed,
        ..Default::default()
    };
    let checks = vec![
        check("rows", true),
        check("nulls", gating == pb::Gating::Allow),
    ];
    let end = pb::TaskFinished {
        gating: gating.into(),
        outputs,
        checks,
        ..finished(id, 0, 1)
    };
    assert_folded(&apply(one, super::rebuild::finish_with(id, 0, end)).await);
    attempt_id(id, 0, 1)
}

fn decide(id: RunId, decision: pb::QuarantineDecision, version: u64) -> Command {
    let materialization_id = attempt_id(id, 0, 1).to_string();
    Command::Event(Arc::new(RunEvent {
        tenant: acme(),
        run_id: id,
        event_id: event_id(),
        idempotency_key: format!("quarantine:{materialization_id}:{version}"),
        body: Body::QuarantineResolved(pb::QuarantineResolved {
            run_id: id.to_string(),
            materialization_id,
            asset_key: "t/a0".to_owned(),
            decision: decision.into(),
            version,
            resolved_by: Some(pb::Actor {
                principal: "ann".to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        trace: None,
    }))
}

/// The promoted version.
async fn read(one: &Instance) -> Option<AttemptId> {
    let select =
        query("SELECT materialization_id FROM scheduler.partitions WHERE asset_key = 't/a0'");
    let rows: Vec<(Option<Uuid>,)> = one.store.loops().all(select).await.unwrap();
    rows[0].0.map(|id| AttemptId::from_bytes(id.into_bytes()))
}

async fn rebuilt_alike(one: &Instance) {
    one.lease_loop.leave().await;
    for table in super::super::rebuild(&one.store, |_| ()).await.unwrap() {
        assert!(table.equal, "{table:?}");
    }
}

#[tokio::test]
async fn an_approved_version_is_promoted_unless_a_newer_one_is() {
    use pb::QuarantineDecision::{Approve, Reject};
    let database = TestDatabase::create().await.unwrap();
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    let one = instance(&database, "one").await;
    let first = made(&one, &plan, run_id(1), pb::Gating::Allow).await;
    let second = made(&one, &plan, run_id(2), pb::Gating::Quarantine).await;
    made(&one, &plan, run_id(3), pb::Gating::Quarantine).await;
    assert_eq!(read(&one).await, Some(first));

    let refused = |refusal: Refusal| CommandResult::Fold(Verdict::Refused(refusal));
    let stale = apply(&one, decide(run_id(3), Reject, 3)).await.result;
    assert_eq!(stale, refused(Refusal::MaterializationVersion(1)));
    let never_in_doubt = apply(&one, decide(run_id(1), Approve, 2)).await.result;
    assert_eq!(
        never_in_doubt,
        refused(Refusal::MaterializationIs(MaterializationState::Promoted))
    );

    assert_folded(&apply(&one, decide(run_id(3), Reject, 2)).await);
    assert_eq!(
        read(&one).await,
        Some(first),
        "a rejected version is never promoted"
    );
    assert_folded(&apply(&one, decide(run_id(2), Approve, 2)).await);
    assert_eq!(
        read(&one).await,
        Some(second),
        "the approved version is newer"
    );
    assert_eq!(
        apply(&one, decide(run_id(2), Approve, 3)).await.result,
        CommandResult::Fold(Verdict::Duplicate)
    );
    assert_eq!(
        apply(&one, decide(run_id(2), Reject, 3)).await.result,
        refused(Refusal::MaterializationIs(MaterializationState::Promoted))
    );

    // Approved after a newer version was promoted, which stays.
    made(&one, &plan, run_id(4), pb::Gating::Quarantine).await;
    let fifth = made(&one, &plan, run_id(5), pb::Gating::Allow).await;
    assert_folded(&apply(&one, decide(run_id(4), Approve, 2)).await);
    assert_eq!(read(&one).await, Some(fifth));
    rebuilt_alike(&one).await;
}

#[tokio::test]
async fn check_results_are_stored_once_and_rebuilt() {
    let database = TestDatabase::create().await.unwrap();
    let plan = plan(&[&[]]);
    keep_plan(&database, &plan).await;
    let one = instance(&database, "one").await;
    made(&one, &plan, run_id(1), pb::Gating::Quarantine).await;
    assert_eq!(
        apply(&one, finish(run_id(1), 0)).await.result,
        CommandResult::Fold(Verdict::Duplicate)
    );
    let select = query(
        "SELECT name, passed, severity, asset_key FROM scheduler.check_results ORDER BY place",
    );
    let rows: Vec<(String, bool, i16, String)> = one.store.loops().all(select).await.unwrap();
    let error = pb::Severity::Error as i16;
    let row = |name: &str, passed| (name.to_owned(), passed, error, "t/a0".to_owned());
    assert_eq!(rows, [row("rows", true), row("nulls", false)]);
    rebuilt_alike(&one).await;
}
