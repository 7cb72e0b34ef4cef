//! Redirecting workers to the new holder of their tenant's admission shard.

use std::collections::BTreeMap;
use std::time::Duration;

use servo_model::{AdmissionShard, Epoch, ShardId, Stream};
use servo_proto::v1 as pb;
use servo_proto::v1::pull_tasks_response::Message as ToWorker;
use servo_store::LoopStore;
use tokio::sync::{mpsc, watch};

use super::worker_streams::pull_response;
use crate::core::WorkerKey;

/// How long a redirect waits for the shard to get a holder. After that the worker registers again
/// to learn the address.
const HOLDER_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A worker whose tenant is no longer admitted here.
pub(crate) struct RedirectedWorker {
    pub(crate) worker: WorkerKey,
    pub(crate) admission_shard: AdmissionShard,
    pub(crate) responses: mpsc::Sender<pb::PullTasksResponse>,
}

#[derive(Clone)]
pub(crate) struct Redirects {
    pub(crate) loops: LoopStore,
    pub(crate) own_address: String,
}

impl Redirects {
    /// Sends the new address to the worker as soon as the shard has a holder. `held` are the shards
    /// held here.
    pub(crate) fn redirect(
        &self,
        redirected: RedirectedWorker,
        held: watch::Receiver<BTreeMap<AdmissionShard, Epoch>>,
    ) {
        let redirects = self.clone();
        servo_actor::spawn_task("worker redirect", async move {
            let found = tokio::time::timeout(
                HOLDER_TIMEOUT,
                redirects.holder(redirected.admission_shard, &held),
            )
            .await;
            let address = found.unwrap_or_default();
            // The stream may have been closed by the worker.
            let _ = redirected
                .responses
                .send(pull_response(ToWorker::Moved(pb::PullMoved { address })))
                .await;
        });
    }

    async fn holder(
        &self,
        admission_shard: AdmissionShard,
        held: &watch::Receiver<BTreeMap<AdmissionShard, Epoch>>,
    ) -> String {
        loop {
            let leases = self
                .loops
                .holders(Stream::Dispatch)
                .await
                .unwrap_or_default();
            let lease = leases
                .into_iter()
                .find(|lease| lease.shard == ShardId::from(admission_shard));
            // Our own lease row may still be listed after we gave the shard up; it counts only if
            // we hold the shard again.
            let is_good = |address: &String| {
                *address != self.own_address || held.borrow().contains_key(&admission_shard)
            };
            if let Some(address) = lease.map(|lease| lease.address).filter(is_good) {
                return address;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}
