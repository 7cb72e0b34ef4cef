//! Triggers a run of the latest partition of an asset and its upstreams, and follows it to its end.
//!
//! ```text
//! SERVO_URL=https://localhost:7400 SERVO_CA_FILE=ca.crt SERVO_API_KEY=… \
//! SERVO_TENANT=acme SERVO_WORKSPACE=prod \
//!     cargo run -p servo-client --example trigger_run -- +marts/revenue
//! ```
//!
//! The assets must be deployed already, and a worker must be running.

use std::error::Error;
use std::process::ExitCode;

use futures::TryStreamExt;
use servo_client::api::RunState;
use servo_client::{Client, Credentials, Run, Tls};

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let selection = std::env::args().nth(1).unwrap_or_else(|| "*".to_owned());

    // The first call opens the connection; all clones of a client share it.
    let tls = Tls::new(std::fs::read_to_string(var("SERVO_CA_FILE")?)?);
    let credentials = Credentials::ApiKey(var("SERVO_API_KEY")?);
    let client = Client::connect(&var("SERVO_URL")?, &tls, credentials)?;
    let workspace = client.workspace(&var("SERVO_TENANT")?, &var("SERVO_WORKSPACE")?);

    // `with` sets fields of the request that have no argument of their own.
    let run = workspace
        .trigger(Run::of([selection]).latest(1))
        .with(|request| request.comment = "triggered by an example".to_owned())
        .await?;
    println!("{} started", run.run_id);

    // The stream resumes after a broken connection and ends with the run.
    let mut changes = workspace.watch(&run.run_id).stream();
    while let Some(change) = changes.try_next().await? {
        for task in change.tasks {
            println!("{:<12} {}", task.state().as_str_name(), task.task_key);
        }
    }

    let ended = workspace.run(&run.run_id).await?;
    println!("{} {}", ended.run_id, ended.state().as_str_name());
    Ok(if ended.state() == RunState::Succeeded {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn var(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("set {name}"))
}
