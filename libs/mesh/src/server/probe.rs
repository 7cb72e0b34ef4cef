//! `/metrics`, `/healthz` and `/readyz` over plain HTTP, for monitoring and orchestration.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::health::{Readiness, State, waiting_for};
use crate::metrics::Metrics;
use crate::tls::Tls;

const CONNECTIONS_MAX: usize = 32;
const HEADERS_TIMEOUT: Duration = Duration::from_secs(5);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

#[derive(Clone)]
pub(super) struct Probe {
    pub(super) metrics: Metrics,
    pub(super) readiness: Readiness,
    pub(super) tls: Tls,
}

impl Probe {
    /// Serves until it is dropped.
    pub(super) async fn run(self, listener: TcpListener) {
        let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            if let Ok(permit) = connections.clone().try_acquire_owned() {
                let probe = self.clone();
                servo_actor::spawn_task("probe", async move {
                    probe.serve(stream).await;
                    drop(permit);
                });
            }
        }
    }

    async fn serve(self, stream: TcpStream) {
        let service = service_fn(move |request| {
            std::future::ready(Ok::<_, Infallible>(self.respond(&request)))
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_TIMEOUT)
            .keep_alive(false);
        // A scraper that disconnects early is not an error.
        let _ = builder
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }

    fn respond(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        match request.uri().path() {
            "/metrics" => match self.metrics.encode(self.tls.expires_at()) {
                Ok(text) => response(StatusCode::OK, OPENMETRICS, text),
                Err(_) => response(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    PLAIN,
                    "the metrics cannot be encoded\n".into(),
                ),
            },
            "/healthz" => response(StatusCode::OK, PLAIN, "alive\n".into()),
            "/readyz" => self.ready(),
            _ => response(
                StatusCode::NOT_FOUND,
                PLAIN,
                "available paths: /metrics, /healthz and /readyz\n".into(),
            ),
        }
    }

    fn ready(&self) -> Response<Full<Bytes>> {
        match self.readiness.state() {
            State::Ready => response(StatusCode::OK, PLAIN, "ready\n".into()),
            state => response(
                StatusCode::SERVICE_UNAVAILABLE,
                PLAIN,
                format!("waiting: {}\n", waiting_for(state)),
            ),
        }
    }
}

fn response(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static(content_type),
    );
    response
}
