//! One stream to every scheduler that holds shards of runs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use servo_mesh::{Doorbell, Mesh, Reason};
use servo_model::{Service, Stream};
use servo_proto::v1 as pb;
use servo_proto::v1::admit_request::Message as Say;
use servo_proto::v1::admit_response::Message as Tell;
use servo_proto::v1::scheduler_service_client::SchedulerServiceClient;
use servo_store::{Store, StoreError};
use tokio::sync::{Mutex, mpsc};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tracing::{debug, warn};

use super::engine::{Engine, Message, Outlet, Told};
use crate::Config;
use crate::core::SourceId;
use crate::wire;

/// How soon holders are looked up again while a shard has none.
const LOOK_SOON: Duration = Duration::from_millis(200);

/// Keeps a stream open to every holder, for the admission shards held here.
pub(crate) struct StreamLoop {
    mesh: Mesh<Config>,
    store: Store,
    engine: Engine,
    /// Rings when a stream ended or a shard moved.
    bell: Doorbell,
    sources: Arc<AtomicU64>,
    open: Mutex<HashMap<String, Open>>,
}

struct Open {
    source: SourceId,
    held: BTreeMap<i16, u64>,
    ended: CancellationToken,
}

impl StreamLoop {
    pub(crate) fn new(
        mesh: &Mesh<Config>,
        store: &Store,
        engine: Engine,
        bell: &Doorbell,
    ) -> StreamLoop {
        StreamLoop {
            mesh: mesh.clone(),
            store: store.clone(),
            engine,
            bell: bell.clone(),
            sources: Arc::default(),
            open: Mutex::default(),
        }
    }

    /// Compares what is open with what should be.
    pub(crate) async fn run_once(&self) -> Result<(), StoreError> {
        let held = self.engine.held().borrow().clone();
        let mut wanted = BTreeSet::new();
        if !held.is_empty() {
            let holders = self.store.loops().holders(Stream::Execution).await?;
            if holders.len() < usize::try_from(Stream::Execution.shards()).unwrap_or_default() {
                // It is about to be taken, by a scheduler that we may not know yet.
                self.bell.ring_in(LOOK_SOON);
            }
            wanted.extend(holders.into_iter().map(|holder| holder.address));
        }
        let mut open = self.open.lock().await;
        open.retain(|_, stream| !stream.ended.is_cancelled());
        for (address, stream) in &*open {
            // Other shards need a stream of their own, whose snapshots are known to hold just them: this one ends when
            // its claims are answered, and the next pass opens the other.
            if !wanted.contains(address) || stream.held != held {
                self.engine.tell(Message::Told(stream.source, Told::Retire));
            }
        }
        for address in wanted {
            if !open.contains_key(&address)
                && let Some(stream) = self.open(&address, &held)
            {
                open.insert(address, stream);
            }
        }
        Ok(())
    }

    fn open(&self, address: &str, held: &BTreeMap<i16, u64>) -> Option<Open> {
        let peer = self.mesh.peer_at(Service::Scheduler, address);
        let peer = peer
            .inspect_err(|error| warn!(address, ?error, "a scheduler has no usable address"))
            .ok()?;
        let source = SourceId(self.sources.fetch_add(1, Ordering::Relaxed));
        let (requests, outgoing) = mpsc::unbounded_channel();
        let _ = requests.send(opening(held));
        let stream = Running {
            address: address.to_owned(),
            source,
            shards: held.keys().copied().collect(),
            engine: self.engine.clone(),
            requests,
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
            bell: self.bell.clone(),
        };
        let ended = stream.ended.clone();
        tokio::spawn(stream.run(SchedulerServiceClient::new(peer), outgoing));
        Some(Open {
            source,
            held: held.clone(),
            ended,
        })
    }
}

fn opening(held: &BTreeMap<i16, u64>) -> pb::AdmitRequest {
    let lease = |(shard, epoch): (&i16, &u64)| pb::AdmissionLease {
        admission_shard: u32::try_from(*shard).unwrap_or_default(),
        epoch: *epoch,
    };
    let open = pb::AdmitOpen {
        leases: held.iter().map(lease).collect(),
    };
    pb::AdmitRequest {
        message: Some(Say::Open(open)),
    }
}

/// A stream being read.
struct Running {
    address: String,
    source: SourceId,
    shards: Vec<i16>,
    engine: Engine,
    requests: mpsc::UnboundedSender<pb::AdmitRequest>,
    stop: CancellationToken,
    ended: CancellationToken,
    bell: Doorbell,
}

impl Running {
    async fn run(
        self,
        client: SchedulerServiceClient<servo_mesh::Peer>,
        outgoing: mpsc::UnboundedReceiver<pb::AdmitRequest>,
    ) {
        let outlet = Outlet {
            requests: self.requests.clone(),
            stop: self.stop.clone(),
        };
        self.tell(Told::Opened(self.shards.clone(), outlet));
        tokio::select! {
            () = self.stop.cancelled() => {}
            ended = self.read(client, outgoing) => {
                if let Err(status) = ended {
                    debug!(address = self.address, %status, "a stream of admission ended");
                    // Who refuses at once is not asked again at once.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        self.tell(Told::Closed);
        self.ended.cancel();
        self.bell.ring();
    }

    async fn read(
        &self,
        mut client: SchedulerServiceClient<servo_mesh::Peer>,
        outgoing: mpsc::UnboundedReceiver<pb::AdmitRequest>,
    ) -> Result<(), Status> {
        let mut stream = client
            .admit(UnboundedReceiverStream::new(outgoing))
            .await?
            .into_inner();
        while let Some(response) = stream.message().await? {
            match self.understand(response) {
                Ok(Some(told)) => self.tell(told),
                Ok(None) => {}
                Err(fault) => {
                    warn!(address = self.address, %fault, "a scheduler said what cannot be read");
                    return Err(
                        servo_mesh::Error::new(Reason::InvalidField, fault.to_string()).into(),
                    );
                }
            }
        }
        Ok(())
    }

    fn understand(&self, response: pb::AdmitResponse) -> Result<Option<Told>, wire::BadMessage> {
        Ok(Some(match response.message {
            Some(Tell::Snapshot(snapshot)) => Told::Snapshot(wire::snapshot(snapshot)?),
            Some(Tell::Update(update)) => Told::Update(wire::update(update)?),
            Some(Tell::Results(results)) => Told::Results(
                results.number,
                results.refused.iter().map(|claim| claim.index).collect(),
            ),
            Some(Tell::Gone(gone)) => {
                self.bell.ring();
                Told::Gone(wire::shard(gone.shard)?)
            }
            Some(Tell::Ahead(ahead)) => Told::Ahead(wire::plans(ahead)?),
            Some(Tell::Idle(_)) | None => return Ok(None),
        }))
    }

    fn tell(&self, told: Told) {
        self.engine.tell(Message::Told(self.source, told));
    }
}
