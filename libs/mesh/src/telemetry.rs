//! Logs on stderr: JSON for machines, pretty for people.

use std::io;

use tracing::error;
use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, Telemetry};
use crate::fault::Fault;

/// Starts logging for the whole process; once.
pub fn init(config: &Telemetry) -> Result<(), Fault> {
    let filter = EnvFilter::builder().parse(&config.filter)?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match config.format {
        LogFormat::Json => logs.json().flatten_event(true).with_span_list(false).try_init(),
        LogFormat::Pretty => logs.compact().try_init(),
    };
    std::panic::set_hook(Box::new(|panic| error!(%panic, "a task panicked")));
    started.map_err(|error| Fault::runtime(format!("logging cannot start: {error}")))
}
