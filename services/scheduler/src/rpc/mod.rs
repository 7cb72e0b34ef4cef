//! `servo.v1.SchedulerService`: one file per method, and what several methods need in [`support`].

mod admit;
mod apply_events;
mod cancel_run;
mod cancel_runs;
mod count_runs;
mod explain;
mod force_cancel_task;
mod get_partition_summary;
mod get_run;
mod get_task;
mod hear_run;
mod list_check_results;
mod list_events;
mod list_materializations;
mod list_partitions;
mod list_poison_messages;
mod list_projections;
mod list_run_key_conflicts;
mod list_runs;
mod list_stale_partitions;
mod list_tasks;
mod pause_run;
mod replay_message;
mod report_attempts;
mod resolve_quarantine;
mod resume_run;
mod retry_run;
mod support;
mod trigger_run;
mod verify_projection;
mod watch_run;

pub(crate) use support::routing::CommandRouter;

use std::sync::Arc;

use servo_mesh::paging::PageTokens;
use servo_mesh::{Caller, Peer};
use servo_model::TenantId;
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::dispatcher_mesh_service_client::DispatcherMeshServiceClient;
use servo_proto::mesh::v1::planner_mesh_service_client::PlannerMeshServiceClient;
use servo_proto::mesh::v1::scheduler_mesh_service_server::SchedulerMeshService;
use servo_proto::v1 as pb;
use servo_proto::v1::scheduler_service_server::SchedulerService;
use servo_proto::v1::system_service_server::SystemService;
use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming};

use crate::core::{Limits, RunLimits};
use crate::plan_batcher::PlanBatcher;
use crate::reads::Reads;
use crate::run_ids::RunIds;
use crate::run_lookup::RunLookup;
use crate::shards::Shards;

/// The service. Methods that it does not override answer UNIMPLEMENTED. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Scheduler {
    pub(crate) reads: Reads,
    pub(crate) shards: Shards,
    pub(crate) plan_batcher: PlanBatcher,
    pub(crate) planner: PlannerMeshServiceClient<Peer>,
    pub(crate) run_lookup: RunLookup,
    pub(crate) router: CommandRouter,
    pub(crate) run_ids: RunIds,
    pub(crate) tokens: PageTokens,
    pub(crate) dispatcher: DispatcherMeshServiceClient<Peer>,
    pub(crate) limits: watch::Receiver<Limits>,
}

impl Scheduler {
    /// The limits of a tenant; `None` until the quota service has sent them.
    fn limits_of(&self, tenant: &TenantId) -> Option<Arc<RunLimits>> {
        let limits = self.limits.borrow();
        limits.known.then(|| limits.of(tenant).clone())
    }
}

