//! Stop signals: the first one drains, the second one ends the process immediately.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

/// A cheap handle that all parts of a process observe.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    draining: CancellationToken,
    ended: CancellationToken,
    since: Arc<OnceLock<Instant>>,
}

impl Shutdown {
    pub fn new() -> Shutdown {
        Shutdown::default()
    }

    /// Drains at SIGTERM or SIGINT and ends the process at the next one.
    pub fn on_signals() -> io::Result<Shutdown> {
        let (mut terminate, mut interrupt) = (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        );
        let shutdown = Shutdown::new();
        let handle = shutdown.clone();
        servo_actor::spawn("signals", async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => handle.signalled("SIGTERM"),
                    _ = interrupt.recv() => handle.signalled("SIGINT"),
                }
            }
        });
        Ok(shutdown)
    }

    /// Stops accepting calls and finishes those in flight.
    pub fn drain(&self) {
        self.since.get_or_init(Instant::now);
        self.draining.cancel();
    }

    /// Ends the process without waiting.
    pub fn end(&self) {
        self.drain();
        self.ended.cancel();
    }

    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    pub async fn draining(&self) {
        self.draining.cancelled().await;
    }

    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Returns the rest of a grace period that began with the stop signal.
    pub(crate) fn rest_of(&self, grace: Duration) -> Duration {
        grace.saturating_sub(self.since.get().map(Instant::elapsed).unwrap_or_default())
    }

    /// An owned token, for futures that poll it manually.
    pub(crate) fn drain_token(&self) -> CancellationToken {
        self.draining.clone()
    }

    fn signalled(&self, signal: &str) {
        if self.is_draining() {
            info!(signal, "second stop signal, ending immediately");
            self.end();
        } else {
            info!(signal, "stop signal, finishing calls in flight");
            self.drain();
        }
    }
}
