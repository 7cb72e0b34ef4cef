//! Keeping one stream open to every scheduler that holds execution shards.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use servo_mesh::{Doorbell, Mesh};
use servo_model::{AdmissionShard, Epoch, Service, Stream};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::admit_request::Message as ToScheduler;
use servo_proto::mesh::v1::scheduler_mesh_service_client::SchedulerMeshServiceClient;
use servo_store::{Store, StoreError};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::Config;
use crate::core::SchedulerStreamId;
use crate::engine::{Engine, Message, REQUESTS_QUEUED_MAX, SchedulerStream, StreamMessage};

/// Delay before holders are read again while a shard has none.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// Opens and retires streams, for the admission shards held here.
pub(crate) struct SchedulerStreams {
    mesh: Mesh<Config>,
    store: Store,
    engine: Engine,
    /// Rings when a stream ended or a shard moved.
    doorbell: Doorbell,
    next_stream_id: Arc<AtomicU64>,
    open: Mutex<HashMap<String, Open>>,
}

struct Open {
    stream_id: SchedulerStreamId,
    held: BTreeMap<AdmissionShard, Epoch>,
    ended: CancellationToken,
}

impl SchedulerStreams {
    pub(crate) fn new(
        mesh: &Mesh<Config>,
        store: &Store,
        engine: Engine,
        doorbell: &Doorbell,
    ) -> SchedulerStreams {
        SchedulerStreams {
            mesh: mesh.clone(),
            store: store.clone(),
            engine,
            doorbell: doorbell.clone(),
            next_stream_id: Arc::default(),
            open: Mutex::default(),
        }
    }

    /// Compares the open streams with the current holders.
    /// Returns when to compare again while schedulers are about to acquire shards.
    pub(crate) async fn run_once(&self) -> Result<Option<Duration>, StoreError> {
        let held = self.engine.held().borrow().clone();
        let (mut wanted, mut again_in) = (BTreeSet::new(), None);
        if !held.is_empty() {
            let holders = self.store.loops().holders(Stream::Execution).await?;
            if holders.len() < Stream::Execution.shards().count() {
                // A scheduler that is not in the list yet is about to acquire the missing shards.
                again_in = Some(RETRY_DELAY);
            }
            wanted.extend(holders.into_iter().map(|holder| holder.address));
        }
        let mut open = self.open.lock().await;
        open.retain(|_, stream| !stream.ended.is_cancelled());
        for (address, stream) in &*open {
            // A stream is opened for a fixed set of admission shards, because its snapshots must
            // cover exactly those. After a change, this stream ends when its claims are answered,
            // and the next pass opens a new one.
            if !wanted.contains(address) || stream.held != held {
                self.engine
                    .send(Message::Scheduler(stream.stream_id, StreamMessage::Retire))
                    .await;
            }
        }
        for address in wanted {
            if !open.contains_key(&address)
                && let Some(stream) = self.open(&address, &held)
            {
                open.insert(address, stream);
            }
        }
        Ok(again_in)
    }

    fn open(&self, address: &str, held: &BTreeMap<AdmissionShard, Epoch>) -> Option<Open> {
        let peer = self.mesh.peer_at(Service::Scheduler, address);
        let peer = peer
            .inspect_err(|error| warn!(address, ?error, "a scheduler's address is invalid"))
            .ok()?;
        let stream_id = SchedulerStreamId(self.next_stream_id.fetch_add(1, Ordering::Relaxed));
        let (requests, outgoing) = mpsc::channel(REQUESTS_QUEUED_MAX);
        let _ = requests.try_send(opening(held));
        let stream = SchedulerStream {
            address: address.to_owned(),
            stream_id,
            shards: held.keys().copied().collect(),
            engine: self.engine.clone(),
            requests,
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
            doorbell: self.doorbell.clone(),
        };
        let ended = stream.ended.clone();
        let run = stream.run(SchedulerMeshServiceClient::new(peer), outgoing);
        servo_actor::spawn_task("scheduler stream", run);
        Some(Open {
            stream_id,
            held: held.clone(),
            ended,
        })
    }
}

fn opening(held: &BTreeMap<AdmissionShard, Epoch>) -> mesh_pb::AdmitRequest {
    let lease = |(shard, epoch): (&AdmissionShard, &Epoch)| mesh_pb::AdmissionLease {
        admission_shard: u32::from(*shard),
        epoch: epoch.get(),
    };
    let open = mesh_pb::AdmitOpen {
        leases: held.iter().map(lease).collect(),
    };
    mesh_pb::AdmitRequest {
        message: Some(ToScheduler::Open(open)),
    }
}
