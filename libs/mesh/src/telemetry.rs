//! Logs on stderr, as JSON or as readable text, and the export of spans if it is configured.

use std::io;

use tracing::error;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer, fmt, registry};

use crate::config::{LogFormat, Telemetry};
use crate::fault::Fault;
use crate::settings::Settings;
use crate::spans::{self, Exporter, LoggedOrExported, SpanLayer};

/// Starts logging for the whole process and, if configured, the export of spans. Call it once, and
/// finish the exporter before the process ends.
pub fn init<C>(settings: &Settings<C>) -> Result<Option<Exporter>, Fault> {
    let config = &settings.common.telemetry;
    let filter = EnvFilter::builder().parse(&config.filter)?;
    let (started, exporter) = match &config.otlp_endpoint {
        None => (log(config, filter), None),
        Some(endpoint) => {
            let (layer, exporter) = spans::start(endpoint, settings.service, &settings.tls)?;
            (log_and_export(config, filter, layer), Some(exporter))
        }
    };
    std::panic::set_hook(Box::new(|panic| error!(%panic, "a task panicked")));
    started.map_err(|error| Fault::runtime(format!("logging cannot start: {error}")))?;
    Ok(exporter)
}

/// One global filter, so that events which are not logged are not created.
fn log(
    config: &Telemetry,
    filter: EnvFilter,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    match config.format {
        LogFormat::Json => logs
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .try_init(),
        LogFormat::Pretty => logs.compact().try_init(),
    }
}

/// Exports spans below the log level too, because they belong to their trace.
fn log_and_export(
    config: &Telemetry,
    filter: EnvFilter,
    spans: SpanLayer,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let logs = fmt::layer().with_writer(io::stderr);
    let logs = match config.format {
        LogFormat::Json => logs
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .boxed(),
        LogFormat::Pretty => logs.compact().boxed(),
    };
    let subscriber = registry()
        .with(logs)
        .with(spans)
        .with(LoggedOrExported(filter));
    subscriber.try_init().map_err(TryInitError::into)
}
