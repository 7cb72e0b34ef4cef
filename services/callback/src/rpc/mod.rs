//! `servo.v1.CallbackService`. Every call, alone or on a stream, takes the same way: signature, then the deed.

mod deeds;
mod stream;

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use servo_mesh::{Error, Reason};
use servo_proto::v1;
use servo_proto::v1::callback_service_server::CallbackService;
use tonic::{Request, Response, Status, Streaming};

use crate::beats::Beats;
use crate::core::Door;
use crate::forward::Forward;
use crate::logs::Logs;

const PRESIGNED: &str = "servo-presigned";

/// What it does not override answers UNIMPLEMENTED. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Callback {
    pub(crate) door: Arc<Door>,
    pub(crate) forward: Forward,
    pub(crate) beats: Beats,
    pub(crate) logs: Logs,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl CallbackService for Callback {
    async fn start_attempt(
        &self,
        request: Request<v1::StartAttemptRequest>,
    ) -> Result<Response<v1::StartAttemptResponse>, Status> {
        let presigned = presigned(&request)?;
        Ok(Response::new(self.start(&presigned, request.into_inner(), None).await?))
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
        Ok(Response::new(self.finish(&presigned, request.into_inner(), None).await?))
    }

    async fn stream_callbacks(
        &self,
        request: Request<Streaming<v1::StreamCallbacksRequest>>,
    ) -> Result<Response<Answers<v1::StreamCallbacksResponse>>, Status> {
        Ok(Response::new(stream::stream_callbacks(self.clone(), request.into_inner())))
    }
}

fn presigned<T>(request: &Request<T>) -> Result<String, Error> {
    let missing = || {
        Error::new(Reason::SignatureInvalid, "the call carries no servo-presigned; send the envelope's path")
    };
    let value = request.metadata().get(PRESIGNED).ok_or_else(missing)?;
    Ok(value.to_str().map_err(|_| missing())?.to_owned())
}
