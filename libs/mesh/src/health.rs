//! Health, readiness and server information.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use servo_model::{Service, Timestamp};
use servo_proto::proto_time;
use servo_proto::v1::mesh_service_server::MeshService;
use servo_proto::v1::{GetServerInfoRequest, GetServerInfoResponse};
use tokio::sync::watch;
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tracing::{info, warn};

/// A check that takes longer counts as failed.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// A ready service checks this many times less often.
const READY_SLOWDOWN: u32 = 5;

/// Whether the service can do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// Not ready: the missing condition and its remedy, as a sentence.
    Waiting(String),
    Draining,
}

#[derive(Clone)]
pub(crate) struct Readiness {
    state: watch::Sender<State>,
    /// Set once and never reset: after the service was ready once, calls are admitted, and fail on
    /// their own when a dependency breaks.
    was_ready: watch::Sender<bool>,
}

impl Readiness {
    pub(crate) fn new() -> Readiness {
        let state = watch::Sender::new(State::Waiting("it has just started".to_owned()));
        Readiness {
            state,
            was_ready: watch::Sender::new(false),
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    pub(crate) fn was_ready(&self) -> bool {
        *self.was_ready.borrow()
    }

    pub(crate) async fn until_ready(&self) {
        // Cannot fail, because `self` owns the sender.
        let _ = self.was_ready.subscribe().wait_for(|ready| *ready).await;
    }

    pub(crate) fn drain(&self) {
        self.state.send_replace(State::Draining);
    }

    fn update(&self, checked: Result<(), String>) {
        let next = checked.map_or_else(State::Waiting, |()| State::Ready);
        if next == State::Ready {
            self.was_ready.send_replace(true);
        }
        self.state.send_if_modified(|state| {
            if *state == next || *state == State::Draining {
                return false;
            }
            log_change(&next);
            *state = next;
            true
        });
    }

    /// Runs `check` forever: at the given interval while waiting, less often while ready.
    pub(crate) async fn poll<F, Fut, E>(&self, every: Duration, mut check: F)
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<(), E>>,
        E: Display,
    {
        loop {
            let checked = tokio::time::timeout(CHECK_TIMEOUT, check()).await;
            let timed_out = || {
                Err(format!(
                    "the readiness check did not finish within {CHECK_TIMEOUT:?}"
                ))
            };
            self.update(checked.map_or_else(
                |_| timed_out(),
                |checked| checked.map_err(|error| error.to_string()),
            ));
            let slowdown = if self.state() == State::Ready {
                READY_SLOWDOWN
            } else {
                1
            };
            tokio::time::sleep(every * slowdown).await;
        }
    }

    pub(crate) fn ready(&self) {
        self.update(Ok(()));
    }

    /// Reports every change to grpc.health.v1, forever.
    pub(crate) async fn announce(&self, reporter: HealthReporter, services: Vec<&'static str>) {
        let mut changes = self.state.subscribe();
        loop {
            let ready = *changes.borrow_and_update() == State::Ready;
            let status = if ready {
                ServingStatus::Serving
            } else {
                ServingStatus::NotServing
            };
            for service in services.iter().copied().chain([""]) {
                reporter.set_service_status(service, status).await;
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

fn log_change(state: &State) {
    match state {
        State::Ready => info!("ready"),
        State::Waiting(reason) => warn!(reason, "not ready, waiting"),
        State::Draining => {}
    }
}

/// MeshService: identity, start time and readiness of this instance.
pub(crate) struct ServerInfo {
    pub(crate) service: Service,
    pub(crate) started_at: Timestamp,
    pub(crate) readiness: Readiness,
}

#[tonic::async_trait]
impl MeshService for ServerInfo {
    async fn get_server_info(
        &self,
        _: Request<GetServerInfoRequest>,
    ) -> Result<Response<GetServerInfoResponse>, Status> {
        let state = self.readiness.state();
        Ok(Response::new(GetServerInfoResponse {
            service: self.service.name().to_owned(),
            identity: self.service.spiffe_id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            start_time: Some(proto_time(self.started_at)),
            ready: state == State::Ready,
            waiting_for: waiting_for(state),
        }))
    }
}

pub(crate) fn waiting_for(state: State) -> String {
    match state {
        State::Ready => String::new(),
        State::Waiting(reason) => reason,
        State::Draining => "it is stopping and finishes the calls in flight".to_owned(),
    }
}
