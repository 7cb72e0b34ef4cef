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
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

use crate::beats::Beats;
use crate::core::{Door, Shown};
use crate::forward::Forward;
use crate::logs::Logs;
use crate::metrics::Metrics;
use crate::outputs::Outputs;

const PRESIGNED: &str = "servo-presigned";
/// For a beat or logs whose own path has expired.
pub(crate) const RENEWAL: &str = "servo-presigned-renewal";

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
        let (metadata, _, asked) = request.into_parts();
        Ok(Response::new(
            self.start(shown(&metadata)?, asked, current_trace())
                .await?,
        ))
    }

    async fn heartbeat(
        &self,
        request: Request<v1::HeartbeatRequest>,
    ) -> Result<Response<v1::HeartbeatResponse>, Status> {
        let (metadata, _, asked) = request.into_parts();
        Ok(Response::new(self.beat(shown(&metadata)?, asked).await?))
    }

    async fn append_logs(
        &self,
        request: Request<v1::AppendLogsRequest>,
    ) -> Result<Response<v1::AppendLogsResponse>, Status> {
        let (metadata, _, asked) = request.into_parts();
        Ok(Response::new(self.append(shown(&metadata)?, asked).await?))
    }

    async fn finish_attempt(
        &self,
        request: Request<v1::FinishAttemptRequest>,
    ) -> Result<Response<v1::FinishAttemptResponse>, Status> {
        let (metadata, _, asked) = request.into_parts();
        Ok(Response::new(
            self.finish(shown(&metadata)?, asked, current_trace())
                .await?,
        ))
    }

    async fn stream_callbacks(
        &self,
        request: Request<Streaming<v1::StreamCallbacksRequest>>,
    ) -> Result<Response<Answers<v1::StreamCallbacksResponse>>, Status> {
        Ok(Response::new(stream::stream_callbacks(
            self.clone(),
            request.into_inner(),
        )))
    }

    async fn tail_logs(
        &self,
        request: Request<v1::TailLogsRequest>,
    ) -> Result<Response<Answers<v1::TailLogsResponse>>, Status> {
        Ok(Response::new(
            tail_logs::tail_logs(self, request.into_inner()).await?,
        ))
    }
}

/// The trace of the call being served, for the event that records it.
pub(crate) fn current_trace() -> Option<v1::TraceContext> {
    let trace = servo_mesh::current_trace()?;
    Some(v1::TraceContext {
        traceparent: trace.to_string(),
        tracestate: trace.state().to_owned(),
    })
}

fn shown(metadata: &MetadataMap) -> Result<Shown<'_>, Error> {
    let text = |name| metadata.get(name).and_then(|value| value.to_str().ok());
    let missing = || {
        Error::new(
            Reason::SignatureInvalid,
            "the call carries no servo-presigned; send the envelope's path",
        )
    };
    Ok(Shown {
        presigned: text(PRESIGNED).ok_or_else(missing)?,
        renewal: text(RENEWAL).unwrap_or_default(),
    })
}
