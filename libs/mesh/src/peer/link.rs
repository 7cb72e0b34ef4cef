//! The channel to a peer: made at the first call, made anew when the certificates change.

use std::error::Error as StdError;
use std::sync::{Mutex, PoisonError};

use http::{Request, Response, Uri};
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower::{Service, ServiceExt, service_fn};

use super::connect::{LastWord, Target, Trouble};
use crate::config::Peers;

/// Headers are small everywhere in the mesh; a peer that sends more is broken.
const HEADER_LIST_BYTES_MAX: u32 = 16 * 1024;

/// A call that got no answer.
pub(super) struct Failure {
    pub(super) trouble: Trouble,
    /// The peer cannot have seen the request.
    pub(super) never_sent: bool,
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
    last_word: LastWord,
}

impl Link {
    pub(super) fn new(target: Target, peers: Peers) -> Link {
        Link { target, peers, live: Mutex::new(None) }
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
        let last_word = LastWord::default();
        let (target, word) = (self.target.clone(), last_word.clone());
        let connector = service_fn(move |_: Uri| target.clone().connect(word.clone()));
        let channel = self.endpoint().connect_with_connector_lazy(connector);
        Live { generation, channel, last_word }
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
            return Failure { trouble: trouble.clone(), never_sent: true };
        }
        let never_sent = cause::<hyper::Error>(error).is_some_and(hyper::Error::is_canceled);
        let word = live.last_word.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let unexplained = || {
            let why = crate::fault::with_causes(error);
            Trouble::Unreachable(format!(
                "{} at {} did not answer: {why}",
                self.target.service, self.target.address
            ))
        };
        Failure { trouble: word.unwrap_or_else(unexplained), never_sent }
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
