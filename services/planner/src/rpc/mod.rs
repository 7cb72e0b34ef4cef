//! `servo.v1.PlannerService`, one file per method.

mod add_dynamic_partitions;
mod deploy;
mod download_artifact;
mod expand_partitions;
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
mod summarize_partitions;
mod support;
mod upload_artifact;

use std::sync::Arc;

use servo_mesh::{Caller, Error, Fault, PageTokens, Reason, now};
use servo_model::partitioning::Moment;
use servo_model::{Digest, PerTenant, TenantId};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::planner_mesh_service_server::PlannerMeshService;
use servo_proto::v1 as pb;
use servo_proto::v1::planner_service_server::PlannerService;
use servo_service::Cache;
use servo_store::{Store, TenantTx};
use tokio::sync::watch;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use self::support::blocking::run_blocking;
use self::support::errors::{store_error, unreadable_manifest};
use self::support::parse::parse_deployment_id;
use crate::Config;
use crate::artifacts::ArtifactDir;
use crate::core::deployment_graph::DeploymentGraph;
use crate::store::{Scope, deployments, sets};

/// Limit for the estimated memory use of all cached graphs, in bytes.
const GRAPH_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Each tenant's limit of tasks per run; `None` without a limit of its own.
pub(crate) type TaskLimits = PerTenant<Option<u32>>;

/// The handlers' context. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Planner {
    pub(crate) store: Store,
    graphs: Arc<Cache<Digest, Arc<DeploymentGraph>>>,
    pub(crate) pages: PageTokens,
    artifacts: Option<ArtifactDir>,
    limits: watch::Receiver<TaskLimits>,
}

/// A deployment's id and its parsed graph.
pub(crate) struct LoadedDeployment {
    pub(crate) id: String,
    pub(crate) graph: Arc<DeploymentGraph>,
}

impl Planner {
    pub(crate) fn new(
        store: Store,
        config: &Config,
        limits: watch::Receiver<TaskLimits>,
    ) -> Result<Planner, Fault> {
        Ok(Planner {
            store,
            graphs: Arc::new(Cache::new(GRAPH_BYTES_MAX)),
            pages: config.paging.tokens()?,
            artifacts: config.planner.artifacts.as_deref().map(ArtifactDir::new),
            limits,
        })
    }

    /// Returns the tenant's limit of tasks per run; `None` without one or before it is known.
    pub(crate) fn max_tasks(&self, tenant: &TenantId) -> Option<u32> {
        **self.limits.borrow().of(tenant)
    }

    pub(crate) async fn begin(&self, scope: &Scope) -> Result<TenantTx, Error> {
        self.store
            .requests()
            .begin(&scope.tenant)
            .await
            .map_err(store_error)
    }

    pub(crate) fn artifacts(&self) -> Result<&ArtifactDir, Error> {
        let sentence = "this planner keeps no artifacts; set planner.artifacts to a directory";
        self.artifacts
            .as_ref()
            .ok_or_else(|| Error::new(Reason::NotImplemented, sentence))
    }

    /// Returns the deployment that a request names; an empty id or "current" names the current one.
    pub(crate) async fn deployment(
        &self,
        tx: &mut TenantTx,
        scope: &Scope,
        id: &str,
    ) -> Result<LoadedDeployment, Error> {
        let row = find_deployment(tx, scope, id).await?;
        let digest = row.digest().map_err(store_error)?;
        let graph = self.graph(tx, scope, &digest).await?;
        Ok(LoadedDeployment {
            id: row.message().map_err(store_error)?.deployment_id,
            graph,
        })
    }

    pub(crate) async fn graph(
        &self,
        tx: &mut TenantTx,
        scope: &Scope,
        digest: &Digest,
    ) -> Result<Arc<DeploymentGraph>, Error> {
        if let Some(graph) = self.cached_graph(digest) {
            return Ok(graph);
        }
        let manifest = deployments::find_manifest(tx, scope, digest)
            .await
            .map_err(store_error)?;
        let graph = run_blocking(move || DeploymentGraph::from_normal(manifest))
            .await?
            .map_err(unreadable_manifest)?;
        Ok(self.cache_graph(Arc::new(graph)))
    }

    /// A digest identifies the content, so workspaces with equal manifests share one graph. Callers
    /// must read the digest from rows of their own workspace; the cache does not check access.
    pub(crate) fn cached_graph(&self, digest: &Digest) -> Option<Arc<DeploymentGraph>> {
        self.graphs.get(digest)
    }

    pub(crate) fn cache_graph(&self, graph: Arc<DeploymentGraph>) -> Arc<DeploymentGraph> {
        self.graphs
            .insert(graph.digest, graph.clone(), graph.memory_bytes());
        graph
    }

    /// Returns the current time and the current values of the deployment's dynamic sets.
    pub(crate) async fn moment(
        &self,
        tx: &mut TenantTx,
        scope: &Scope,
        graph: &DeploymentGraph,
    ) -> Result<Moment, Error> {
        let sets = sets::values(tx, scope, graph.sets.iter().cloned().collect())
            .await
            .map_err(store_error)?;
        Ok(Moment {
            now: now().to_jiff(),
            sets,
        })
    }
}

