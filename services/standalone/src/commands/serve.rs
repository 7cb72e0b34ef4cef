//! `serve`: the nine services in one process.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::de::DeserializeOwned;
use servo_mesh::{Exporter, Fault, Mesh, ServiceFuture, Settings, Shutdown, Sources};
use servo_model::Service;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

#[derive(Debug, Args)]
pub struct Serve {
    /// The folder with one file per service: planner.toml, scheduler.toml, …
    #[arg(long)]
    config: PathBuf,
}

impl Serve {
    pub fn run(self) -> ExitCode {
        match self.serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(fault) => {
                eprintln!("servo: {fault}");
                fault.exit_code()
            }
        }
    }

    fn serve(&self) -> Result<(), Fault> {
        let runtime = Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut services = Services::new(&self.config)?;
            services.add(Service::Planner, servo_planner::start)?;
            services.add(Service::Scheduler, servo_scheduler::start)?;
            services.add(Service::Dispatcher, servo_dispatcher::start)?;
            services.add(Service::Callback, servo_callback::start)?;
            services.add(Service::Backfill, servo_backfill::start)?;
            services.add(Service::Automation, servo_automation::start)?;
            services.add(Service::Quota, servo_quota::start)?;
            services.add(Service::Console, servo_console::start)?;
            services.add(Service::Gateway, servo_gateway::start)?;
            services.wait_until_all_end().await
        })
    }
}

struct Services<'a> {
    dir: &'a Path,
    shutdown: Shutdown,
    running: JoinSet<Result<(), Fault>>,
    exporter: Option<(Exporter, Duration)>,
}

impl Services<'_> {
    fn new(dir: &Path) -> Result<Services<'_>, Fault> {
        Ok(Services {
            dir,
            shutdown: Shutdown::on_signals()?,
            running: JoinSet::new(),
            exporter: None,
        })
    }

    fn add<C: DeserializeOwned>(
        &mut self,
        service: Service,
        start: fn(Mesh<C>) -> ServiceFuture,
    ) -> Result<(), Fault> {
        let sources = Sources::new().file(self.dir.join(format!("{service}.toml")));
        let settings = Settings::read(service, &sources)?;
        if self.running.is_empty() {
            let exporter = servo_mesh::telemetry::init(&settings)?;
            self.exporter = exporter.map(|exporter| (exporter, settings.common.server.grace));
        }
        self.running
            .spawn(start(Mesh::new(settings, self.shutdown.clone())));
        Ok(())
    }

    /// A service that fails stops the others, because a partial mesh in one process is of no use.
    async fn wait_until_all_end(mut self) -> Result<(), Fault> {
        let mut outcome = Ok(());
        while let Some(ended) = self.running.join_next().await {
            let ended = ended.unwrap_or_else(|error| Err(Fault::runtime(error)));
            self.shutdown.drain();
            outcome = outcome.and(ended);
        }
        if let Some((exporter, grace)) = self.exporter {
            exporter.finish(&self.shutdown, grace).await;
        }
        outcome
    }
}
