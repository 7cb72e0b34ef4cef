//! `servo.v1.DispatcherService`, one file per method.

mod command_worker;
mod count_use;
mod explain_admission;
mod hop;
mod list_dispatch_pauses;
mod list_dispatches;
mod list_held_dispatches;
mod list_workers;
mod page;
mod pause_dispatch;
mod pull_tasks;
mod register_worker;
mod resume_dispatch;
mod text;

pub(crate) use register_worker::RENEW_WITHIN;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use servo_mesh::{Caller, Doorbell, Error, Mesh, Reason};
use servo_model::{EventId, TenantId, WorkerId};
use servo_proto::v1 as pb;
use servo_proto::v1::dispatcher_service_server::DispatcherService;
use servo_store::{AppendError, Store, StoreError};
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use crate::Config;
use crate::envelope::Signer;
use crate::loops::engine::Engine;
use crate::store;

/// The tenant that stands for everybody, and for workers that serve everybody.
pub(crate) const EVERYBODY: &str = "-";

/// What every handler needs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    pub(crate) mesh: Mesh<Config>,
    pub(crate) store: Store,
    pub(crate) engine: Engine,
    pub(crate) signer: Signer,
    /// Rings when a command was appended here.
    pub(crate) commanded: Doorbell,
    /// Rings when a worker was registered for pushes here.
    pub(crate) reached: Doorbell,
    pub(crate) connections: Arc<AtomicU64>,
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl DispatcherService for Dispatcher {
    async fn register_worker(
        &self,
        request: Request<pb::RegisterWorkerRequest>,
    ) -> Answer<pb::RegisterWorkerResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            self.register(&caller, request.into_inner()).await?,
        ))
    }

    async fn pull_tasks(
        &self,
        request: Request<Streaming<pb::PullTasksRequest>>,
    ) -> Answer<BoxStream<pb::PullTasksResponse>> {
        self.pull(request.into_inner()).await.map(Response::new)
    }

    async fn list_workers(
        &self,
        request: Request<pb::ListWorkersRequest>,
    ) -> Answer<pb::ListWorkersResponse> {
        Ok(Response::new(self.workers(request.into_inner()).await?))
    }

    async fn drain_worker(
        &self,
        request: Request<pb::DrainWorkerRequest>,
    ) -> Answer<pb::DrainWorkerResponse> {
        let principal = Caller::of(request.extensions())?.principal.clone();
        Ok(Response::new(
            self.drain(principal, request.into_inner()).await?,
        ))
    }

    async fn kill_worker(
        &self,
        request: Request<pb::KillWorkerRequest>,
    ) -> Answer<pb::KillWorkerResponse> {
        let principal = Caller::of(request.extensions())?.principal.clone();
        Ok(Response::new(
            self.kill(principal, request.into_inner()).await?,
        ))
    }

    async fn pause_dispatch(
        &self,
        request: Request<pb::PauseDispatchRequest>,
    ) -> Answer<pb::PauseDispatchResponse> {
        let principal = Caller::of(request.extensions())?.principal.clone();
        Ok(Response::new(
            self.pause(principal, request.into_inner()).await?,
        ))
    }

    async fn resume_dispatch(
        &self,
        request: Request<pb::ResumeDispatchRequest>,
    ) -> Answer<pb::ResumeDispatchResponse> {
        let principal = Caller::of(request.extensions())?.principal.clone();
        Ok(Response::new(
            self.resume(principal, request.into_inner()).await?,
        ))
    }

    async fn list_dispatch_pauses(
        &self,
        request: Request<pb::ListDispatchPausesRequest>,
    ) -> Answer<pb::ListDispatchPausesResponse> {
        Ok(Response::new(self.pauses(request.into_inner()).await?))
    }

    async fn list_dispatches(
        &self,
        request: Request<pb::ListDispatchesRequest>,
    ) -> Answer<pb::ListDispatchesResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            self.dispatches(&caller, request.into_inner()).await?,
        ))
    }

    async fn list_held_dispatches(
        &self,
        request: Request<pb::ListHeldDispatchesRequest>,
    ) -> Answer<pb::ListHeldDispatchesResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            self.held_dispatches(&caller, request.into_inner()).await?,
        ))
    }

    async fn count_use(
        &self,
        request: Request<pb::CountUseRequest>,
    ) -> Answer<pb::CountUseResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            self.use_of(&caller, request.into_inner()).await?,
        ))
    }

    async fn explain_admission(
        &self,
        request: Request<pb::ExplainAdmissionRequest>,
    ) -> Answer<pb::ExplainAdmissionResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            self.explain(&caller, request.into_inner()).await?,
        ))
    }
}

impl Dispatcher {
    /// Whether a tenant's tasks are admitted here.
    fn holds(&self, tenant: &TenantId) -> bool {
        self.engine
            .held()
            .borrow()
            .contains_key(&tenant.admission_shard())
    }

    /// Where they are admitted, as far as it is known.
    async fn holder(&self, tenant: &TenantId) -> Result<Option<String>, Error> {
        let mut tx = self
            .store
            .requests()
            .begin(tenant.as_str())
            .await
            .map_err(unavailable)?;
        store::holder(&mut tx, tenant.admission_shard())
            .await
            .map_err(unavailable)
    }

    /// The refusal of whoever is not responsible, with the address of who is.
    async fn not_holder(&self, tenant: &TenantId) -> Error {
        let address = self.holder(tenant).await.ok().flatten().unwrap_or_default();
        let message = match address.as_str() {
            "" => format!("nobody admits tasks of `{tenant}` just now; repeat in a moment"),
            address => format!("tasks of `{tenant}` are admitted at {address}; connect there"),
        };
        Error::new(Reason::NotHolder, message).with("address", address)
    }
}

/// A failed statement as a refusal.
pub(crate) fn unavailable(error: StoreError) -> Error {
    match error.is_transient() {
        true => Error::new(Reason::DependencyUnavailable, error.to_string()),
        false => Error::new(Reason::Internal, error.to_string()),
    }
}

fn not_appended(error: AppendError) -> Error {
    match error {
        AppendError::Store(error) => unavailable(error),
        other => Error::new(Reason::Internal, other.to_string()),
    }
}

fn tenant_of(text: &str) -> Result<TenantId, Error> {
    text.parse()
        .map_err(|error: servo_model::ids::IdError| Error::bad_field("tenant", error.to_string()))
}

fn worker_of(text: &str) -> Result<WorkerId, Error> {
    text.parse().map_err(|error: servo_model::ids::IdError| {
        Error::bad_field("worker_id", error.to_string())
    })
}

fn new_event_id() -> EventId {
    EventId::new((crate::wire::now() * 1e3) as u64, rand::random())
}
