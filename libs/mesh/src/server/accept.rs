//! The listener: accepts connections, performs TLS handshakes in separate tasks, and serves each
//! connection until it ends, the certificates change or the service drains.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{Instrument, debug, info, warn};

use super::pipeline::Pipeline;
use crate::fault::Fault;
use crate::metrics::ShedLabels;
use crate::runtime::Runtime;
use crate::shutdown::Shutdown;
use crate::tls::{Exposure, PeerIdentity, identity};

const HANDSHAKES_MAX: usize = 256;
const HEADER_LIST_BYTES_MAX: u32 = 16 * 1024;
const HTTP1_HEADERS_TIMEOUT: Duration = Duration::from_secs(10);
const HTTP1_BUFFER_BYTES_MAX: usize = 64 * 1024;
const PENDING_RESETS_MAX: usize = 20;
const STREAMS_PER_CONNECTION_MAX: u32 = 1024;
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(20);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after a failed accept, so that running out of file descriptors does not cause a busy
/// loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How many bytes of a refused client are read, so that it receives the alert before the reset.
const LINGER_BYTES_MAX: u64 = 64 * 1024;

pub(super) async fn bind(address: SocketAddr, key: &str) -> Result<TcpListener, Fault> {
    TcpListener::bind(address).await.map_err(|error| {
        let sentence = match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!(
                    "port {} on {} is in use: set {key}",
                    address.port(),
                    address.ip()
                )
            }
            io::ErrorKind::PermissionDenied => {
                format!("listening on {address} is not permitted: set {key}")
            }
            _ => format!("cannot listen on {address} ({error}): set {key}"),
        };
        Fault::Runtime(sentence)
    })
}

/// One listener and the state that its connections share.
pub(super) struct Listener {
    pub(super) tcp: TcpListener,
    pub(super) exposure: Exposure,
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) runtime: Arc<Runtime>,
}

impl Listener {
    /// Serves until the process drains, then lets calls in flight finish within the grace period.
    pub(super) async fn run(self) -> Result<(), Fault> {
        let mut connections = JoinSet::new();
        self.accept(&mut connections).await?;
        drop(self.tcp);
        self.runtime
            .drain(
                connections,
                "calls were still in flight at the end of server.grace",
            )
            .await;
        Ok(())
    }

    async fn accept(&self, connections: &mut JoinSet<()>) -> Result<(), Fault> {
        let connections_allowed = Arc::new(Semaphore::new(
            self.runtime.common.server.max_connections as usize,
        ));
        let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
        let mut generation = self.runtime.tls.generation();
        let mut acceptor = self.acceptor()?;
        loop {
            tokio::select! {
                () = self.runtime.shutdown.draining() => return Ok(()),
                Some(_) = connections.join_next() => {}
                accepted = self.tcp.accept() => {
                    let Some(stream) = accepted_or_pause(accepted).await else { continue };
                    let Some(permits) = self.permits(&connections_allowed, &handshakes) else { continue };
                    if generation.has_changed().unwrap_or(false) {
                        generation.mark_unchanged();
                        acceptor = self.acceptor().unwrap_or(acceptor);
                    }
                    // The cloned receiver has seen the generation of this acceptor; a newer
                    // generation closes the connection.
                    let tls = (acceptor.clone(), generation.clone());
                    connections.spawn(self.connection(stream, tls, permits).in_current_span());
                }
            }
        }
    }

