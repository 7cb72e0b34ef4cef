//! VerifyProjection: whatever is written into a table beside the fold is found.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use servo_client::api;
use servo_mesh::error::{Reason, reason_of};
use servo_model::{AttemptId, RunId};
use servo_tests::user::{User, WORKSPACE};
use sqlx::{Connection, PgConnection};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::partitions::{Checking, decide, partitions, quarantining, succeeded, work};
use crate::support::Running;

/// A table, how a row of it is spoiled, and how the row that it names reads in a key.
type Spoiled = (&'static str, &'static str, fn(Uuid) -> String);

const SPOILED: [Spoiled; 7] = [
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

/// Attempts and events read alike.
fn ulid(id: Uuid) -> String {
    AttemptId::from_bytes(id.into_bytes()).to_string()
}

fn run(id: Uuid) -> String {
    RunId::from_bytes(id.into_bytes()).to_string()
}

/// Runs of every kind: checked, quarantined and decided about, and one under whose key another was asked for.
async fn live_in(user: &User) {
    let worker = Checking {
        doubts: Arc::default(),
        gate: Arc::new(Semaphore::new(1_000)),
    };
    let _working = work(user, worker.clone());
    user.deploy(quarantining("v1")).await.unwrap();
    succeeded(user, &["fan.*"]).await;
    worker.doubts.store(true, Ordering::SeqCst);
    for decision in [
        api::QuarantineDecision::Approve,
        api::QuarantineDecision::Reject,
    ] {
        succeeded(user, &["fan/root"]).await;
        let root = partitions(user, "root", "", "")
            .await
            .unwrap()
            .partitions
            .remove(0);
        decide(user, &root.last_attempt_id, decision, 0)
            .await
            .unwrap();
    }
    let nightly = ask(user, "fan/root")
        .await
        .unwrap()
        .into_inner()
        .run
        .unwrap();
    user.ended(&nightly.run_id).await.unwrap();
    let refused = ask(user, "fan/join").await.unwrap_err();
    assert_eq!(
        reason_of(&refused),
        Some(Reason::RunKeyConflict),
        "{refused}"
    );
}

async fn ask(
    user: &User,
    selection: &str,
) -> Result<tonic::Response<api::TriggerRunResponse>, tonic::Status> {
    let asked = api::TriggerRunRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        run_key: "nightly".to_owned(),
        spec: Some(api::RunSpec {
            selection: vec![selection.to_owned()],
            ..Default::default()
        }),
        ..Default::default()
    };
    user.client.scheduler().trigger_run(asked).await
}

#[tokio::test]
async fn inv_21_a_spoiled_row_is_found_in_whichever_table_it_stands() {
    let running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    live_in(&user).await;
    for (projection, ..) in SPOILED {
        user.verify(projection, 0).await.unwrap();
    }
    let mut admin = PgConnection::connect(running.mesh.admin_url())
        .await
        .unwrap();
    for (number, (projection, spoil, key)) in SPOILED.into_iter().enumerate() {
        let spoiled: Vec<(Uuid,)> = sqlx::query_as(spoil).fetch_all(&mut admin).await.unwrap();
        let [(spoiled,)] = spoiled[..] else {
            panic!("{spoil} spoils {spoiled:?}")
        };
        let asked = api::VerifyProjectionRequest {
            projection: projection.to_owned(),
            ..Default::default()
        };
        let found = user
            .client
            .scheduler()
            .verify_projection(asked)
            .await
            .unwrap()
            .into_inner();
        let named: Vec<(&str, bool)> = found
            .differences
            .iter()
            .map(|row| {
                (
                    row.projection.as_str(),
                    row.key_json.contains(&key(spoiled)),
                )
            })
            .collect();
        assert!(
            !found.equal && named.contains(&(projection, true)),
            "{number}: {found:?}"
        );
        let before = SPOILED[..number]
            .iter()
            .filter(|(table, ..)| *table == projection)
            .count();
        assert_eq!(
            found.different_rows,
            before as u64 + 1,
            "{number}: {found:?}"
        );
    }
    running.mesh.stop().unwrap();
}
