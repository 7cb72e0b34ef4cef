//! `servo.v1.SchedulerService`, one file per method or family of methods.

mod admit;
mod answer;
mod apply_events;
mod cancel_runs;
mod check_filter;
mod control;
mod count_runs;
mod explain;
mod force_cancel_task;
mod generations;
mod get_run;
mod hear_run;
mod list_check_results;
mod list_events;
mod list_materializations;
mod list_partitions;
mod list_run_key_conflicts;
mod list_runs;
mod live_partitions;
mod materialization_filter;
mod partition_filter;
mod partition_summary;
mod poison_messages;
mod projections;
mod repeats;
mod report_attempts;
mod resolve_quarantine;
mod retry_run;
mod run_filter;
mod run_limit;
mod show_partitions;
mod start;
mod story;
mod task_names;
mod tasks;
mod trigger_run;
mod verify_projection;
mod wait;
mod watch_run;

use std::sync::Arc;

use servo_mesh::paging::PageTokens;
use servo_mesh::{Caller, Peer};
use servo_model::TenantId;
use servo_proto::v1;
use servo_proto::v1::dispatcher_service_client::DispatcherServiceClient;
use servo_proto::v1::planner_service_client::PlannerServiceClient;
use servo_proto::v1::scheduler_service_server::SchedulerService;
use servo_store::Store;
use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming};

use crate::core::{Limits, RunLimits};
use crate::known::KnownRuns;
use crate::planning::Planning;
use crate::route::Route;
use crate::secrets::RunIds;
use crate::shards::{Plans, Shards};

/// What it does not override answers UNIMPLEMENTED. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Scheduler {
    pub(crate) store: Store,
    pub(crate) shards: Shards,
    pub(crate) plans: Plans,
    pub(crate) planning: Planning,
    pub(crate) planner: PlannerServiceClient<Peer>,
    pub(crate) known: KnownRuns,
    pub(crate) route: Route,
    pub(crate) run_ids: RunIds,
    pub(crate) tokens: PageTokens,
    pub(crate) dispatcher: DispatcherServiceClient<Peer>,
    pub(crate) limits: watch::Receiver<Limits>,
}

impl Scheduler {
    /// What holds for a tenant's runs; nothing while it is not known.
    fn limits_of(&self, tenant: &TenantId) -> Option<Arc<RunLimits>> {
        let limits = self.limits.borrow();
        limits.known.then(|| limits.of(tenant).clone())
    }
}

#[tonic::async_trait]
impl SchedulerService for Scheduler {
    async fn trigger_run(
        &self,
        request: Request<v1::TriggerRunRequest>,
    ) -> Result<Response<v1::TriggerRunResponse>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            trigger_run::trigger_run(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn get_run(
        &self,
        request: Request<v1::GetRunRequest>,
    ) -> Result<Response<v1::GetRunResponse>, Status> {
        Ok(Response::new(
            get_run::get_run(self, request.into_inner()).await?,
        ))
    }

    async fn list_runs(
        &self,
        request: Request<v1::ListRunsRequest>,
    ) -> Result<Response<v1::ListRunsResponse>, Status> {
        Ok(Response::new(
            list_runs::list_runs(self, request.into_inner()).await?,
        ))
    }

    async fn get_task(
        &self,
        request: Request<v1::GetTaskRequest>,
    ) -> Result<Response<v1::GetTaskResponse>, Status> {
        Ok(Response::new(
            tasks::get_task(self, request.into_inner()).await?,
        ))
    }

    async fn list_tasks(
        &self,
        request: Request<v1::ListTasksRequest>,
    ) -> Result<Response<v1::ListTasksResponse>, Status> {
        Ok(Response::new(
            tasks::list_tasks(self, request.into_inner()).await?,
        ))
    }

    async fn cancel_run(
        &self,
        request: Request<v1::CancelRunRequest>,
    ) -> Result<Response<v1::CancelRunResponse>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        let asked = request.into_inner();
        let order = control::Order::new(
            control::Deed::Cancel,
            &asked.request_id,
            &asked.run_id,
            asked.expected_version,
            &asked.comment,
        )?;
        let (run, accepted_event_id) =
            control::control(self, &caller, &asked.tenant, &asked.workspace, order).await?;
        Ok(Response::new(v1::CancelRunResponse {
            run: Some(run),
            accepted_event_id,
        }))
    }