#[tonic::async_trait]
impl SchedulerService for Scheduler {
    async fn trigger_run(
        &self,
        request: Request<pb::TriggerRunRequest>,
    ) -> Result<Response<pb::TriggerRunResponse>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            trigger_run::trigger_run(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn get_run(
        &self,
        request: Request<pb::GetRunRequest>,
    ) -> Result<Response<pb::GetRunResponse>, Status> {
        Ok(Response::new(
            get_run::get_run(self, request.into_inner()).await?,
        ))
    }

    async fn list_runs(
        &self,
        request: Request<pb::ListRunsRequest>,
    ) -> Result<Response<pb::ListRunsResponse>, Status> {
        Ok(Response::new(
            list_runs::list_runs(self, request.into_inner()).await?,
        ))
    }

    async fn get_task(
        &self,
        request: Request<pb::GetTaskRequest>,
    ) -> Result<Response<pb::GetTaskResponse>, Status> {
        Ok(Response::new(
            get_task::get_task(self, request.into_inner()).await?,
        ))
    }

    async fn list_tasks(
        &self,
        request: Request<pb::ListTasksRequest>,
    ) -> Result<Response<pb::ListTasksResponse>, Status> {
        Ok(Response::new(
            list_tasks::list_tasks(self, request.into_inner()).await?,
        ))
    }

    async fn cancel_run(
        &self,
        request: Request<pb::CancelRunRequest>,
    ) -> Result<Response<pb::CancelRunResponse>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            cancel_run::cancel_run(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn pause_run(
        &self,
        request: Request<pb::PauseRunRequest>,
    ) -> Result<Response<pb::PauseRunResponse>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            pause_run::pause_run(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn resume_run(
        &self,
        request: Request<pb::ResumeRunRequest>,
    ) -> Result<Response<pb::ResumeRunResponse>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            resume_run::resume_run(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn explain(
        &self,
        request: Request<pb::ExplainRequest>,
    ) -> Result<Response<pb::ExplainResponse>, Status> {
        Ok(Response::new(
            explain::explain(self, request.into_inner()).await?,
        ))
    }

    async fn watch_run(
        &self,
        request: Request<pb::WatchRunRequest>,
    ) -> Result<Response<watch_run::Watched>, Status> {
        Ok(Response::new(
            watch_run::watch_run(self, request.into_inner()).await?,
        ))
    }

    async fn list_events(
        &self,
        request: Request<pb::ListEventsRequest>,
    ) -> Result<Response<pb::ListEventsResponse>, Status> {
        Ok(Response::new(
            list_events::list_events(self, request.into_inner()).await?,
        ))
    }

    async fn retry_run(
        &self,
        request: Request<pb::RetryRunRequest>,
    ) -> Result<Response<pb::RetryRunResponse>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            retry_run::retry_run(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn force_cancel_task(
        &self,
        request: Request<pb::ForceCancelTaskRequest>,
    ) -> Result<Response<pb::ForceCancelTaskResponse>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        let request = request.into_inner();
        Ok(Response::new(
            force_cancel_task::force_cancel_task(self, &caller, request).await?,
        ))
    }

    async fn list_partitions(
        &self,
        request: Request<pb::ListPartitionsRequest>,
    ) -> Result<Response<pb::ListPartitionsResponse>, Status> {
        Ok(Response::new(
            list_partitions::list_partitions(self, request.into_inner()).await?,
        ))
    }

    async fn get_partition_summary(
        &self,
        request: Request<pb::GetPartitionSummaryRequest>,
    ) -> Result<Response<pb::GetPartitionSummaryResponse>, Status> {
        Ok(Response::new(
            get_partition_summary::get_partition_summary(self, request.into_inner()).await?,
        ))
    }

    async fn list_stale_partitions(
        &self,
        request: Request<pb::ListStalePartitionsRequest>,
    ) -> Result<Response<pb::ListStalePartitionsResponse>, Status> {
        Ok(Response::new(
            list_stale_partitions::list_stale_partitions(self, request.into_inner()).await?,
        ))
    }

    async fn list_materializations(
        &self,
        request: Request<pb::ListMaterializationsRequest>,
    ) -> Result<Response<pb::ListMaterializationsResponse>, Status> {
        let request = request.into_inner();
        Ok(Response::new(
            list_materializations::list_materializations(self, request).await?,
        ))
    }

    async fn resolve_quarantine(
        &self,
        request: Request<pb::ResolveQuarantineRequest>,
    ) -> Result<Response<pb::ResolveQuarantineResponse>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        let request = request.into_inner();
        Ok(Response::new(
            resolve_quarantine::resolve_quarantine(self, &caller, request).await?,
        ))
    }

    async fn list_check_results(
        &self,
        request: Request<pb::ListCheckResultsRequest>,
    ) -> Result<Response<pb::ListCheckResultsResponse>, Status> {
        Ok(Response::new(
            list_check_results::list_check_results(self, request.into_inner()).await?,
        ))
    }

    async fn list_run_key_conflicts(
        &self,
        request: Request<pb::ListRunKeyConflictsRequest>,
    ) -> Result<Response<pb::ListRunKeyConflictsResponse>, Status> {
        let request = request.into_inner();
        Ok(Response::new(
            list_run_key_conflicts::list_run_key_conflicts(self, request).await?,
        ))
    }
}

#[tonic::async_trait]
impl SystemService for Scheduler {
    async fn list_projections(
        &self,
        request: Request<pb::ListProjectionsRequest>,
    ) -> Result<Response<pb::ListProjectionsResponse>, Status> {
        Ok(Response::new(
            list_projections::list_projections(self, request.into_inner()).await?,
        ))
    }

    async fn list_poison_messages(
        &self,
        request: Request<pb::ListPoisonMessagesRequest>,
    ) -> Result<Response<pb::ListPoisonMessagesResponse>, Status> {
        Ok(Response::new(
            list_poison_messages::list_poison_messages(self, request.into_inner()).await?,
        ))
    }

    async fn replay_message(
        &self,
        request: Request<pb::ReplayMessageRequest>,
    ) -> Result<Response<pb::ReplayMessageResponse>, Status> {
        Ok(Response::new(
            replay_message::replay_message(self.reads.store.loops(), request.into_inner()).await?,
        ))
    }

    async fn verify_projection(
        &self,
        request: Request<pb::VerifyProjectionRequest>,
    ) -> Result<Response<pb::VerifyProjectionResponse>, Status> {
        Ok(Response::new(
            verify_projection::verify_projection(self, request.into_inner()).await?,
        ))
    }
}

#[tonic::async_trait]
impl SchedulerMeshService for Scheduler {
    async fn hear_run(
        &self,
        request: Request<mesh_pb::HearRunRequest>,
    ) -> Result<Response<hear_run::Notifications>, Status> {
        Ok(Response::new(hear_run::hear_run(self, request.get_ref())?))
    }

    async fn apply_events(
        &self,
        request: Request<mesh_pb::ApplyEventsRequest>,
    ) -> Result<Response<mesh_pb::ApplyEventsResponse>, Status> {
        Ok(Response::new(
            apply_events::apply_events(self, request.into_inner()).await?,
        ))
    }

    async fn count_runs(
        &self,
        request: Request<mesh_pb::CountRunsRequest>,
    ) -> Result<Response<mesh_pb::CountRunsResponse>, Status> {
        Ok(Response::new(
            count_runs::count_runs(self, request.into_inner()).await?,
        ))
    }

    async fn cancel_runs(
        &self,
        request: Request<mesh_pb::CancelRunsRequest>,
    ) -> Result<Response<mesh_pb::CancelRunsResponse>, Status> {
        Ok(Response::new(
            cancel_runs::cancel_runs(self, request.into_inner()).await?,
        ))
    }

    async fn report_attempts(
        &self,
        request: Request<mesh_pb::ReportAttemptsRequest>,
    ) -> Result<Response<mesh_pb::ReportAttemptsResponse>, Status> {
        Ok(Response::new(
            report_attempts::report_attempts(self, request.into_inner()).await?,
        ))
    }

    async fn admit(
        &self,
        request: Request<Streaming<mesh_pb::AdmitRequest>>,
    ) -> Result<Response<admit::Answers>, Status> {
        Ok(Response::new(admit::admit(
            self.clone(),
            request.into_inner(),
        )))
    }
}
