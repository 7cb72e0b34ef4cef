//! A worker with one handler that pulls attempts until it is interrupted with Ctrl-C.
//!
//! ```text
//! SERVO_URL=https://localhost:7400 SERVO_CA_FILE=ca.crt SERVO_API_KEY=… SERVO_TENANT=acme \
//!     cargo run -p servo-client --example worker
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

use std::error::Error;
use std::time::Duration;

use servo_client::worker::{Attempt, AttemptOutcome, Handler, Worker, WorkerConfig};
use servo_client::{Client, Credentials, Tls, api};

/// Prints the task and succeeds after a second.
struct PrintTask;

impl Handler for PrintTask {
    async fn run(&self, attempt: Attempt) -> AttemptOutcome {
        let envelope = attempt.envelope();
        println!("attempt {} of {}", envelope.attempt, envelope.task_key);
        tokio::select! {
            // The work. A failure is reported with `AttemptOutcome::failed`; its category decides
            // whether the task is retried.
            () = tokio::time::sleep(Duration::from_secs(1)) => AttemptOutcome::succeeded(),
            // A handler that ignores a cancel is dropped after a grace period.
            () = attempt.cancelled() => AttemptOutcome::cancelled(),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let tls = Tls::new(std::fs::read_to_string(var("SERVO_CA_FILE")?)?);
    let credentials = Credentials::ApiKey(var("SERVO_API_KEY")?);
    let client = Client::connect(&var("SERVO_URL")?, &tls, credentials)?;

    let info = api::WorkerInfo {
        name: "example".to_owned(),
        slots: 4,
        ..Default::default()
    };
    let config = WorkerConfig::new(var("SERVO_TENANT")?, info);

    // Through the gateway the same client reaches the dispatcher and the callback service.
    let worker = Worker::new(client.clone(), client, config, PrintTask);

    // After Ctrl-C the worker takes no more attempts, finishes the running ones and returns.
    let handle = worker.handle();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            handle.drain();
        }
    });
    worker.run().await?;
    Ok(())
}

fn var(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("set {name}"))
}
