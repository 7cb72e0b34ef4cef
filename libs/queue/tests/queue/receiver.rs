//! A target that records pushes and responds with configured statuses.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Push {
    pub(crate) queue: String,
    pub(crate) name: String,
    pub(crate) retry_count: String,
    pub(crate) body: Vec<u8>,
}

#[derive(Default)]
struct State {
    pushes: Vec<Push>,
    in_flight: HashMap<String, usize>,
    concurrent_max: usize,
    same_concurrent_max: usize,
    /// The next statuses per task name; 200 by default.
    statuses: HashMap<String, Vec<u16>>,
}

#[derive(Clone)]
pub(crate) struct Receiver {
    state: Arc<Mutex<State>>,
    /// Responds to every push immediately.
    permits: Arc<Semaphore>,
    pub(crate) url: String,
}

impl Receiver {
    pub(crate) async fn start() -> Receiver {
        let receiver = Receiver::closed().await;
        receiver.open();
        receiver
    }

    /// Does not respond until it is opened.
    pub(crate) async fn closed() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/push", listener.local_addr().unwrap());
        let receiver = Receiver {
            state: Arc::default(),
            permits: Arc::new(Semaphore::new(0)),
            url,
        };
        let accepting = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(accepting.clone().serve(stream));
            }
        });
        receiver
    }

    pub(crate) fn open(&self) {
        self.permits.add_permits(1_000_000);
    }

    pub(crate) fn answer(&self, name: &str, statuses: &[u16]) {
        self.state()
            .statuses
            .insert(name.to_owned(), statuses.iter().rev().copied().collect());
    }

    pub(crate) fn pushes(&self) -> Vec<Push> {
        self.state().pushes.clone()
    }

    /// The maximum number of concurrent pushes, in total and of one name.
    pub(crate) fn max_concurrent(&self) -> (usize, usize) {
        let state = self.state();
        (state.concurrent_max, state.same_concurrent_max)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn serve(self, stream: TcpStream) {
        let service = service_fn(move |request| {
            let receiver = self.clone();
            async move { Ok::<_, Infallible>(receiver.take(request).await) }
        });
        let _ = http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }

    async fn take(self, request: Request<Incoming>) -> Response<Empty<Bytes>> {
        let header = |name: &str| request.headers()[name].to_str().unwrap().to_owned();
        let (queue, name) = (header("servo-queue"), header("servo-task-name"));
        let retry_count = header("servo-retry-count");
        let body = request
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .to_vec();
        let status = {
            let mut state = self.state();
            state.pushes.push(Push {
                queue,
                name: name.clone(),
                retry_count,
                body,
            });
            let same = state.in_flight.entry(name.clone()).or_default();
            *same += 1;
            let (same, all) = (*same, state.in_flight.values().sum());
            state.same_concurrent_max = state.same_concurrent_max.max(same);
            state.concurrent_max = state.concurrent_max.max(all);
            state
                .statuses
                .get_mut(&name)
                .and_then(Vec::pop)
                .unwrap_or(200)
        };
        let in_flight = InFlight {
            receiver: self.clone(),
            name,
        };
        self.permits.acquire().await.unwrap().forget();
        drop(in_flight);
        Response::builder()
            .status(status)
            .body(Empty::new())
            .unwrap()
    }
}

/// Decrements the counters also when the pusher disconnects.
struct InFlight {
    receiver: Receiver,
    name: String,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        *self
            .receiver
            .state()
            .in_flight
            .entry(self.name.clone())
            .or_default() -= 1;
    }
}
