//! Being told to stop: the first signal drains, the second ends at once.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

/// A cheap handle that all parts of a process watch.
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

    /// Begins to drain at SIGTERM or SIGINT and ends at the next one.
    pub fn on_signals() -> io::Result<Shutdown> {
        let (mut terminate, mut interrupt) = (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        );
        let shutdown = Shutdown::new();
        let told = shutdown.clone();
        servo_actor::spawn("signals", async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => told.signalled("SIGTERM"),
                    _ = interrupt.recv() => told.signalled("SIGINT"),
                }
            }
        });
        Ok(shutdown)
    }

    /// Take nothing new, finish what is under way.
    pub fn drain(&self) {
        self.since.get_or_init(Instant::now);
        self.draining.cancel();
    }

    /// Leave now.
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

    /// What is left of a grace that began when it was told to stop.
    pub(crate) fn left_of(&self, grace: Duration) -> Duration {
        grace.saturating_sub(self.since.get().map(Instant::elapsed).unwrap_or_default())
    }

    /// Lives on its own, for what polls it by hand.
    pub(crate) fn drain_token(&self) -> CancellationToken {
        self.draining.clone()
    }

    fn signalled(&self, signal: &str) {
        if self.is_draining() {
            info!(signal, "told to stop again, leaving at once");
            self.end();
        } else {
            info!(signal, "told to stop, finishing what is under way");
            self.drain();
        }
    }
}
