//! Detects that Postgres restarted or a connection was lost, so that cached state is discarded.
//!
//! A crash may undo asynchronous commits, and a broken connection leaves the outcome of a
//! transaction unknown. Code that caches rows or leases watches the generation and discards its
//! cache when it changes.

use std::sync::Mutex;

use sqlx::PgConnection;
use tokio::sync::watch;

use servo_model::Timestamp;

/// Changes whenever a connection is lost or Postgres has restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Generation(u64);

#[derive(Debug)]
pub(crate) struct Generations {
    current: watch::Sender<Generation>,
    started_at: Mutex<Option<Timestamp>>,
}

impl Generations {
    pub(crate) fn new() -> Self {
        Generations {
            current: watch::Sender::new(Generation::default()),
            started_at: Mutex::new(None),
        }
    }

    pub(crate) fn current(&self) -> Generation {
        *self.current.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Generation> {
        self.current.subscribe()
    }

    /// Begins a new generation if the error means that a connection was lost.
    pub(crate) fn observe(&self, error: &sqlx::Error) {
        if crate::error::connection_is_lost(error) {
            self.next();
        }
    }

    /// Checks on a new connection whether Postgres has restarted.
    pub(crate) async fn check_server(
        &self,
        connection: &mut PgConnection,
    ) -> Result<(), sqlx::Error> {
        let started_at: Timestamp = sqlx::query_scalar(include_str!("sql/started_at.sql"))
            .fetch_one(connection)
            .await?;
        let previous = self
            .started_at
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .replace(started_at);
        if previous.is_some_and(|previous| previous != started_at) {
            self.next();
        }
        Ok(())
    }

    fn next(&self) {
        self.current.send_modify(|generation| generation.0 += 1);
    }
}