    async fn pause_run(
        &self,
        request: Request<v1::PauseRunRequest>,
    ) -> Result<Response<v1::PauseRunResponse>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        let asked = request.into_inner();
        let order = control::Order::new(
            control::Deed::Pause,
            &asked.request_id,
            &asked.run_id,
            asked.expected_version,
            &asked.comment,
        )?;
        let (run, accepted_event_id) =
            control::control(self, &caller, &asked.tenant, &asked.workspace, order).await?;
        Ok(Response::new(v1::PauseRunResponse {
            run: Some(run),
            accepted_event_id,
        }))
    }

    async fn resume_run(
        &self,
        request: Request<v1::ResumeRunRequest>,
    ) -> Result<Response<v1::ResumeRunResponse>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        let asked = request.into_inner();
        let order = control::Order::new(
            control::Deed::Resume,
            &asked.request_id,
            &asked.run_id,
            asked.expected_version,
            &asked.comment,
        )?;
        let (run, accepted_event_id) =
            control::control(self, &caller, &asked.tenant, &asked.workspace, order).await?;
        Ok(Response::new(v1::ResumeRunResponse {
            run: Some(run),
            accepted_event_id,
        }))
    }

    async fn explain(
        &self,
        request: Request<v1::ExplainRequest>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        Ok(Response::new(
            explain::explain(self, request.into_inner()).await?,
        ))
    }

    async fn watch_run(
        &self,
        request: Request<v1::WatchRunRequest>,
    ) -> Result<Response<watch_run::Watched>, Status> {
        Ok(Response::new(
            watch_run::watch_run(self, request.into_inner()).await?,
        ))
    }

    async fn hear_run(
        &self,
        request: Request<v1::HearRunRequest>,
    ) -> Result<Response<hear_run::Rings>, Status> {
        Ok(Response::new(hear_run::hear_run(self, request.get_ref())?))
    }

    async fn list_events(
        &self,
        request: Request<v1::ListEventsRequest>,
    ) -> Result<Response<v1::ListEventsResponse>, Status> {
        Ok(Response::new(
            list_events::list_events(self, request.into_inner()).await?,
        ))
    }

    async fn list_projections(
        &self,
        request: Request<v1::ListProjectionsRequest>,
    ) -> Result<Response<v1::ListProjectionsResponse>, Status> {
        Ok(Response::new(
            projections::list_projections(self, request.into_inner()).await?,
        ))
    }

    async fn list_poison_messages(
        &self,
        request: Request<v1::ListPoisonMessagesRequest>,
    ) -> Result<Response<v1::ListPoisonMessagesResponse>, Status> {
        Ok(Response::new(
            poison_messages::list_poison_messages(self, request.into_inner()).await?,
        ))
    }

    async fn replay_message(
        &self,
        request: Request<v1::ReplayMessageRequest>,
    ) -> Result<Response<v1::ReplayMessageResponse>, Status> {
        Ok(Response::new(
            poison_messages::replay_message(self.store.loops(), request.into_inner()).await?,
        ))
    }

    async fn verify_projection(
        &self,
        request: Request<v1::VerifyProjectionRequest>,
    ) -> Result<Response<v1::VerifyProjectionResponse>, Status> {
        Ok(Response::new(
            verify_projection::verify_projection(self, request.into_inner()).await?,
        ))
    }

    async fn retry_run(
        &self,
        request: Request<v1::RetryRunRequest>,
    ) -> Result<Response<v1::RetryRunResponse>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        Ok(Response::new(
            retry_run::retry_run(self, &caller, request.into_inner()).await?,
        ))
    }

    async fn force_cancel_task(
        &self,
        request: Request<v1::ForceCancelTaskRequest>,
    ) -> Result<Response<v1::ForceCancelTaskResponse>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        let asked = request.into_inner();
        Ok(Response::new(
            force_cancel_task::force_cancel_task(self, &caller, asked).await?,
        ))
    }

    async fn list_partitions(
        &self,
        request: Request<v1::ListPartitionsRequest>,
    ) -> Result<Response<v1::ListPartitionsResponse>, Status> {
        Ok(Response::new(
            list_partitions::list_partitions(self, request.into_inner()).await?,
        ))
    }

    async fn get_partition_summary(
        &self,
        request: Request<v1::GetPartitionSummaryRequest>,
    ) -> Result<Response<v1::GetPartitionSummaryResponse>, Status> {
        Ok(Response::new(
            partition_summary::get_partition_summary(self, request.into_inner()).await?,
        ))
    }

    async fn list_stale_partitions(
        &self,
        request: Request<v1::ListStalePartitionsRequest>,
    ) -> Result<Response<v1::ListStalePartitionsResponse>, Status> {
        Ok(Response::new(
            partition_summary::list_stale_partitions(self, request.into_inner()).await?,
        ))
    }

    async fn list_materializations(
        &self,
        request: Request<v1::ListMaterializationsRequest>,
    ) -> Result<Response<v1::ListMaterializationsResponse>, Status> {
        let asked = request.into_inner();
        Ok(Response::new(
            list_materializations::list_materializations(self, asked).await?,
        ))
    }

    async fn resolve_quarantine(
        &self,
        request: Request<v1::ResolveQuarantineRequest>,
    ) -> Result<Response<v1::ResolveQuarantineResponse>, Status> {
        let caller = Caller::of(request.extensions())?.clone();
        let asked = request.into_inner();
        Ok(Response::new(
            resolve_quarantine::resolve_quarantine(self, &caller, asked).await?,
        ))
    }

    async fn list_check_results(
        &self,
        request: Request<v1::ListCheckResultsRequest>,
    ) -> Result<Response<v1::ListCheckResultsResponse>, Status> {
        Ok(Response::new(
            list_check_results::list_check_results(self, request.into_inner()).await?,
        ))
    }

    async fn list_run_key_conflicts(
        &self,
        request: Request<v1::ListRunKeyConflictsRequest>,
    ) -> Result<Response<v1::ListRunKeyConflictsResponse>, Status> {
        let asked = request.into_inner();
        Ok(Response::new(
            list_run_key_conflicts::list_run_key_conflicts(self, asked).await?,
        ))
    }

    async fn apply_events(
        &self,
        request: Request<v1::ApplyEventsRequest>,
    ) -> Result<Response<v1::ApplyEventsResponse>, Status> {
        Ok(Response::new(
            apply_events::apply_events(self, request.into_inner()).await?,
        ))
    }

    async fn count_runs(
        &self,
        request: Request<v1::CountRunsRequest>,
    ) -> Result<Response<v1::CountRunsResponse>, Status> {
        Ok(Response::new(
            count_runs::count_runs(self, request.into_inner()).await?,
        ))
    }

    async fn cancel_runs(
        &self,
        request: Request<v1::CancelRunsRequest>,
    ) -> Result<Response<v1::CancelRunsResponse>, Status> {
        Ok(Response::new(
            cancel_runs::cancel_runs(self, request.into_inner()).await?,
        ))
    }

    async fn report_attempts(
        &self,
        request: Request<v1::ReportAttemptsRequest>,
    ) -> Result<Response<v1::ReportAttemptsResponse>, Status> {
        Ok(Response::new(
            report_attempts::report_attempts(self, request.into_inner()).await?,
        ))
    }

    async fn admit(
        &self,
        request: Request<Streaming<v1::AdmitRequest>>,
    ) -> Result<Response<admit::Answers>, Status> {
        Ok(Response::new(admit::admit(
            self.clone(),
            request.into_inner(),
        )))
    }
}