    fn acceptor(&self) -> Result<TlsAcceptor, Fault> {
        let config: ServerConfig = self.runtime.tls.server_config(self.exposure)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    fn permits(
        &self,
        connections_allowed: &Arc<Semaphore>,
        handshakes: &Arc<Semaphore>,
    ) -> Option<Permits> {
        let take = |from: &Arc<Semaphore>, limit| {
            from.clone().try_acquire_owned().map_err(|_| {
                self.runtime
                    .metrics
                    .shed
                    .get_or_create(&ShedLabels { limit })
                    .inc()
            })
        };
        let connection = take(connections_allowed, "max_connections").ok()?;
        let handshake = take(handshakes, "handshakes").ok()?;
        Some(Permits {
            connection,
            handshake,
        })
    }

    fn connection(
        &self,
        stream: TcpStream,
        (acceptor, generation): (TlsAcceptor, watch::Receiver<u64>),
        permits: Permits,
    ) -> impl Future<Output = ()> + use<> {
        let (pipeline, shutdown, exposure) = (
            self.pipeline.clone(),
            self.runtime.shutdown.clone(),
            self.exposure,
        );
        let timeout = self.runtime.common.server.handshake_timeout;
        async move {
            let Some(stream) = handshake(stream, &acceptor, exposure, timeout).await else {
                return;
            };
            drop(permits.handshake);
            serve(stream, pipeline, exposure, shutdown, generation).await;
            drop(permits.connection);
        }
    }
}

struct Permits {
    connection: OwnedSemaphorePermit,
    handshake: OwnedSemaphorePermit,
}

async fn accepted_or_pause(accepted: io::Result<(TcpStream, SocketAddr)>) -> Option<TcpStream> {
    match accepted {
        Ok((stream, _)) => stream.set_nodelay(true).ok().map(|()| stream),
        Err(error) => {
            warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn handshake(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    exposure: Exposure,
    timeout: Duration,
) -> Option<TlsStream<TcpStream>> {
    let from = stream.peer_addr().ok();
    match tokio::time::timeout(timeout, acceptor.accept(stream).into_fallible()).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err((error, stream))) => {
            log_refused(exposure, from, &error);
            let _ = tokio::time::timeout(timeout, linger(stream)).await;
            None
        }
        Err(_) => {
            debug!(?from, "a client took too long for the TLS handshake");
            None
        }
    }
}

/// In the mesh a refused client is a misconfigured certificate that an operator looks for; on the
/// public port it is routine.
fn log_refused(exposure: Exposure, from: Option<SocketAddr>, error: &io::Error) {
    match exposure {
        Exposure::Mesh => info!(?from, %error, "a client was refused in the TLS handshake"),
        Exposure::Public => debug!(?from, %error, "a client was refused in the TLS handshake"),
    }
}

/// Closing a socket with unread bytes resets the connection, and the reset may overtake the alert
/// that names the cause.
async fn linger(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let _ = tokio::io::copy(&mut stream.take(LINGER_BYTES_MAX), &mut tokio::io::sink()).await;
}

async fn serve(
    stream: TlsStream<TcpStream>,
    pipeline: Arc<Pipeline>,
    exposure: Exposure,
    shutdown: Shutdown,
    mut generation: watch::Receiver<u64>,
) {
    let peer = peer_of(&stream);
    // ALPN decides the protocol. Detecting it from the first bytes would cut off a connection that
    // is shut down during the detection.
    let uses_http2 =
        exposure == Exposure::Mesh || stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request| pipeline.clone().handle(peer.clone(), request));
    let builder = connection_builder(uses_http2);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = shutdown.draining() => None,
        _ = generation.changed() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "connection ended");
    }
}

fn peer_of(stream: &TlsStream<TcpStream>) -> PeerIdentity {
    let (_, session) = stream.get_ref();
    let certificate = session.peer_certificates().and_then(|chain| chain.first());
    certificate.map_or(PeerIdentity::Anonymous, identity::of_certificate)
}

fn connection_builder(uses_http2: bool) -> auto::Builder<TokioExecutor> {
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut builder = if uses_http2 {
        builder.http2_only()
    } else {
        builder.http1_only()
    };
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HTTP1_HEADERS_TIMEOUT)
        .max_buf_size(HTTP1_BUFFER_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .max_header_list_size(HEADER_LIST_BYTES_MAX)
        .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
        .keep_alive_interval(KEEP_ALIVE_EVERY)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
    builder
}
