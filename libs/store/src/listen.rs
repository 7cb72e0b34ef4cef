//! Receives notifications: a doorbell between processes. A lost ring costs latency, never
//! correctness.

use sqlx::postgres::PgListener;

use crate::error::StoreError;
use crate::store::Store;

/// Listens on one channel, over a connection that it keeps from the loops' pool.
#[derive(Debug)]
pub struct Listener(PgListener);

impl Store {
    /// Starts listening. Earlier notifications are not received, so check for changes after this
    /// returns.
    pub async fn listen(&self, channel: &str) -> Result<Listener, StoreError> {
        let mut listener = PgListener::connect_with(&self.loops().pool.inner).await?;
        listener.listen(channel).await?;
        Ok(Listener(listener))
    }
}

impl Listener {
    /// Waits for the next ring. After an error rings may have been lost: check for changes, and
    /// listen again.
    pub async fn notified(&mut self) -> Result<(), StoreError> {
        match self.0.try_recv().await? {
            Some(_) => Ok(()),
            None => Err(StoreError::Unavailable(
                "the listening connection was lost".to_owned(),
            )),
        }
    }
}
