//! Reading one stream from a scheduler: the dispatcher's side of a dispatcher stream (`Admit`).

use std::time::Duration;

use servo_mesh::{Doorbell, Reason};
use servo_model::AdmissionShard;
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::admit_response::Message as FromScheduler;
use servo_proto::mesh::v1::scheduler_mesh_service_client::SchedulerMeshServiceClient;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tracing::{debug, warn};

use super::{Engine, Message, SchedulerConnection, StreamMessage};
use crate::core::SchedulerStreamId;
use crate::wire;

/// Delay before a stream that failed is reported as ended, because a scheduler that refuses a
/// stream at once would otherwise be called in a tight loop.
const REOPEN_DELAY: Duration = Duration::from_millis(100);

/// A stream to one scheduler.
pub(crate) struct SchedulerStream {
    pub(crate) address: String,
    pub(crate) stream_id: SchedulerStreamId,
    pub(crate) shards: Vec<AdmissionShard>,
    pub(crate) engine: Engine,
    pub(crate) requests: mpsc::Sender<mesh_pb::AdmitRequest>,
    pub(crate) stop: CancellationToken,
    pub(crate) ended: CancellationToken,
    pub(crate) doorbell: Doorbell,
}

impl SchedulerStream {
    pub(crate) async fn run(
        self,
        client: SchedulerMeshServiceClient<servo_mesh::Peer>,
        outgoing: mpsc::Receiver<mesh_pb::AdmitRequest>,
    ) {
        let connection = SchedulerConnection {
            requests: self.requests.clone(),
            stop: self.stop.clone(),
        };
        self.send_to_engine(StreamMessage::Opened(self.shards.clone(), connection))
            .await;
        tokio::select! {
            () = self.stop.cancelled() => {}
            ended = self.read(client, outgoing) => {
                if let Err(status) = ended {
                    debug!(address = self.address, %status, "stream to a scheduler ended");
                    tokio::time::sleep(REOPEN_DELAY).await;
                }
            }
        }
        self.send_to_engine(StreamMessage::Closed).await;
        self.ended.cancel();
        self.doorbell.ring();
    }

    async fn read(
        &self,
        mut client: SchedulerMeshServiceClient<servo_mesh::Peer>,
        outgoing: mpsc::Receiver<mesh_pb::AdmitRequest>,
    ) -> Result<(), Status> {
        let mut stream = client
            .admit(ReceiverStream::new(outgoing))
            .await?
            .into_inner();
        while let Some(response) = stream.message().await? {
            match self.decode(response) {
                Ok(Some(message)) => self.send_to_engine(message).await,
                Ok(None) => {}
                Err(fault) => {
                    warn!(address = self.address, %fault, "received an undecodable message from a scheduler");
                    return Err(
                        servo_mesh::Error::new(Reason::InvalidField, fault.to_string()).into(),
                    );
                }
            }
        }
        Ok(())
    }

    fn decode(
        &self,
        response: mesh_pb::AdmitResponse,
    ) -> Result<Option<StreamMessage>, wire::BadMessage> {
        Ok(Some(match response.message {
            Some(FromScheduler::Snapshot(snapshot)) => {
                StreamMessage::Snapshot(wire::snapshot(snapshot)?)
            }
            Some(FromScheduler::Update(update)) => StreamMessage::Update(wire::update(update)?),
            Some(FromScheduler::Results(results)) => StreamMessage::ClaimResults(
                results.number,
                results.refused.iter().map(|claim| claim.index).collect(),
            ),
            Some(FromScheduler::Gone(gone)) => {
                self.doorbell.ring();
                StreamMessage::ShardGone(wire::shard(gone.shard)?)
            }
            Some(FromScheduler::Announcement(announcement)) => {
                StreamMessage::PlansAnnounced(wire::announced_plans(announcement)?)
            }
            None => return Ok(None),
        }))
    }

    async fn send_to_engine(&self, message: StreamMessage) {
        self.engine
            .send(Message::Scheduler(self.stream_id, message))
            .await;
    }
}
