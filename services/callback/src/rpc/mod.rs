//! `servo.v1.CallbackService`. Every call, alone or on a stream, takes the same way: signature, then the deed.

mod deeds;
mod outcome;
mod stream;
mod tail_logs;

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use servo_mesh::{Error, PageTokens, Reason};
use servo_proto::v1;
use servo_proto::v1::callback_service_server::CallbackService;
use servo_store::Store;
use tonic::{Request, Response, Status, Streaming};

use crate::beats::Beats;
use crate::core::Door;
use crate::forward::Forward;
use crate::logs::Logs;
use crate::metrics::Metrics;
use crate::outputs::Outputs;

const PRESIGNED: &str = "servo-presigned";

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Callback {
    pub(crate) door: Arc<Door>,
    pub(crate) forward: Forward,
    pub(crate) beats: Beats,
    pub(crate) logs: Logs,
    pub(crate) outputs: Outputs,
    pub(crate) store: Store,
    pub(crate) tokens: PageTokens,
    pub(crate) metrics: Metrics,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl CallbackService for Callback {
    async fn start_attempt(
        &self,
        request: Request<v1::StartAttemptRequest>,
    ) -> Result<Response<v1::StartAttemptResponse>, Status> {
        let presigned = presigned(&request)?;
        Ok(Response::new(self.start(&presigned, request.into_inner(), current_trace()).await?))
    }

    async fn heartbeat(
        &self,
        request: Request<v1::HeartbeatRequest>,
    ) -> Result<Response<v1::HeartbeatResponse>, Status> {
        let presigned = presigned(&request)?;
        Ok(Response::new(self.beat(&presigned, request.into_inner()).await?))
    }

    async fn append_logs(
        &self,
        request: Request<v1::AppendLogsRequest>,
    ) -> Result<Response<v1::AppendLogsResponse>, Status> {
        let presigned = presigned(&request)?;
        Ok(Response::new(self.append(&presigned, request.into_inner()).await?))
    }

    async fn finish_attempt(
        &self,
        request: Request<v1::FinishAttemptRequest>,
    ) -> Result<Response<v1::FinishAttemptResponse>, Status> {
        let presigned = presigned(&request)?;
        Ok(Response::new(self.finish(&presigned, request.into_inner(), current_trace()).await?))
    }

    async fn stream_callbacks(
        &self,
        request: Request<Streaming<v1::StreamCallbacksRequest>>,
    ) -> Result<Response<Answers<v1::StreamCallbacksResponse>>, Status> {
        Ok(Response::new(stream::stream_callbacks(self.clone(), request.into_inner())))
    }

    async fn tail_logs(
        &self,
        request: Request<v1::TailLogsRequest>,
    ) -> Result<Response<Answers<v1::TailLogsResponse>>, Status> {
        Ok(Response::new(tail_logs::tail_logs(self, request.into_inner()).await?))
    }
}

/// The trace of the call being served, for the event that records it.
pub(crate) fn current_trace() -> Option<v1::TraceContext> {
    let trace = servo_mesh::current_trace()?;
    Some(v1::TraceContext { traceparent: trace.to_string(), tracestate: trace.state().to_owned() })
}

fn presigned<T>(request: &Request<T>) -> Result<String, Error> {
    let missing = || {
        Error::new(Reason::SignatureInvalid, "the call carries no servo-presigned; send the envelope's path")
    };
    let value = request.metadata().get(PRESIGNED).ok_or_else(missing)?;
    Ok(value.to_str().map_err(|_| missing())?.to_owned())
}
