//! Hearing what others notify: a doorbell between processes. A lost ring costs latency, never correctness.

use sqlx::postgres::PgListener;

use crate::error::StoreError;
use crate::store::Store;

/// Listens on one channel, over a connection of the loops' pool that it keeps.
#[derive(Debug)]
pub struct Listener(PgListener);

impl Store {
    /// What is notified before the answer is not heard: look after it.
    pub async fn listen(&self, channel: &str) -> Result<Listener, StoreError> {
        let mut listener = PgListener::connect_with(&self.loops().pool.inner).await?;
        listener.listen(channel).await?;
        Ok(Listener(listener))
    }
}

impl Listener {
    /// Waits for the next ring. An error means that rings may have been lost: look, and listen anew.
    pub async fn heard(&mut self) -> Result<(), StoreError> {
        match self.0.try_recv().await? {
            Some(_) => Ok(()),
            None => Err(StoreError::Unavailable(
                "the connection that listened is gone".to_owned(),
            )),
        }
    }
}
