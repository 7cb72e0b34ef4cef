//! Enables everything that is logged and, independent of the log level, everything that is
//! exported.
//!
//! There is one filter for all layers. With the per-layer filters of `tracing-subscriber`, spans
//! vanished in end-to-end tests. They keep the result of the last check on the thread, and a mere
//! query whether something is enabled probably overwrites it.

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::{EnvFilter, Layer};

use super::draft::RPC;

/// The prefix of the span names that the operations manual lists.
const EXPORTED_PREFIX: &str = "servo.";

/// Exported spans are chosen by name, so that a high log level does not thin out the traces.
pub(super) fn is_exported(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && (metadata.name() == RPC || metadata.name().starts_with(EXPORTED_PREFIX))
}

/// The log's filter, which does not apply to exported spans.
pub(crate) struct LoggedOrExported(pub(crate) EnvFilter);

impl<S: Subscriber> Layer<S> for LoggedOrExported {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        let logged = Layer::<S>::register_callsite(&self.0, metadata);
        if is_exported(metadata) {
            Interest::always()
        } else {
            logged
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, context: Context<'_, S>) -> bool {
        is_exported(metadata) || Layer::<S>::enabled(&self.0, metadata, context)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Layer::<S>::max_level_hint(&self.0).map(|logged| logged.max(LevelFilter::DEBUG))
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        self.0.on_new_span(attributes, id, context);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        Layer::<S>::on_record(&self.0, id, values, context);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        Layer::<S>::on_enter(&self.0, id, context);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        Layer::<S>::on_exit(&self.0, id, context);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        Layer::<S>::on_close(&self.0, id, context);
    }
}
