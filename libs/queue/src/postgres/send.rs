//! One push: a POST and the interpretation of its response.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Uri, header};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use super::connect::{ClientTls, Stream, connect};
use super::statements::Claimed;
use crate::{QUEUE_HEADER, RETRY_COUNT_HEADER, TASK_NAME_HEADER};

const IDLE_MAX: Duration = Duration::from_secs(30);
const CONTENT_TYPE: &str = "application/x-protobuf";

/// Sends pushes over pooled connections. Cheap to clone.
#[derive(Clone)]
pub(super) struct Sender {
    client: Client<Connector, Full<Bytes>>,
    timeout: Duration,
}

impl Sender {
    pub(super) fn new(tls: Option<ClientTls>, timeout: Duration) -> Sender {
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX);
        Sender {
            client: builder.build(Connector(tls)),
            timeout,
        }
    }

    /// Fails with a short reason if the target did not accept the push.
    pub(super) async fn push(&self, queue: &str, task: Claimed) -> Result<(), String> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(task.url)
            .header(header::CONTENT_TYPE, CONTENT_TYPE)
            .header(QUEUE_HEADER, queue)
            .header(TASK_NAME_HEADER, task.name)
            .header(RETRY_COUNT_HEADER, task.tries.saturating_sub(1))
            .body(Full::from(task.body))
            .map_err(|error| error.to_string())?;
        match tokio::time::timeout(self.timeout, self.client.request(request)).await {
            Ok(Ok(response)) if response.status().is_success() => Ok(()),
            Ok(Ok(response)) => Err(format!("status {}", response.status().as_u16())),
            Ok(Err(error)) => Err(with_cause(&error)),
            Err(_) => Err(format!("no response within {:?}", self.timeout)),
        }
    }
}

fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[derive(Clone)]
struct Connector(Option<ClientTls>);

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Stream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        Box::pin(connect(self.0.clone(), target))
    }
}
