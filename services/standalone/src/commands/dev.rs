//! `dev`: the whole mesh on this machine.
//!
//! Runs the nine services as separate processes if their binaries are next to this one, and
//! otherwise all in one process.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use servo_local::{LocalMesh, MeshOptions};
use servo_model::Service;
use tokio::signal::unix::{SignalKind, signal};

use crate::show;

#[derive(Debug, Args)]
pub struct Dev {
    /// The directory for data, certificates, configuration and logs
    #[arg(long, default_value = ".servo")]
    dir: PathBuf,
    /// An existing Postgres, with a user that may create roles; without it a private one is started
    #[arg(long, env = "SERVO_DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,
    /// Run all services in one process; the default if this binary is installed alone
    #[arg(long)]
    one_process: bool,
    /// Print the addresses and files of the mesh as JSON
    #[arg(long)]
    json: bool,
}

impl Dev {
    /// Starts the mesh, shows it, and keeps it running until a signal arrives or a service ends.
    pub fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
        runtime.block_on(self.start_and_stop())
    }

    async fn start_and_stop(&self) -> Result<()> {
        let mut progress = show::Progress::start(self.json);
        // On a signal during the start, dropping the future stops the processes started so far.
        let mut mesh = tokio::select! {
            mesh = LocalMesh::start(self.options()?, |step| progress.done(step)) => mesh?,
            signal = stop_signal() => return signal,
        };
        let ended = self.show_and_wait(&mut mesh).await;
        stop(mesh, self.json).await.and(ended)
    }

    async fn show_and_wait(&self, mesh: &mut LocalMesh) -> Result<()> {
        let status = mesh.status().await;
        if self.json {
            println!("{}", show::json(mesh, &status)?);
        } else {
            println!("{}", show::table(&status));
            println!("{}", show::locations(mesh));
            println!("  Ctrl-C stops it.");
        }
        tokio::select! {
            signal = stop_signal() => signal,
            ended = mesh.wait_for_failure() => ended,
        }
    }

    fn options(&self) -> Result<MeshOptions> {
        let own = std::env::current_exe().context("find the service binaries")?;
        let binaries = own
            .parent()
            .context("find the service binaries")?
            .to_path_buf();
        let alone = self.one_process
            || !binaries
                .join(format!("servo-{}", Service::Gateway))
                .exists();
        Ok(MeshOptions {
            database_url: self.database_url.clone(),
            one_process: alone.then_some(own),
            ..MeshOptions::new(&self.dir, binaries)
        })
    }
}

async fn stop(mesh: LocalMesh, quiet: bool) -> Result<()> {
    let began = Instant::now();
    mesh.stop().await?;
    if !quiet {
        println!(
            "  stopped everything in {:.1} s",
            began.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// Waits for SIGINT or SIGTERM.
async fn stop_signal() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    tokio::select! {
        interrupt = tokio::signal::ctrl_c() => interrupt.context("listen for SIGINT"),
        _ = terminate.recv() => Ok(()),
    }
}
