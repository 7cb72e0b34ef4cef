//! What a service says about itself: health, readiness, server information.

use std::fmt::Display;
use std::future::Future;
use std::time::{Duration, SystemTime};

use servo_model::Service;
use servo_proto::v1::mesh_service_server::MeshService;
use servo_proto::v1::{GetServerInfoRequest, GetServerInfoResponse};
use tokio::sync::watch;
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tracing::{info, warn};

/// A check that hangs is an answer too.
const CHECK_PATIENCE: Duration = Duration::from_secs(5);
/// How much slower a service that is ready looks again.
const CALM: u32 = 5;

/// Whether the service can do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// Not now: a sentence that says what it waits for, with the remedy.
    Waiting(String),
    Draining,
}

#[derive(Clone)]
pub(crate) struct Readiness {
    state: watch::Sender<State>,
    /// Once it was ready, calls are let through and fail by themselves when something breaks.
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
        // The sender lives in self, so the wait cannot fail.
        let _ = self.was_ready.subscribe().wait_for(|ready| *ready).await;
    }

    pub(crate) fn drain(&self) {
        self.state.send_replace(State::Draining);
    }

    fn found(&self, checked: Result<(), String>) {
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

    /// Asks `check` forever: at the given pace while waiting, at a slower one while all is well.
    pub(crate) async fn follow<F, Fut, E>(&self, every: Duration, mut check: F)
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<(), E>>,
        E: Display,
    {
        loop {
            let checked = tokio::time::timeout(CHECK_PATIENCE, check()).await;
            let hangs = || {
                Err(format!(
                    "the check whether it is ready does not end within {CHECK_PATIENCE:?}"
                ))
            };
            self.found(checked.map_or_else(
                |_| hangs(),
                |checked| checked.map_err(|error| error.to_string()),
            ));
            let calm = if self.state() == State::Ready {
                CALM
            } else {
                1
            };
            tokio::time::sleep(every * calm).await;
        }
    }

    pub(crate) fn ready(&self) {
        self.found(Ok(()));
    }

    /// Passes every change on to grpc.health.v1, forever.
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

/// MeshService: who answers, since when, and what it waits for.
pub(crate) struct ServerInfo {
    pub(crate) service: Service,
    pub(crate) started_at: SystemTime,
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
            start_time: Some(self.started_at.into()),
            ready: state == State::Ready,
            waiting_for: waiting_for(state),
        }))
    }
}

pub(crate) fn waiting_for(state: State) -> String {
    match state {
        State::Ready => String::new(),
        State::Waiting(reason) => reason,
        State::Draining => "the end: it was told to stop and finishes what is under way".to_owned(),
    }
}
