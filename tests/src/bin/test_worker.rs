//! A worker for tests whose tasks select its behaviour: do nothing, sleep, fail, exit, hang and
//! others.

#![allow(
    clippy::disallowed_methods,
    reason = "a tool of the tests, not of the product"
)]

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use servo_client::worker::{Worker, WorkerConfig};
use servo_client::{Client, Credentials, Tls, api};
use servo_tests::worker::{Journal, TestHandler};

/// Addresses and credentials: an API key for the gateway, or a certificate for the services.
#[derive(Debug, Parser)]
struct Args {
    /// The gateway, or the dispatcher.
    #[arg(long)]
    dispatcher: String,
    /// The gateway, or the instances of the callback service; the first address unless given.
    #[arg(long)]
    callback: Vec<String>,
    /// The CA certificate in PEM.
    #[arg(long)]
    ca: std::path::PathBuf,
    /// The name in the server certificates, if it is not the host of the address.
    #[arg(long)]
    server_name: Option<String>,
    #[arg(long, conflicts_with = "certificate", env = "SERVO_API_KEY")]
    api_key: Option<String>,
    #[arg(long, requires = "key")]
    certificate: Option<std::path::PathBuf>,
    #[arg(long)]
    key: Option<std::path::PathBuf>,
    #[arg(long)]
    tenant: String,
    #[arg(long, default_value = "test-worker")]
    name: String,
    #[arg(long, default_value_t = 50)]
    slots: u32,
    #[arg(long)]
    worker_id: Option<String>,
    #[arg(long)]
    capability: Vec<String>,
    #[arg(long)]
    workspace: Vec<String>,
    #[arg(long)]
    pool: Vec<String>,
    /// The file that gets a line (task key, attempt id, session, microseconds since 1970) for every
    /// attempt that begins.
    #[arg(long)]
    journal: Option<std::path::PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match work(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn work(args: Args) -> Result<()> {
    let client = connect(&args)?;
    let mut callbacks = args.callback.iter().map(|address| client.at(address));
    let callback = callbacks
        .next()
        .unwrap_or_else(|| client.at(&args.dispatcher))?;
    let journal = args.journal.as_deref().map(Journal::open).transpose()?;
    let handler = TestHandler::new(callback.clone(), journal);
    let info = api::WorkerInfo {
        name: args.name,
        slots: args.slots,
        capabilities: args.capability,
        workspaces: args.workspace,
        pools: args.pool,
        handlers: TestHandler::names(),
        ..api::WorkerInfo::default()
    };
    let mut config = WorkerConfig::new(args.tenant, info);
    if let Some(id) = args.worker_id {
        config = config.worker_id(id);
    }
    for another in callbacks {
        config = config.fallback_callback(another?);
    }
    let worker = Worker::new(client, callback, config, handler);
    let handle = worker.handle();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            handle.drain();
        }
    });
    println!("session {}", worker.session());
    Ok(worker.run().await?)
}

fn connect(args: &Args) -> Result<Client> {
    let read = |path: &std::path::Path| {
        std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
    };
    let credentials = match (&args.api_key, &args.certificate, &args.key) {
        (Some(key), None, _) => Credentials::ApiKey(key.clone()),
        (None, Some(certificate), Some(key)) => Credentials::Certificate {
            certificate: read(certificate)?,
            key: read(key)?,
        },
        _ => anyhow::bail!("give --api-key, or --certificate with --key"),
    };
    let mut tls = Tls::new(read(&args.ca)?);
    if let Some(name) = &args.server_name {
        tls = tls.server_name(name);
    }
    Ok(Client::connect(&args.dispatcher, &tls, credentials)?)
}
