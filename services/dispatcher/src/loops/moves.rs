//! Sending workers after the lease of their tenant: a stream ends with the address of the new holder.

use std::collections::BTreeMap;
use std::time::Duration;

use servo_model::Stream;
use servo_proto::v1 as pb;
use servo_proto::v1::pull_tasks_response::Message as Tell;
use servo_store::LoopStore;
use tokio::sync::watch;

use super::engine::tell;
use super::sessions::Moved;

/// How long a worker waits for somebody to take the lease; after that registration says where to go.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub(crate) struct Moves {
    pub(crate) loops: LoopStore,
    pub(crate) own_address: String,
}

impl Moves {
    /// Tells the worker as soon as there is somewhere to go. Nothing is admitted for it here meanwhile.
    /// `held` is what is admitted here.
    pub(crate) fn tell(&self, moved: Moved, held: watch::Receiver<BTreeMap<i16, u64>>) {
        let moves = self.clone();
        tokio::spawn(async move {
            let found =
                tokio::time::timeout(PATIENCE, moves.holder(moved.admission_shard, &held)).await;
            let address = found.unwrap_or_default();
            // A stream that is gone needs no address.
            let _ = moved.out.send(tell(Tell::Moved(pb::PullMoved { address })));
        });
    }

    async fn holder(
        &self,
        admission_shard: i16,
        held: &watch::Receiver<BTreeMap<i16, u64>>,
    ) -> String {
        loop {
            let leases = self
                .loops
                .holders(Stream::Dispatch)
                .await
                .unwrap_or_default();
            let lease = leases
                .into_iter()
                .find(|lease| lease.shard == admission_shard);
            // Our own lease may be about to be given back, or just taken again.
            let is_good = |address: &String| {
                *address != self.own_address || held.borrow().contains_key(&admission_shard)
            };
            if let Some(address) = lease.map(|lease| lease.address).filter(is_good) {
                return address;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}
