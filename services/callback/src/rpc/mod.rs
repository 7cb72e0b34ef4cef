//! `servo.v1.CallbackService`, one file per method. A call is handled in the same way alone,
//! on a stream or over HTTPS: its signature is verified, then it is carried out.

pub(crate) mod append_logs;
pub(crate) mod finish_attempt;
pub(crate) mod heartbeat;
pub(crate) mod start_attempt;
mod stream_callbacks;
pub(crate) mod support;
mod tail_logs;

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use servo_mesh::PageTokens;
use servo_proto::v1 as pb;
use servo_proto::v1::callback_service_server::CallbackService;
use servo_store::Store;
use tonic::{Request, Response, Status, Streaming};

use self::support::presigned::presented;
use crate::commit_markers::CommitMarkers;
use crate::core::SignatureVerifier;
use crate::forward::Forwarder;
use crate::heartbeats::Heartbeats;
use crate::logs::Logs;
use crate::metrics::Metrics;

/// The context of every handler. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Callback {
    pub(crate) signatures: Arc<SignatureVerifier>,
    pub(crate) forwarder: Forwarder,
    pub(crate) heartbeats: Heartbeats,
    pub(crate) logs: Logs,
    pub(crate) commit_markers: CommitMarkers,
    pub(crate) store: Store,
    pub(crate) tokens: PageTokens,
    pub(crate) metrics: Metrics,
}

type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl CallbackService for Callback {
    async fn start_attempt(
        &self,
        request: Request<pb::StartAttemptRequest>,
    ) -> Result<Response<pb::StartAttemptResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let presented = presented(&metadata)?;
        Ok(Response::new(
            start_attempt::start_attempt(self, presented, request).await?,
        ))
    }

    async fn heartbeat(
        &self,
        request: Request<pb::HeartbeatRequest>,
    ) -> Result<Response<pb::HeartbeatResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let presented = presented(&metadata)?;
        Ok(Response::new(
            heartbeat::heartbeat(self, presented, request).await?,
        ))
    }

    async fn append_logs(
        &self,
        request: Request<pb::AppendLogsRequest>,
    ) -> Result<Response<pb::AppendLogsResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let presented = presented(&metadata)?;
        Ok(Response::new(
            append_logs::append_logs(self, presented, request).await?,
        ))
    }

    async fn finish_attempt(
        &self,
        request: Request<pb::FinishAttemptRequest>,
    ) -> Result<Response<pb::FinishAttemptResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let presented = presented(&metadata)?;
        Ok(Response::new(
            finish_attempt::finish_attempt(self, presented, request).await?,
        ))
    }

    async fn stream_callbacks(
        &self,
        request: Request<Streaming<pb::StreamCallbacksRequest>>,
    ) -> Result<Response<ResponseStream<pb::StreamCallbacksResponse>>, Status> {
        let calls = request.into_inner();
        Ok(Response::new(stream_callbacks::stream_callbacks(
            self.clone(),
            calls,
        )))
    }

    async fn tail_logs(
        &self,
        request: Request<pb::TailLogsRequest>,
    ) -> Result<Response<ResponseStream<pb::TailLogsResponse>>, Status> {
        Ok(Response::new(
            tail_logs::tail_logs(self, request.into_inner()).await?,
        ))
    }
}
