//! `servo.v1.PlannerService`, one file per method.

mod add_dynamic_partitions;
mod context;
mod deploy;
mod download_artifact;
mod expand_partitions;
mod filters;
mod find_stale_partitions;
mod get_asset;
mod get_deployment;
mod get_lineage;
mod get_plan;
mod list_assets;
mod list_deployments;
mod list_dynamic_partitions;
mod make_plans;
mod plan_run;
mod remove_dynamic_partitions;
mod staleness;
mod summarize_partitions;
mod survey;
mod upload_artifact;

use servo_mesh::Caller;
use servo_proto::v1::planner_service_server::PlannerService;
use servo_proto::v1::*;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

pub(crate) use context::{Limits, Planner};

/// Hands a request to the function of its method.
macro_rules! answer {
    ($planner:expr, $method:ident, $request:expr) => {{
        Ok(Response::new(
            $method::$method($planner, $request.into_inner()).await?,
        ))
    }};
    ($planner:expr, $method:ident, by $request:expr) => {{
        let caller = Caller::of($request.extensions())?.clone();
        Ok(Response::new(
            $method::$method($planner, &caller, $request.into_inner()).await?,
        ))
    }};
}

#[tonic::async_trait]
impl PlannerService for Planner {
    async fn deploy(
        &self,
        request: Request<DeployRequest>,
    ) -> Result<Response<DeployResponse>, Status> {
        answer!(self, deploy, by request)
    }

    async fn get_deployment(
        &self,
        request: Request<GetDeploymentRequest>,
    ) -> Result<Response<GetDeploymentResponse>, Status> {
        answer!(self, get_deployment, request)
    }

    async fn list_deployments(
        &self,
        request: Request<ListDeploymentsRequest>,
    ) -> Result<Response<ListDeploymentsResponse>, Status> {
        answer!(self, list_deployments, request)
    }

    async fn upload_artifact(
        &self,
        request: Request<Streaming<UploadArtifactRequest>>,
    ) -> Result<Response<UploadArtifactResponse>, Status> {
        answer!(self, upload_artifact, request)
    }

    async fn download_artifact(
        &self,
        request: Request<DownloadArtifactRequest>,
    ) -> Result<Response<BoxStream<DownloadArtifactResponse>>, Status> {
        answer!(self, download_artifact, request)
    }

    async fn get_asset(
        &self,
        request: Request<GetAssetRequest>,
    ) -> Result<Response<GetAssetResponse>, Status> {
        answer!(self, get_asset, request)
    }

    async fn list_assets(
        &self,
        request: Request<ListAssetsRequest>,
    ) -> Result<Response<ListAssetsResponse>, Status> {
        answer!(self, list_assets, request)
    }

    async fn get_lineage(
        &self,
        request: Request<GetLineageRequest>,
    ) -> Result<Response<GetLineageResponse>, Status> {
        answer!(self, get_lineage, request)
    }

    async fn plan_run(
        &self,
        request: Request<PlanRunRequest>,
    ) -> Result<Response<PlanRunResponse>, Status> {
        answer!(self, plan_run, request)
    }

    async fn get_plan(
        &self,
        request: Request<GetPlanRequest>,
    ) -> Result<Response<GetPlanResponse>, Status> {
        answer!(self, get_plan, request)
    }

    async fn add_dynamic_partitions(
        &self,
        request: Request<AddDynamicPartitionsRequest>,
    ) -> Result<Response<AddDynamicPartitionsResponse>, Status> {
        answer!(self, add_dynamic_partitions, by request)
    }

    async fn remove_dynamic_partitions(
        &self,
        request: Request<RemoveDynamicPartitionsRequest>,
    ) -> Result<Response<RemoveDynamicPartitionsResponse>, Status> {
        answer!(self, remove_dynamic_partitions, by request)
    }

    async fn list_dynamic_partitions(
        &self,
        request: Request<ListDynamicPartitionsRequest>,
    ) -> Result<Response<ListDynamicPartitionsResponse>, Status> {
        answer!(self, list_dynamic_partitions, request)
    }

    async fn make_plans(
        &self,
        request: Request<MakePlansRequest>,
    ) -> Result<Response<MakePlansResponse>, Status> {
        answer!(self, make_plans, request)
    }

    async fn summarize_partitions(
        &self,
        request: Request<SummarizePartitionsRequest>,
    ) -> Result<Response<SummarizePartitionsResponse>, Status> {
        answer!(self, summarize_partitions, request)
    }

    async fn find_stale_partitions(
        &self,
        request: Request<FindStalePartitionsRequest>,
    ) -> Result<Response<FindStalePartitionsResponse>, Status> {
        answer!(self, find_stale_partitions, request)
    }

    async fn expand_partitions(
        &self,
        request: Request<ExpandPartitionsRequest>,
    ) -> Result<Response<ExpandPartitionsResponse>, Status> {
        answer!(self, expand_partitions, request)
    }
}
