//! The demo's worker: does what the example's tasks say, which is to take their time.

use std::time::Duration;

use serde_json::Value;
use servo_client::worker::{Attempt, Done, Handler, Worker, WorkerConfig, WorkerHandle};
use servo_client::{Client, api};
use servo_local::TENANT;

const SLOTS: u32 = 3;

pub(super) fn start(client: &Client) -> WorkerHandle {
    let info = api::WorkerInfo {
        name: "demo".to_owned(),
        slots: SLOTS,
        handlers: vec!["demo".to_owned()],
        ..Default::default()
    };
    let worker = Worker::new(
        client.clone(),
        client.clone(),
        WorkerConfig::new(TENANT, info),
        Shop,
    );
    let handle = worker.handle();
    tokio::spawn(async move {
        if let Err(error) = worker.run().await {
            eprintln!("servo: the worker ended: {error}");
        }
    });
    handle
}

struct Shop;

impl Handler for Shop {
    async fn run(&self, attempt: Attempt) -> Done {
        let config = config(attempt.envelope());
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(config["ms"].as_u64().unwrap_or(100))) => {}
            () = attempt.cancelled() => return Done::cancelled(),
        }
        let envelope = attempt.envelope();
        // One day's orders come through at the second try only.
        let flaky = config["flaky"] == true
            && envelope.partition_key.ends_with("13")
            && envelope.failures == 0;
        match (flaky, config["fails"] == true) {
            (true, _) => failed(
                api::ErrorCategory::Transient,
                "ConnectionReset",
                "the shop's database hung up",
            ),
            (_, true) => failed(
                api::ErrorCategory::UserCode,
                "ValueError",
                "the column `amount` is missing",
            ),
            _ => Done::succeeded(),
        }
    }
}

fn config(envelope: &api::TaskEnvelope) -> Value {
    let target = envelope.code.as_ref().and_then(|code| code.target.as_ref());
    match target {
        Some(api::code_ref::Target::Handler(handler)) => {
            serde_json::from_str(&handler.config_json).unwrap_or(Value::Null)
        }
        _ => Value::Null,
    }
}

fn failed(category: api::ErrorCategory, error_type: &str, message: &str) -> Done {
    Done::failed(api::TaskError {
        category: category.into(),
        r#type: error_type.to_owned(),
        message: message.to_owned(),
        ..Default::default()
    })
}
