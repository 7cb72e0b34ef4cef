//! `demo` and `dev`: the whole mesh, as nine processes where their binaries stand beside this one, else as one.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use servo_local::{LocalMesh, MeshOptions};
use servo_model::Service;
use tokio::signal::unix::{SignalKind, signal};

use crate::{demo, show};

#[derive(Debug, Args)]
pub struct Local {
    /// Where data, certificates, configuration and logs are kept
    #[arg(long, default_value = ".servo")]
    dir: PathBuf,
    /// An existing Postgres, of a user who may create roles; without it a private one is started
    #[arg(long, env = "SERVO_DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,
    /// Run all services in one process, as is done where this binary stands alone
    #[arg(long)]
    one_process: bool,
    /// Print what was started as JSON
    #[arg(long)]
    json: bool,
}

impl Local {
    /// Starts the mesh, runs the example project, stops it.
    pub fn demo(self) -> Result<()> {
        self.run(false)
    }

    /// Starts the mesh, shows it, and keeps it until a signal comes or a service ends by itself.
    pub fn dev(self) -> Result<()> {
        self.run(true)
    }

    fn run(self, stay: bool) -> Result<()> {
        let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
        runtime.block_on(self.start_show_stop(stay))
    }

    async fn start_show_stop(&self, stay: bool) -> Result<()> {
        let mut progress = show::Progress::start(self.json);
        // What is half started when a signal comes is dropped, and thereby stopped.
        let mut mesh = tokio::select! {
            mesh = LocalMesh::start(self.options()?, |step| progress.done(step)) => mesh?,
            signal = stop_signal() => return signal,
        };
        let kept = self.use_it(&mut mesh, stay).await;
        stop(mesh, self.json).and(kept)
    }

    async fn use_it(&self, mesh: &mut LocalMesh, stay: bool) -> Result<()> {
        let status = mesh.status().await;
        if !self.json {
            println!("{}", show::table(&status));
        }
        let outcome = match stay {
            true => None,
            false => Some(demo::run(mesh, self.json).await?),
        };
        match self.json {
            true => println!("{}", show::json(mesh, &status, outcome.as_ref())?),
            false => println!("{}", show::places(mesh)),
        }
        if stay { self.keep(mesh).await } else { Ok(()) }
    }

    async fn keep(&self, mesh: &mut LocalMesh) -> Result<()> {
        if !self.json {
            println!("  Ctrl-C stops it.");
        }
        tokio::select! {
            signal = stop_signal() => signal,
            ended = mesh.until_one_ends() => ended,
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

fn stop(mesh: LocalMesh, quiet: bool) -> Result<()> {
    let began = Instant::now();
    mesh.stop()?;
    if !quiet {
        println!(
            "  stopped everything in {:.1} s",
            began.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// SIGINT or SIGTERM.
async fn stop_signal() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    tokio::select! {
        interrupt = tokio::signal::ctrl_c() => interrupt.context("listen for SIGINT"),
        _ = terminate.recv() => Ok(()),
    }
}
