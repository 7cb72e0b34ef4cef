//! A worker that receives envelopes over HTTP and confirms each start with the server.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prost::Message as _;
use servo_proto::v1 as pb;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};
use tracing::{debug, info};

use super::attempt::{Attempt, Handler};
use super::envelopes::{Seen, Verify};
use super::pull::{WorkerConfig, WorkerHandle, is_final, until_renewal};
use super::reports::Reports;
use super::run;
use crate::client::Client;
use crate::error::Error;

/// An envelope with its HTTP overhead.
const BODY_BYTES_MAX: usize = 128 << 10;
const PAUSE: Duration = Duration::from_millis(500);
/// How long the request to start an attempt is repeated; after that the server has given it to
/// another worker.
const START_TIMEOUT: Duration = Duration::from_secs(20);
const PRESIGNED: &str = "servo-presigned";

/// A worker process that envelopes are pushed to. The `push_url` of its configuration must lead to
/// its listener.
pub struct PushWorker<H> {
    dispatcher: Client,
    config: WorkerConfig,
    tls: Option<TlsAcceptor>,
    drain: CancellationToken,
    shared: Arc<Shared<H>>,
}

struct Shared<H> {
    callback: Client,
    session: Arc<str>,
    worker_id: Arc<str>,
    slots: usize,
    handler: Arc<H>,
    reports: Reports,
    drain: CancellationToken,
    interrupt: CancellationToken,
    state: Mutex<State>,
    /// Notified when an attempt has ended.
    ended: Notify,
}

#[derive(Default)]
struct State {
    verify: Option<Verify>,
    running: HashMap<String, Attempt>,
    seen: Seen,
}

impl<H: Handler> PushWorker<H> {
    /// Through the gateway both clients are the same; without it they are clients of the two
    /// services.
    pub fn new(
        dispatcher: Client,
        callback: Client,
        config: WorkerConfig,
        handler: H,
    ) -> PushWorker<H> {
        let reports = config.reports(callback.clone());
        let drain = CancellationToken::new();
        let shared = Shared {
            callback,
            session: ulid::Ulid::generate().to_string().into(),
            worker_id: config.worker_id.as_str().into(),
            slots: config.info.slots as usize,
            handler: Arc::new(handler),
            reports,
            drain: drain.clone(),
            interrupt: CancellationToken::new(),
            state: Mutex::default(),
            ended: Notify::new(),
        };
        PushWorker {
            dispatcher,
            config,
            tls: None,
            drain,
            shared: Arc::new(shared),
        }
    }

    /// Listens with TLS, for a `push_url` that begins with `https://`.
    #[must_use]
    pub fn tls(self, config: rustls::ServerConfig) -> PushWorker<H> {
        PushWorker {
            tls: Some(TlsAcceptor::from(Arc::new(config))),
            ..self
        }
    }

    pub fn handle(&self) -> WorkerHandle {
        WorkerHandle {
            drain: self.drain.clone(),
        }
    }

    pub fn session(&self) -> &str {
        &self.shared.session
    }

    /// Works until it is drained. Fails only when the server finally refuses the worker.
    pub async fn run(self, listener: TcpListener) -> Result<(), Error> {
        let accepting = super::spawn(accept(self.shared.clone(), listener, self.tls.clone()));
        let refused = self.stay_registered().await;
        self.finish_running().await;
        self.shared.reports.wait_below(1).await;
        accepting.abort();
        refused
    }

    /// Registers and renews the registration until the worker is drained.
    async fn stay_registered(&self) -> Result<(), Error> {
        while !self.drain.is_cancelled() {
            let wait = match self
                .config
                .register(&self.dispatcher, &self.shared.session)
                .await
            {
                Ok(registered) => {
                    let wait = until_renewal(&registered);
                    self.shared.state().verify = Some(Verify::new(&registered));
                    wait
                }
                Err(status) if is_final(&status) => return Err(status.into()),
                Err(status) => {
                    debug!(%status, "failed to register the worker; retrying");
                    PAUSE
                }
            };
            self.drain
                .run_until_cancelled(tokio::time::sleep(wait))
                .await;
        }
        Ok(())
    }

    /// Waits for the running attempts, and gives back those that outlast the grace period.
    async fn finish_running(&self) {
        info!(running = self.shared.state().running.len(), "draining");
        let grace_over = tokio::time::sleep(self.config.drain_grace);
        tokio::pin!(grace_over);
        loop {
            let ended = self.shared.ended.notified();
            if self.shared.state().running.is_empty() {
                return;
            }
            tokio::select! {
                () = ended => {}
                () = &mut grace_over, if !self.shared.interrupt.is_cancelled() => self.shared.interrupt.cancel(),
            }
        }
    }
}

