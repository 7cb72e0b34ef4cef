//! Requests that other services appended, and conflicting requests.

use std::sync::Arc;

use prost::Message;
use servo_local::TestDatabase;
use servo_model::idempotency::IdempotencyKey;
use servo_model::request::RequestFingerprint;
use servo_model::states::{RunState, TaskState};
use servo_model::{Digest, EventType, RunId, RunKey, Service};
use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::{NewEvent, Store, query};
use uuid::Uuid;

use super::{
    acme, apply, assert_folded, claim, event_id, instance, keep_plan, new_plan, new_run, plan,
    run_id, states, store,
};
use crate::core::Verdict;
use crate::shards::{Command, CommandResult, PlanFailure, PlanResult, SubmitError};

/// Appends RunRequested without a plan, as automation and backfills do.
async fn append_request(database: &TestDatabase, id: RunId, fingerprint: &str) -> Uuid {
    let key = RunKey::chosen(&format!("key-{id}")).unwrap();
    let fingerprint = RequestFingerprint::from_digest(Digest::of(fingerprint));
    let requested = pb::RunRequested {
        run_id: id.to_string(),
        run_key: key.to_string(),
        request_fingerprint: fingerprint.to_string(),
        generation: 1,
        spec: Some(pb::RunSpec {
            selection: vec!["t/a0".to_owned()],
            ..Default::default()
        }),
        ..Default::default()
    };
    let event = NewEvent {
        event_id: event_id(),
        kind: EventType::RunRequested,
        version: 1,
        shard: id.shard(),
        tenant: acme().into(),
        workspace: "prod".to_owned(),
        idempotency_key: IdempotencyKey::run_requested(&key, &fingerprint).to_string(),
        correlation_id: Some(Uuid::from_bytes(*id.as_bytes())),
        causation_id: None,
        payload: pb::Event {
            version: 1,
            trace: None,
            body: Some(Body::RunRequested(requested)),
        }
        .encode_to_vec(),
    };
    let event_id = event.event_id;
    store(database, Service::Backfill)
        .ledger()
        .append(vec![event])
        .await
        .unwrap();
    event_id
}

async fn conflicts(store: &Store) -> Vec<(Uuid, Uuid)> {
    let select =
        query("SELECT event_id, run_id FROM scheduler.run_key_conflicts ORDER BY recorded_at");
    store.loops().all(select).await.unwrap()
}

#[tokio::test]
async fn inv_12_a_conflicting_request_is_recorded_and_starts_no_run() {
    let database = TestDatabase::create().await.unwrap();
    let one = instance(&database, "one").await;
    let (plan, id) = (plan(&[&[]]), run_id(6));
    assert_folded(&apply(&one, new_run(&one, &plan, id, "f")).await);
    let before = states(&one.store, id).await;
    let own = apply(&one, new_run(&one, &plan, id, "other")).await;
    assert_eq!(own.result, CommandResult::Conflict);
    // The same conflicting request is already recorded under its idempotency key.
    let again = one
        .shards
        .submit(id.shard(), vec![new_run(&one, &plan, id, "other")])
        .await;
    assert_eq!(again.unwrap_err(), SubmitError::KeyTaken);
    let foreign = append_request(&database, id, "a third").await;
    // Folded with the next flush.
    assert_folded(&apply(&one, claim(id, 0, 1, 1)).await);
    let run = Uuid::from_bytes(*id.as_bytes());
    assert_eq!(
        conflicts(&one.store).await,
        [(own.event_id, run), (foreign, run)]
    );
    assert_eq!((before.0, before.1.len()), (RunState::Running.code(), 1));
    assert_eq!(states(&one.store, id).await.0, RunState::Running.code());
}

#[tokio::test]
async fn an_appended_request_is_planned_by_every_holder_of_its_shard() {
    let database = TestDatabase::create().await.unwrap();
    let (plan, id) = (plan(&[&[]]), run_id(8));
    keep_plan(&database, &plan).await;
    append_request(&database, id, "f").await;
    let mut one = instance(&database, "one").await;
    let waiting = one.waiting.recv().await.unwrap();
    assert_eq!(
        (waiting.run_id, waiting.spec.selection),
        (id, vec!["t/a0".to_owned()])
    );
    one.lease_loop.leave().await;

    let mut two = instance(&database, "two").await;
    let waiting = two.waiting.recv().await.unwrap();
    assert_eq!(
        (
            waiting.run_id,
            waiting.tenant.as_str(),
            waiting.workspace.as_str()
        ),
        (id, "acme", "prod")
    );
    assert_eq!(
        states(&two.store, id).await,
        (RunState::Pending.code(), vec![])
    );
    let give = |result| {
        Command::Plan(Arc::new(PlanResult {
            tenant: acme(),
            run_id: id,
            result,
        }))
    };
    assert_folded(&apply(&two, give(Ok(new_plan(&two, &plan)))).await);
    assert_eq!(
        states(&two.store, id).await,
        (RunState::Running.code(), vec![TaskState::Ready.code()])
    );
    let again = apply(&two, give(Ok(new_plan(&two, &plan)))).await;
    assert_eq!(again.result, CommandResult::Fold(Verdict::Duplicate));
    let row: Vec<(Option<String>, Option<String>)> = two
        .store
        .loops()
        .all(query(
            "SELECT plan_fingerprint, deployment_id FROM scheduler.runs",
        ))
        .await
        .unwrap();
    assert_eq!(
        row,
        [(Some("v1:sha256:x".to_owned()), Some("d1".to_owned()))]
    );
}

#[tokio::test]
async fn a_run_that_cannot_be_planned_fails_with_the_reason() {
    let database = TestDatabase::create().await.unwrap();
    let id = run_id(2);
    append_request(&database, id, "f").await;
    let one = instance(&database, "one").await;
    let failed = PlanFailure {
        event_id: event_id(),
        reason: pb::ErrorReason::SelectionEmpty,
        message: "means no asset".to_owned(),
    };
    let plan = PlanResult {
        tenant: acme(),
        run_id: id,
        result: Err(failed),
    };
    assert_folded(&apply(&one, Command::Plan(Arc::new(plan))).await);
    let row: Vec<(i16, Option<String>)> = one
        .store
        .loops()
        .all(query("SELECT state, error FROM scheduler.runs"))
        .await
        .unwrap();
    assert_eq!(
        row,
        [(RunState::Failed.code(), Some("means no asset".to_owned()))]
    );
}
