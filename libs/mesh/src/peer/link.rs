//! The channel to a peer: made at the first call, made anew when the certificates change.

use std::error::Error as StdError;
use std::sync::{Mutex, PoisonError};

use http::{Request, Response, Uri};
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower::{Service, ServiceExt, service_fn};

use super::connect::{LastEnd, Target, Trouble};
use crate::config::Peers;

/// Headers are small everywhere in the mesh; a peer that sends more is broken.
const HEADER_LIST_BYTES_MAX: u32 = 16 * 1024;

/// A call that got no answer.
pub(super) struct Failure {
    pub(super) trouble: Trouble,
    pub(super) fate: Fate,
}

/// How far a request came that got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// There was no connection to send it on.
    NoConnection,
    /// The connection was being closed, in good order, and the request was not taken any more.
    NotTaken,
    /// Perhaps it was served.
    Unknown,
}

pub(super) struct Link {
    target: Target,
    peers: Peers,
    live: Mutex<Option<Live>>,
}

#[derive(Clone)]
struct Live {
    generation: u64,
    channel: Channel,
    last_end: LastEnd,
}

impl Link {
    pub(super) fn new(target: Target, peers: Peers) -> Link {
        Link {
            target,
            peers,
            live: Mutex::new(None),
        }
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let mut live = self.live();
        let sent = match live.channel.ready().await {
            Ok(channel) => channel.call(request).await,
            Err(error) => Err(error),
        };
        sent.map_err(|error| self.failure(&error, &live))
    }

    fn live(&self) -> Live {
        let generation = *self.target.tls.generation().borrow();
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        match &*live {
            Some(current) if current.generation == generation => current.clone(),
            _ => live.insert(self.open(generation)).clone(),
        }
    }

    /// Costs nothing until a call goes through. Calls on the old channel finish there.
    fn open(&self, generation: u64) -> Live {
        let last_end = LastEnd::default();
        let (target, end) = (self.target.clone(), last_end.clone());
        let connector = service_fn(move |_: Uri| target.clone().connect(end.clone()));
        let channel = self.endpoint().connect_with_connector_lazy(connector);
        Live {
            generation,
            channel,
            last_end,
        }
    }

    fn endpoint(&self) -> Endpoint {
        // Tonic would refuse https without its own TLS; the connector above speaks ours. The origin stays.
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

    fn failure(&self, error: &tonic::transport::Error, live: &Live) -> Failure {
        if let Some(trouble) = cause::<Trouble>(error) {
            return Failure {
                trouble: trouble.clone(),
                fate: Fate::NoConnection,
            };
        }
        let end = live
            .last_end
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        Failure {
            trouble: end.unwrap_or_else(|| self.target.unexplained(error)),
            fate: fate(error),
        }
    }
}

/// Hyper cancels what it did not send; a GOAWAY without an error names the last request that was taken and
/// ends the later ones; REFUSED_STREAM says it outright.
fn fate(error: &tonic::transport::Error) -> Fate {
    let cancelled = cause::<hyper::Error>(error).is_some_and(hyper::Error::is_canceled);
    let turned_away = cause::<h2::Error>(error).is_some_and(|error| {
        let good_order = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
        error.is_remote() && (good_order || error.reason() == Some(h2::Reason::REFUSED_STREAM))
    });
    if cancelled || turned_away {
        Fate::NotTaken
    } else {
        Fate::Unknown
    }
}

/// The first error of type `E` in the chain of causes.
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
