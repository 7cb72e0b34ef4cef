//! Notices that Postgres is not the one it was, so that nobody goes on with what they remember of it.
//!
//! A crash may take back what was committed asynchronously, and a broken connection leaves open what became of
//! a transaction. Whoever caches rows or leases watches the generation and forgets everything when it changes.

use std::sync::Mutex;

use sqlx::PgConnection;
use tokio::sync::watch;

use crate::time::Timestamp;

/// Changes whenever a connection was lost or another Postgres answered.
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

    /// Begins a new generation if this error says that a connection was lost.
    pub(crate) fn note(&self, error: &sqlx::Error) {
        if crate::error::connection_is_lost(error) {
            self.next();
        }
    }

    /// Asks a new connection which Postgres it reached.
    pub(crate) async fn greet(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let started_at: Timestamp = sqlx::query_scalar(include_str!("sql/started_at.sql"))
            .fetch_one(connection)
            .await?;
        let before = self
            .started_at
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .replace(started_at);
        if before.is_some_and(|before| before != started_at) {
            self.next();
        }
        Ok(())
    }

    fn next(&self) {
        self.current.send_modify(|generation| generation.0 += 1);
    }
}