pub(crate) async fn find_deployment(
    tx: &mut TenantTx,
    scope: &Scope,
    id: &str,
) -> Result<deployments::DeploymentRow, Error> {
    let requested = parse_deployment_id(id)?;
    let row = deployments::find(tx, scope, requested.as_ref())
        .await
        .map_err(store_error)?;
    row.ok_or_else(|| match requested {
        Some(id) => Error::new(
            Reason::DeploymentNotFound,
            format!("there is no deployment {id} in this workspace"),
        ),
        None => Error::new(
            Reason::DeploymentNotFound,
            "nothing is deployed in this workspace yet; deploy first",
        ),
    })
}

/// Calls the function of a method with its request.
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
        request: Request<pb::DeployRequest>,
    ) -> Result<Response<pb::DeployResponse>, Status> {
        answer!(self, deploy, by request)
    }

    async fn get_deployment(
        &self,
        request: Request<pb::GetDeploymentRequest>,
    ) -> Result<Response<pb::GetDeploymentResponse>, Status> {
        answer!(self, get_deployment, request)
    }

    async fn list_deployments(
        &self,
        request: Request<pb::ListDeploymentsRequest>,
    ) -> Result<Response<pb::ListDeploymentsResponse>, Status> {
        answer!(self, list_deployments, request)
    }

    async fn upload_artifact(
        &self,
        request: Request<Streaming<pb::UploadArtifactRequest>>,
    ) -> Result<Response<pb::UploadArtifactResponse>, Status> {
        answer!(self, upload_artifact, request)
    }

    async fn download_artifact(
        &self,
        request: Request<pb::DownloadArtifactRequest>,
    ) -> Result<Response<BoxStream<pb::DownloadArtifactResponse>>, Status> {
        answer!(self, download_artifact, request)
    }

    async fn get_asset(
        &self,
        request: Request<pb::GetAssetRequest>,
    ) -> Result<Response<pb::GetAssetResponse>, Status> {
        answer!(self, get_asset, request)
    }

    async fn list_assets(
        &self,
        request: Request<pb::ListAssetsRequest>,
    ) -> Result<Response<pb::ListAssetsResponse>, Status> {
        answer!(self, list_assets, request)
    }

    async fn get_lineage(
        &self,
        request: Request<pb::GetLineageRequest>,
    ) -> Result<Response<pb::GetLineageResponse>, Status> {
        answer!(self, get_lineage, request)
    }

    async fn plan_run(
        &self,
        request: Request<pb::PlanRunRequest>,
    ) -> Result<Response<pb::PlanRunResponse>, Status> {
        answer!(self, plan_run, request)
    }

    async fn get_plan(
        &self,
        request: Request<pb::GetPlanRequest>,
    ) -> Result<Response<pb::GetPlanResponse>, Status> {
        answer!(self, get_plan, request)
    }

    async fn add_dynamic_partitions(
        &self,
        request: Request<pb::AddDynamicPartitionsRequest>,
    ) -> Result<Response<pb::AddDynamicPartitionsResponse>, Status> {
        answer!(self, add_dynamic_partitions, by request)
    }

    async fn remove_dynamic_partitions(
        &self,
        request: Request<pb::RemoveDynamicPartitionsRequest>,
    ) -> Result<Response<pb::RemoveDynamicPartitionsResponse>, Status> {
        answer!(self, remove_dynamic_partitions, by request)
    }

    async fn list_dynamic_partitions(
        &self,
        request: Request<pb::ListDynamicPartitionsRequest>,
    ) -> Result<Response<pb::ListDynamicPartitionsResponse>, Status> {
        answer!(self, list_dynamic_partitions, request)
    }
}

#[tonic::async_trait]
impl PlannerMeshService for Planner {
    async fn make_plans(
        &self,
        request: Request<mesh_pb::MakePlansRequest>,
    ) -> Result<Response<mesh_pb::MakePlansResponse>, Status> {
        answer!(self, make_plans, request)
    }

    async fn summarize_partitions(
        &self,
        request: Request<mesh_pb::SummarizePartitionsRequest>,
    ) -> Result<Response<mesh_pb::SummarizePartitionsResponse>, Status> {
        answer!(self, summarize_partitions, request)
    }

    async fn find_stale_partitions(
        &self,
        request: Request<mesh_pb::FindStalePartitionsRequest>,
    ) -> Result<Response<mesh_pb::FindStalePartitionsResponse>, Status> {
        answer!(self, find_stale_partitions, request)
    }

    async fn expand_partitions(
        &self,
        request: Request<mesh_pb::ExpandPartitionsRequest>,
    ) -> Result<Response<mesh_pb::ExpandPartitionsResponse>, Status> {
        answer!(self, expand_partitions, request)
    }
}
