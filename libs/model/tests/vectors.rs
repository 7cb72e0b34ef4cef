//! The golden vectors that Rust and Python both reproduce byte for byte.

#![cfg(test)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use servo_model::dispatch_id::{QueueId, QueueKind};
use servo_model::json::{Json, to_canonical};
use servo_model::plan::{Plan, PlanHeader, PlanTask, Resources};
use servo_model::presign::{KeyRing, SigningKey};
use servo_model::retry::RetryPolicy;
use servo_model::{
    AssetKey, Digest, PartitionKey, PartitionValue, RunId, RunIdSecret, RunKey, TaskKey,
};

/// The vectors under one heading; fails if there are none.
fn vectors(heading: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/vectors.json");
    let all: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let vectors = all[heading].as_array().unwrap().clone();
    assert!(!vectors.is_empty());
    vectors
}

fn text<'a>(vector: &'a Value, field: &str) -> &'a str {
    vector[field]
        .as_str()
        .unwrap_or_else(|| panic!("{field} of {vector}"))
}

fn bytes(vector: &Value, field: &str) -> Vec<u8> {
    data_encoding::HEXLOWER
        .decode(text(vector, field).as_bytes())
        .unwrap()
}

fn partition(dimensions: &Value) -> Option<PartitionKey> {
    let dimensions = dimensions
        .as_object()?
        .iter()
        .map(|(name, typed)| (name.clone(), value(&typed[0], &typed[1])));
    Some(PartitionKey::new(dimensions).unwrap())
}

fn value(tag: &Value, value: &Value) -> PartitionValue {
    match tag.as_str().unwrap() {
        "s" => PartitionValue::Text(value.as_str().unwrap().to_owned()),
        "i" => PartitionValue::Integer(value.as_i64().unwrap()),
        "b" => PartitionValue::Bool(value.as_bool().unwrap()),
        "d" => PartitionValue::Date(value.as_str().unwrap().parse().unwrap()),
        "t" => PartitionValue::Instant(value.as_str().unwrap().parse().unwrap()),
        other => panic!("tag {other}"),
    }
}

#[test]
fn canonical_json() {
    for vector in vectors("canonical_json") {
        let spaced = serde_json::to_string_pretty(&vector["input"]).unwrap();
        assert_eq!(
            Json::parse(&spaced).unwrap().to_string(),
            text(&vector, "expected")
        );
        assert_eq!(
            to_canonical(&vector["input"]).unwrap(),
            text(&vector, "expected")
        );
    }
}

#[test]
fn canonical_json_reject() {
    for vector in vectors("canonical_json_reject") {
        assert!(Json::parse(vector.as_str().unwrap()).is_err(), "{vector}");
    }
}

#[test]
fn partition_key() {
    for vector in vectors("partition_key") {
        let key = partition(&vector["dims"]).unwrap();
        assert_eq!(key.to_string(), text(&vector, "expected"));
        assert_eq!(text(&vector, "expected").parse(), Ok(key));
    }
}

#[test]
fn partition_key_reject() {
    for vector in vectors("partition_key_reject") {
        assert!(
            vector.as_str().unwrap().parse::<PartitionKey>().is_err(),
            "{vector}"
        );
    }
}

#[test]
fn task_id() {
    for vector in vectors("task_id") {
        let key: TaskKey = text(&vector, "task_key").parse().unwrap();
        assert_eq!(key.id().to_string(), text(&vector, "expected"));
        assert_eq!(text(&vector, "expected").parse(), Ok(key.id()));
    }
}

#[test]
fn task_key() {
    for vector in vectors("task_key") {
        let asset = AssetKey::new(text(&vector, "namespace"), text(&vector, "name")).unwrap();
        assert_eq!(asset.to_string(), text(&vector, "display"));
        let operation = text(&vector, "operation").parse().unwrap();
        let key = TaskKey::new(asset, partition(&vector["partition"]), operation);
        assert_eq!(key.as_str(), text(&vector, "expected"));
        assert_eq!(text(&vector, "expected").parse(), Ok(key));
    }
}

#[test]
fn run_id() {
    for vector in vectors("run_id") {
        let secret = RunIdSecret::new(bytes(&vector, "secret_hex")).unwrap();
        let key: RunKey = text(&vector, "run_key").parse().unwrap();
        let (tenant, workspace) = (
            text(&vector, "tenant").parse().unwrap(),
            text(&vector, "workspace").parse().unwrap(),
        );
        let run = RunId::derive(&secret, &tenant, &workspace, &key);
        assert_eq!(run.to_string(), text(&vector, "expected"));
        assert_eq!(text(&vector, "expected").parse(), Ok(run));
    }
}

#[test]
fn queue_id() {
    for vector in vectors("queue_id") {
        let kind = match text(&vector, "prefix") {
            "d" => QueueKind::Dispatch,
            "t" => QueueKind::Timer,
            other => panic!("prefix {other}"),
        };
        let id = QueueId::of(kind, text(&vector, "internal_id"));
        assert_eq!(id.to_string(), text(&vector, "expected"));
        assert_eq!(text(&vector, "expected").parse(), Ok(id));
    }
}

fn plan_task(vector: &Value) -> PlanTask<TaskKey> {
    let resource = |name: &str| vector["resources"][name].as_u64().unwrap();
    let upstream = vector["upstream_keys"].as_array().unwrap().iter();
    PlanTask {
        key: text(vector, "task_key").parse().unwrap(),
        upstream: upstream
            .map(|key| key.as_str().unwrap().parse().unwrap())
            .collect(),
        map_over: None,
        priority: i32::try_from(vector["priority"].as_i64().unwrap()).unwrap(),
        resources: Resources {
            memory_bytes: resource("memory_bytes"),
            cpu_millicores: resource("cpu_millicores"),
            timeout_ms: resource("timeout_ms"),
        },
        retry: RetryPolicy::default(),
        settings: BTreeMap::new(),
    }
}

#[test]
fn plan_fingerprint() {
    for vector in vectors("plan_fingerprint") {
        let header = PlanHeader {
            tenant: text(&vector, "tenant").parse().unwrap(),
            workspace: text(&vector, "workspace").parse().unwrap(),
            deployment: Digest::of("not part of the fingerprint"),
            settings: BTreeMap::new(),
        };
        let tasks = vector["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(plan_task)
            .collect();
        assert_eq!(
            Plan::new(header, tasks).unwrap().fingerprint().to_string(),
            text(&vector, "expected")
        );
    }
}

#[test]
fn presigned_path() {
    for vector in vectors("presigned_path") {
        let key = SigningKey::new(text(&vector, "kid"), bytes(&vector, "key_hex")).unwrap();
        let ring = KeyRing::new(key, []).unwrap();
        let (method, path) = (text(&vector, "method"), text(&vector, "path"));
        let expires = vector["expires"].as_i64().unwrap();
        assert_eq!(
            ring.sign(method, path, expires).unwrap(),
            text(&vector, "expected")
        );
        let verified = ring
            .verify(method, text(&vector, "expected"), expires)
            .unwrap();
        assert_eq!((verified.path, verified.expires), (path, expires));
    }
}
