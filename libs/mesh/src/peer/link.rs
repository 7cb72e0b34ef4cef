//! The channel to a peer: opened by the first call, and opened again when the certificates change.

use std::error::Error as StdError;
use std::sync::{Mutex, PoisonError};

use http::{Request, Response, Uri};
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower::{Service, ServiceExt, service_fn};

use super::connect::{ConnectError, LastFailure, Target};
use crate::config::Peers;

/// Headers are small everywhere in the mesh; a peer that sends more is faulty.
const HEADER_LIST_BYTES_MAX: u32 = 16 * 1024;

/// A call without a response.
pub(super) struct Failure {
    pub(super) error: ConnectError,
    pub(super) delivery: Delivery,
}

/// How far a request without a response got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// There was no connection to send it on.
    NotConnected,
    /// The connection was being closed cleanly, and the server did not accept the request.
    NotAccepted,
    /// The server may have processed it.
    Unknown,
}

pub(super) struct Link {
    target: Target,
    peers: Peers,
    connection: Mutex<Option<Connection>>,
}

#[derive(Clone)]
struct Connection {
    generation: u64,
    channel: Channel,
    last_failure: LastFailure,
}

impl Link {
    pub(super) fn new(target: Target, peers: Peers) -> Link {
        Link {
            target,
            peers,
            connection: Mutex::new(None),
        }
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let mut connection = self.connection();
        let sent = match connection.channel.ready().await {
            Ok(channel) => channel.call(request).await,
            Err(error) => Err(error),
        };
        sent.map_err(|error| self.failure(&error, &connection))
    }

    fn connection(&self) -> Connection {
        let generation = *self.target.tls.generation().borrow();
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &*connection {
            Some(current) if current.generation == generation => current.clone(),
            _ => connection.insert(self.open(generation)).clone(),
        }
    }

    /// Does not connect before the first call. Calls on the previous channel finish there.
    fn open(&self, generation: u64) -> Connection {
        let last_failure = LastFailure::default();
        let (target, failure) = (self.target.clone(), last_failure.clone());
        let connector = service_fn(move |_: Uri| target.clone().connect(failure.clone()));
        let channel = self.endpoint().connect_with_connector_lazy(connector);
        Connection {
            generation,
            channel,
            last_failure,
        }
    }

    fn endpoint(&self) -> Endpoint {
        // Tonic refuses https without its own TLS, but the connector above provides TLS. The origin
        // stays https.
        let mut plain = self.target.address.clone().into_parts();
        plain.scheme = Some(http::uri::Scheme::HTTP);
        let plain = Uri::from_parts(plain).unwrap_or_default();
        Endpoint::from(plain)
            .origin(self.target.address.clone())
            .http2_keep_alive_interval(self.peers.keep_alive_every)
            .keep_alive_timeout(self.peers.keep_alive_timeout)
            .keep_alive_while_idle(true)
            .http2_max_header_list_size(HEADER_LIST_BYTES_MAX)
            .tcp_nodelay(true)
    }

    fn failure(&self, error: &tonic::transport::Error, connection: &Connection) -> Failure {
        if let Some(error) = cause::<ConnectError>(error) {
            return Failure {
                error: error.clone(),
                delivery: Delivery::NotConnected,
            };
        }
        let last_failure = connection
            .last_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        Failure {
            error: last_failure.unwrap_or_else(|| self.target.unexplained(error)),
            delivery: delivery(error),
        }
    }
}

/// Hyper cancels requests that it did not send; a GOAWAY without an error names the last accepted
/// request and ends the later ones; REFUSED_STREAM means the same for one request.
fn delivery(error: &tonic::transport::Error) -> Delivery {
    let cancelled = cause::<hyper::Error>(error).is_some_and(hyper::Error::is_canceled);
    let refused = cause::<h2::Error>(error).is_some_and(|error| {
        let clean_close = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
        error.is_remote() && (clean_close || error.reason() == Some(h2::Reason::REFUSED_STREAM))
    });
    if cancelled || refused {
        Delivery::NotAccepted
    } else {
        Delivery::Unknown
    }
}

/// Returns the first error of type `E` in the chain of causes.
fn cause<'e, E: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e E> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}
