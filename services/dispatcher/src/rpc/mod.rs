//! `servo.v1.DispatcherService`, one file per method.

mod count_use;
mod drain_worker;
mod explain_admission;
mod kill_worker;
mod list_dispatch_pauses;
mod list_dispatches;
mod list_held_dispatches;
mod list_workers;
mod pause_dispatch;
mod pull_tasks;
mod register_worker;
mod resume_dispatch;
mod support;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use servo_mesh::{Caller, Doorbell, Mesh, PageTokens};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::dispatcher_mesh_service_server::DispatcherMeshService;
use servo_proto::v1 as pb;
use servo_proto::v1::dispatcher_service_server::DispatcherService;
use servo_store::Store;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use crate::Config;
use crate::engine::Engine;
use crate::envelope::Signer;

/// The context of every handler. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    pub(crate) mesh: Mesh<Config>,
    pub(crate) store: Store,
    pub(crate) engine: Engine,
    pub(crate) signer: Signer,
    pub(crate) page_tokens: PageTokens,
    /// Rings when a command was appended here.
    pub(crate) commands_changed: Doorbell,
    /// Rings when a worker registered for pushes here.
    pub(crate) push_workers_changed: Doorbell,
    pub(crate) connections: Arc<AtomicU64>,
}

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl DispatcherService for Dispatcher {
    async fn register_worker(
        &self,
        request: Request<pb::RegisterWorkerRequest>,
    ) -> Answered<pb::RegisterWorkerResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            register_worker::register_worker(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn pull_tasks(
        &self,
        request: Request<Streaming<pb::PullTasksRequest>>,
    ) -> Answered<BoxStream<pb::PullTasksResponse>> {
        let caller = Caller::of(request.extensions())?.clone();
        pull_tasks::pull_tasks(self, &caller, request.into_inner())
            .await
            .map(Response::new)
    }

    async fn list_workers(
        &self,
        request: Request<pb::ListWorkersRequest>,
    ) -> Answered<pb::ListWorkersResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            list_workers::list_workers(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn drain_worker(
        &self,
        request: Request<pb::DrainWorkerRequest>,
    ) -> Answered<pb::DrainWorkerResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            drain_worker::drain_worker(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn kill_worker(
        &self,
        request: Request<pb::KillWorkerRequest>,
    ) -> Answered<pb::KillWorkerResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            kill_worker::kill_worker(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn pause_dispatch(
        &self,
        request: Request<pb::PauseDispatchRequest>,
    ) -> Answered<pb::PauseDispatchResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            pause_dispatch::pause_dispatch(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn resume_dispatch(
        &self,
        request: Request<pb::ResumeDispatchRequest>,
    ) -> Answered<pb::ResumeDispatchResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            resume_dispatch::resume_dispatch(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn list_dispatch_pauses(
        &self,
        request: Request<pb::ListDispatchPausesRequest>,
    ) -> Answered<pb::ListDispatchPausesResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            list_dispatch_pauses::list_dispatch_pauses(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn list_dispatches(
        &self,
        request: Request<pb::ListDispatchesRequest>,
    ) -> Answered<pb::ListDispatchesResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            list_dispatches::list_dispatches(self, &caller, request.into_inner()).await?,
        ))
    }
}

#[tonic::async_trait]
impl DispatcherMeshService for Dispatcher {
    async fn list_held_dispatches(
        &self,
        request: Request<mesh_pb::ListHeldDispatchesRequest>,
    ) -> Answered<mesh_pb::ListHeldDispatchesResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            list_held_dispatches::list_held_dispatches(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn count_use(
        &self,
        request: Request<mesh_pb::CountUseRequest>,
    ) -> Answered<mesh_pb::CountUseResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            count_use::count_use(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn explain_admission(
        &self,
        request: Request<mesh_pb::ExplainAdmissionRequest>,
    ) -> Answered<mesh_pb::ExplainAdmissionResponse> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            explain_admission::explain_admission(self, &caller, request.into_inner()).await?,
        ))
    }
}
