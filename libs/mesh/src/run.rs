//! The lifecycle of a service process, from its configuration to its exit code.

use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use serde::de::DeserializeOwned;
use servo_model::Service;
use tokio::runtime::Builder;

use crate::config::Sources;
use crate::fault::Fault;
use crate::mesh::Mesh;
use crate::settings::Settings;
use crate::shutdown::Shutdown;
use crate::telemetry;

/// Returns memory to the system after a burst and fragments less than the system's allocator;
/// otherwise a planner that once made a plan of ten thousand tasks would keep that size.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How long tasks that still run after the drain may take to stop.
const RUNTIME_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// A running service. Boxed, so that its code is compiled in its own crate and not again in every
/// program that runs it.
pub type ServiceFuture = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send>>;

/// Runs one service until it stops. The exit code is 0 after an orderly stop, 1 for a fault of the
/// running service, 2 for a wrong configuration; a fault is printed on stderr.
pub fn run<C: DeserializeOwned>(service: Service, start: fn(Mesh<C>) -> ServiceFuture) -> ExitCode {
    match boot(service, start) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("servo-{service}: {fault}");
            fault.exit_code()
        }
    }
}

fn boot<C: DeserializeOwned>(
    service: Service,
    start: fn(Mesh<C>) -> ServiceFuture,
) -> Result<(), Fault> {
    let settings = Settings::read(service, &Sources::from_process())?;
    let grace = settings.common.server.grace;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let exporter = telemetry::init(&settings)?;
        let shutdown = Shutdown::on_signals()?;
        let outcome = start(Mesh::new(settings, shutdown.clone())).await;
        if let Some(exporter) = exporter {
            exporter.finish(&shutdown, grace).await;
        }
        outcome
    });
    runtime.shutdown_timeout(RUNTIME_SHUTDOWN_TIMEOUT);
    outcome
}
