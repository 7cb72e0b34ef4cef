//! Which instance holds a shard, as the lease rows say.

use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_mesh::{Holders, Instance, Mesh};
use servo_model::{Service, ShardId, Stream};
use servo_store::{LoopStore, StoreError};
use tokio::sync::Mutex;
use tracing::warn;

/// Finds the holders of a stream's shards. Cheap to clone; clones share what they learned.
///
/// [`ShardHolders::of`] answers from memory. Leases rarely move, so callers refresh only when that
/// answer is missing or turned out to be wrong; `fresh` limits how often the rows are read however
/// many callers ask for it.
#[derive(Clone)]
pub struct ShardHolders {
    known: Holders,
    loops: LoopStore,
    stream: Stream,
    read_at: Arc<Mutex<Option<Instant>>>,
}

impl ShardHolders {
    /// The holders of `stream`, which `service` leases.
    pub fn new<C>(
        mesh: &Mesh<C>,
        loops: &LoopStore,
        service: Service,
        stream: Stream,
    ) -> ShardHolders {
        ShardHolders {
            known: mesh.holders(service),
            loops: loops.clone(),
            stream,
            read_at: Arc::default(),
        }
    }

    /// The holder as last read; `None` when the shard had none.
    pub fn of(&self, shard: ShardId) -> Option<Instance> {
        self.known.of(shard)
    }

    /// Reads the lease rows unless they were read within this time. When that fails, what was known
    /// before still counts.
    pub async fn fresh(&self, within: Duration) -> Result<(), StoreError> {
        let mut read_at = self.read_at.lock().await;
        if is_within(*read_at, within) {
            return Ok(());
        }
        self.read().await?;
        *read_at = Some(Instant::now());
        Ok(())
    }

    /// Like [`ShardHolders::fresh`], for callers that continue with the last known holders when the
    /// read fails. A failure is logged and counts as a read, so that callers do not read more often
    /// while the database is unavailable.
    pub async fn fresh_or_last_known(&self, within: Duration) {
        let mut read_at = self.read_at.lock().await;
        if is_within(*read_at, within) {
            return;
        }
        if let Err(error) = self.read().await {
            let stream = self.stream.name();
            warn!(%error, stream, "failed to refresh shard holders; using the last known set");
        }
        *read_at = Some(Instant::now());
    }

    async fn read(&self) -> Result<(), StoreError> {
        let leases = self.loops.holders(self.stream).await?;
        self.known
            .learn(leases.into_iter().map(|lease| (lease.shard, lease.address)));
        Ok(())
    }
}

fn is_within(read_at: Option<Instant>, time: Duration) -> bool {
    read_at.is_some_and(|at| at.elapsed() < time)
}