async fn accept<H: Handler>(
    shared: Arc<Shared<H>>,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                super::spawn(accept_tls(shared.clone(), stream, tls.clone()));
            }
            Err(error) => {
                debug!(%error, "failed to accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn accept_tls<H: Handler>(
    shared: Arc<Shared<H>>,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
) {
    match tls {
        None => serve(shared, stream).await,
        Some(tls) => match tls.accept(stream).await {
            Ok(stream) => serve(shared, stream).await,
            Err(error) => debug!(%error, "a TLS handshake failed"),
        },
    }
}

async fn serve<H: Handler>(
    shared: Arc<Shared<H>>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move {
            let status = shared.take(request).await;
            let mut answer = Response::new(Empty::<Bytes>::new());
            *answer.status_mut() = status;
            Ok::<_, Infallible>(answer)
        }
    });
    if let Err(error) = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await
    {
        debug!(%error, "a connection ended");
    }
}

impl<H: Handler> Shared<H> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts an envelope and responds before running it, because the queue does not wait for the
    /// work.
    async fn take(self: Arc<Self>, request: Request<Incoming>) -> StatusCode {
        if request.method() != Method::POST {
            return StatusCode::METHOD_NOT_ALLOWED;
        }
        let body = Limited::new(request.into_body(), BODY_BYTES_MAX)
            .collect()
            .await;
        let Ok(body) = body.map(|body| body.to_bytes()) else {
            return StatusCode::PAYLOAD_TOO_LARGE;
        };
        let Ok(signed) = pb::SignedEnvelope::decode(body) else {
            return StatusCode::BAD_REQUEST;
        };
        match self.admit(&signed) {
            Ok(Some(attempt)) => {
                super::spawn(self.work(attempt));
                StatusCode::ACCEPTED
            }
            Ok(None) => StatusCode::ACCEPTED,
            Err(status) => status,
        }
    }

    /// The attempt, unless it was received before.
    fn admit(&self, signed: &pb::SignedEnvelope) -> Result<Option<Attempt>, StatusCode> {
        let mut state = self.state();
        let verify = state
            .verify
            .as_ref()
            .ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
        let interval = verify.interval;
        let envelope = verify.open(signed).ok_or(StatusCode::UNAUTHORIZED)?;
        if self.drain.is_cancelled() {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        if state.running.len() >= self.slots && !state.running.contains_key(&envelope.attempt_id) {
            return Err(StatusCode::TOO_MANY_REQUESTS);
        }
        if !state.seen.is_new(&envelope.attempt_id) {
            return Ok(None);
        }
        let (session, worker) = (self.session.clone(), self.worker_id.clone());
        let attempt = Attempt::new(envelope, session, worker, self.interrupt.clone(), interval);
        state
            .running
            .insert(attempt.envelope().attempt_id.clone(), attempt.clone());
        Ok(Some(attempt))
    }

    async fn work(self: Arc<Self>, attempt: Attempt) {
        match self.request_start(&attempt).await {
            Ok(()) => run::run(self.handler.clone(), attempt.clone(), self.reports.clone()).await,
            Err(status) => {
                info!(attempt = attempt.envelope().attempt_id, %status, "the attempt was not granted to this worker");
            }
        }
        self.state().running.remove(&attempt.envelope().attempt_id);
        self.ended.notify_waiters();
    }

    /// Asks the server whether the attempt may start; the first process that asks gets it.
    async fn request_start(&self, attempt: &Attempt) -> Result<(), Status> {
        let presigned = run::start_path(attempt)
            .parse()
            .map_err(|_| Status::invalid_argument("the envelope's start path is not ASCII"))?;
        let requesting = async {
            loop {
                let mut request = tonic::Request::new(run::start_request(attempt));
                request
                    .metadata_mut()
                    .insert(PRESIGNED, tonic::metadata::MetadataValue::clone(&presigned));
                match self.callback.callback().start_attempt(request).await {
                    Ok(answer) => {
                        attempt.renew(answer.into_inner().renewed);
                        return Ok(());
                    }
                    Err(status) if is_transient(&status) => tokio::time::sleep(PAUSE).await,
                    Err(status) => return Err(status),
                }
            }
        };
        let timed_out =
            || Status::deadline_exceeded("the server did not confirm the start in time");
        tokio::time::timeout(START_TIMEOUT, requesting)
            .await
            .unwrap_or_else(|_| Err(timed_out()))
    }
}

/// Whether the same request may succeed later.
fn is_transient(status: &Status) -> bool {
    let codes = [
        Code::Unavailable,
        Code::ResourceExhausted,
        Code::DeadlineExceeded,
        Code::Unknown,
    ];
    codes.contains(&status.code())
}
