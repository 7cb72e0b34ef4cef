//! VerifyProjection finds rows that were not written by the fold.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use servo_client::api;
use servo_mesh::error::{Reason, reason_of};
use servo_model::{AttemptId, RunId};
use servo_tests::user::{User, WORKSPACE};
use sqlx::{Connection, PgConnection};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::partitions::{
    Checking, decide, partitions, quarantining, run_successfully, start_worker,
};
use crate::support::Running;

/// A table, a statement that changes one of its rows, and the text of the returned id in a key.
type Change = (&'static str, &'static str, fn(Uuid) -> String);

const CHANGES: [Change; 7] = [
    (
        "scheduler.check_results",
        "UPDATE scheduler.check_results SET passed = NOT passed
         WHERE attempt_id = (SELECT attempt_id FROM scheduler.check_results ORDER BY 1 LIMIT 1) RETURNING attempt_id",
        ulid,
    ),
    (
        "scheduler.materializations",
        "UPDATE scheduler.materializations SET state = 5
         WHERE attempt_id = (SELECT attempt_id FROM scheduler.materializations WHERE state = 3 ORDER BY 1 LIMIT 1)
         RETURNING attempt_id",
        ulid,
    ),
    (
        "scheduler.materializations",
        "DELETE FROM scheduler.materializations
         WHERE attempt_id = (SELECT attempt_id FROM scheduler.materializations ORDER BY 1 DESC LIMIT 1)
         RETURNING attempt_id",
        ulid,
    ),
    (
        "scheduler.partitions",
        "UPDATE scheduler.partitions SET attempted_at = attempted_at + interval '1 day'
         WHERE asset_key = 'fan/join' RETURNING attempt_id",
        |_| "fan/join".to_owned(),
    ),
    (
        "scheduler.run_key_conflicts",
        "UPDATE scheduler.run_key_conflicts SET recorded_at = recorded_at - interval '1 hour' RETURNING event_id",
        ulid,
    ),
    ("scheduler.runs", "UPDATE scheduler.runs SET version = 7 WHERE run_key = 'nightly' RETURNING run_id", run),
    (
        "scheduler.tasks",
        "UPDATE scheduler.tasks t SET attempt = 7 FROM scheduler.runs r
         WHERE t.run_number = r.run_number AND r.run_key = 'nightly' RETURNING r.run_id",
        run,
    ),
];

/// The text of the id of an attempt or an event.
fn ulid(id: Uuid) -> String {
    AttemptId::from_bytes(id.into_bytes()).to_string()
}

fn run(id: Uuid) -> String {
    RunId::from_bytes(id.into_bytes()).to_string()
}

/// Fills all tables: runs with checks, with quarantined versions and decisions, and with a conflict
/// of run keys.
async fn fill_tables(user: &User) {
    let worker = Checking {
        check_fails: Arc::default(),
        permits: Arc::new(Semaphore::new(1_000)),
    };
    let _working = start_worker(user, worker.clone());
    user.deploy(quarantining("v1")).await.unwrap();
    run_successfully(user, &["fan.*"]).await;
    worker.check_fails.store(true, Ordering::SeqCst);
    for decision in [
        api::QuarantineDecision::Approve,
        api::QuarantineDecision::Reject,
    ] {
        run_successfully(user, &["fan/root"]).await;
        let root = partitions(user, "root", "", "")
            .await
            .unwrap()
            .partitions
            .remove(0);
        decide(user, &root.last_attempt_id, decision, 0)
            .await
            .unwrap();
    }
    let nightly = trigger_nightly(user, "fan/root")
        .await
        .unwrap()
        .into_inner()
        .run
        .unwrap();
    user.wait_for_end(&nightly.run_id).await.unwrap();
    let refused = trigger_nightly(user, "fan/join").await.unwrap_err();
    assert_eq!(
        reason_of(&refused),
        Some(Reason::RunKeyConflict),
        "{refused}"
    );
}

async fn trigger_nightly(
    user: &User,
    selection: &str,
) -> Result<tonic::Response<api::TriggerRunResponse>, tonic::Status> {
    let request = api::TriggerRunRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_key: "nightly".to_owned(),
        spec: Some(api::RunSpec {
            selection: vec![selection.to_owned()],
            ..Default::default()
        }),
        ..Default::default()
    };
    user.client.scheduler().trigger_run(request).await
}

#[tokio::test]
async fn inv_21_a_changed_row_is_found_in_every_table() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    fill_tables(&user).await;
    for (projection, ..) in CHANGES {
        user.verify(projection, 0).await.unwrap();
    }
    let mut admin = PgConnection::connect(running.mesh.admin_url())
        .await
        .unwrap();
    for (number, (projection, change, key)) in CHANGES.into_iter().enumerate() {
        let changed: Vec<(Uuid,)> = sqlx::query_as(change).fetch_all(&mut admin).await.unwrap();
        let [(changed,)] = changed[..] else {
            panic!("{change} changes {changed:?}")
        };
        let request = api::VerifyProjectionRequest {
            projection: projection.to_owned(),
            ..Default::default()
        };
        let found = user
            .platform
            .system()
            .verify_projection(request)
            .await
            .unwrap()
            .into_inner();
        let named: Vec<(&str, bool)> = found
            .differences
            .iter()
            .map(|row| {
                (
                    row.projection.as_str(),
                    row.key_json.contains(&key(changed)),
                )
            })
            .collect();
        assert!(
            !found.equal && named.contains(&(projection, true)),
            "{number}: {found:?}"
        );
        let before = CHANGES[..number]
            .iter()
            .filter(|(table, ..)| *table == projection)
            .count();
        assert_eq!(
            found.different_rows,
            before as u64 + 1,
            "{number}: {found:?}"
        );
    }
    running.mesh.stop().await.unwrap();
}
