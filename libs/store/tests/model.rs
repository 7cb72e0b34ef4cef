//! A small model of the ledger, compared with the real one over random sequences of appends.

#![cfg(test)]

mod common;

use std::collections::HashMap;

use common::{is_full, new_id, shard, store};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use servo_local::TestDatabase;
use servo_model::{EventType, Position, Service, ShardId, Stream, TenantScope};
use servo_store::{AppendResult, Appended, NewEvent, Store};
use uuid::Uuid;

const SHARDS: u32 = 3;

/// The contract in its simplest form: keys are remembered, positions are counted.
#[derive(Default)]
struct Model {
    keys: HashMap<(TenantScope, String, String), StoredKey>,
    shards: HashMap<ShardId, Vec<Uuid>>,
}

#[derive(Clone, Debug, PartialEq)]
struct StoredKey {
    body: (EventType, i16, Vec<u8>),
    event_id: Uuid,
    shard: ShardId,
    position: Position,
}

impl Model {
    fn append(&mut self, event: &NewEvent) -> (AppendResult, ShardId, Position) {
        let key = (
            event.tenant.clone(),
            event.workspace.clone(),
            event.idempotency_key.clone(),
        );
        let body = (event.kind, event.version, event.payload.clone());
        if let Some(stored) = self.keys.get(&key) {
            let outcome = match stored {
                StoredKey { event_id, .. } if stored.body != body => AppendResult::Conflict {
                    event_id: *event_id,
                },
                StoredKey { event_id, .. } if *event_id == event.event_id => AppendResult::New,
                StoredKey { event_id, .. } => AppendResult::Duplicate {
                    event_id: *event_id,
                },
            };
            return (outcome, stored.shard, stored.position);
        }
        let ids = self.shards.entry(event.shard).or_default();
        ids.push(event.event_id);
        let stored = StoredKey {
            body,
            event_id: event.event_id,
            shard: event.shard,
            position: Position::START.plus(ids.len() as u32),
        };
        self.keys.insert(key, stored.clone());
        (AppendResult::New, stored.shard, stored.position)
    }
}

/// Few tenants, keys and bodies, so that they often coincide.
fn any_event() -> impl Strategy<Value = NewEvent> {
    let kinds = prop::sample::select(vec![EventType::TaskStarted, EventType::TaskFinished]);
    (kinds, 1..3i16, 0..SHARDS, 0..2u8, 0..2u8, 0..6u8, 0..2u8).prop_map(
        |(kind, version, number, tenant, workspace, key, body)| NewEvent {
            event_id: new_id(),
            kind,
            version,
            shard: shard(number),
            tenant: format!("tenant{tenant}").parse().unwrap(),
            workspace: if workspace == 0 {
                String::new()
            } else {
                "main".to_owned()
            },
            idempotency_key: format!("key{key}"),
            correlation_id: None,
            causation_id: None,
            payload: vec![body],
        },
    )
}

/// A batch of new events, or an earlier batch repeated with the same ids.
#[derive(Debug, Clone)]
enum Op {
    Append(Vec<NewEvent>),
    Repeat(prop::sample::Index),
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => prop::collection::vec(any_event(), 1..8).prop_map(Op::Append),
        1 => any::<prop::sample::Index>().prop_map(Op::Repeat),
    ]
}

#[test]
fn ledger_agrees_with_its_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    // A cluster lives as long as one of its databases does.
    let _cluster = runtime.block_on(TestDatabase::create()).unwrap();
    let cases = if is_full() { 500 } else { 12 };
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let ops = prop::collection::vec(any_op(), 1..20);
    runner
        .run(&ops, |ops| runtime.block_on(compare(ops)))
        .unwrap();
}

async fn compare(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let database = TestDatabase::create().await.unwrap();
    let store = store(&database, Service::Scheduler);
    let mut model = Model::default();
    let mut batches: Vec<Vec<NewEvent>> = Vec::new();
    for op in ops {
        let batch = match op {
            Op::Append(batch) => batch,
            Op::Repeat(_) if batches.is_empty() => continue,
            Op::Repeat(earlier) => earlier.get(&batches).clone(),
        };
        let answers = store.ledger().append(batch.clone()).await.unwrap();
        let actual: Vec<(AppendResult, ShardId, Position)> =
            answers.iter().map(result_of).collect();
        let expected: Vec<(AppendResult, ShardId, Position)> =
            batch.iter().map(|event| model.append(event)).collect();
        prop_assert_eq!(actual, expected);
        batches.push(batch);
    }
    for shard in (0..SHARDS).map(shard) {
        let ids = read_ids(&store, shard).await;
        prop_assert_eq!(ids, model.shards.remove(&shard).unwrap_or_default());
    }
    Ok(())
}

fn result_of(answer: &Appended) -> (AppendResult, ShardId, Position) {
    (answer.result, answer.shard, answer.position)
}

async fn read_ids(store: &Store, shard: ShardId) -> Vec<Uuid> {
    let events = store
        .reader()
        .read(Stream::Execution, shard, Position::START, 1_000)
        .await
        .unwrap();
    events.iter().map(|event| event.event_id).collect()
}
