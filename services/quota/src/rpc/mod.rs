//! `servo.v1.QuotaService`, one file per method. Methods that are not overridden answer
//! UNIMPLEMENTED.

mod create_budget;
mod create_pool;
mod delete_budget;
mod delete_pool;
mod get_budget;
mod get_costs;
mod get_pool;
mod get_prices;
mod get_quota;
mod list_budgets;
mod list_pools;
mod list_usage;
mod support;
mod update_budget;
mod update_pool;
mod update_prices;
mod update_quota;
mod watch_limits;

use servo_mesh::{Caller, Doorbell, Error, Fault, Mesh, PageTokens, Peer};
use servo_model::{Service, TenantId, TenantScope};
use servo_proto::mesh::v1 as mesh_pb;
use servo_proto::mesh::v1::dispatcher_mesh_service_client::DispatcherMeshServiceClient;
use servo_proto::mesh::v1::quota_mesh_service_server::QuotaMeshService;
use servo_proto::mesh::v1::scheduler_mesh_service_client::SchedulerMeshServiceClient;
use servo_proto::v1 as pb;
use servo_proto::v1::QuotaLimits;
use servo_proto::v1::quota_service_server::QuotaService;
use servo_store::{Store, TenantTx};
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};

use self::support::errors::store_error;
use crate::Config;
use crate::core::limits;
use crate::loops::limits::SnapshotSender;
use crate::store::quotas;

/// The handlers' context. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Quota {
    pub(crate) store: Store,
    pub(crate) pages: PageTokens,
    /// Limits from the configuration, below all settings.
    pub(crate) defaults: QuotaLimits,
    /// Wakes the limits loop when this instance changed a setting.
    pub(crate) doorbell: Doorbell,
    pub(crate) snapshots: SnapshotSender,
    /// The services that enforce limits and know their current use.
    pub(crate) dispatcher: DispatcherMeshServiceClient<Peer>,
    pub(crate) scheduler: SchedulerMeshServiceClient<Peer>,
}

impl Quota {
    pub(crate) fn new(
        store: &Store,
        mesh: &Mesh<Config>,
        defaults: QuotaLimits,
    ) -> Result<Quota, Fault> {
        Ok(Quota {
            store: store.clone(),
            pages: mesh.config().paging.tokens()?,
            defaults,
            doorbell: Doorbell::new(),
            snapshots: SnapshotSender::new(None),
            dispatcher: DispatcherMeshServiceClient::new(mesh.peer(Service::Dispatcher)),
            scheduler: SchedulerMeshServiceClient::new(mesh.peer(Service::Scheduler)),
        })
    }

    /// Wakes the limits loop, so that watchers get a changed setting at once.
    pub(crate) fn notify_changed(&self) {
        self.doorbell.ring();
    }

    pub(crate) async fn begin(&self, tenant: &TenantId) -> Result<TenantTx, Error> {
        self.begin_in(&tenant.into()).await
    }

    /// Like [`Quota::begin`], for settings that the platform has too.
    pub(crate) async fn begin_in(&self, tenant: &TenantScope) -> Result<TenantTx, Error> {
        self.store
            .requests()
            .begin_in(tenant)
            .await
            .map_err(store_error)
    }

    /// Returns the limits that apply where the tenant sets none. Uses a transaction of its own,
    /// because a tenant's transaction does not see rows of the platform.
    pub(crate) async fn inherited_limits(
        &self,
        tenant: &TenantScope,
    ) -> Result<QuotaLimits, Error> {
        let platform = TenantScope::All;
        if *tenant == platform {
            return Ok(self.defaults);
        }
        let mut tx = self.begin_in(&platform).await?;
        let (_, set) = quotas::find(&mut tx, &platform)
            .await
            .map_err(store_error)?;
        Ok(limits::overlay(&set, &self.defaults))
    }
}

/// Calls the function of a method with its request.
macro_rules! answer {
    ($quota:expr, $method:ident, $request:expr) => {{
        Ok(Response::new(
            $method::$method($quota, $request.into_inner()).await?,
        ))
    }};
    ($quota:expr, $method:ident, by $request:expr) => {{
        let caller = Caller::of($request.extensions())?.clone();
        Ok(Response::new(
            $method::$method($quota, &caller, $request.into_inner()).await?,
        ))
    }};
}

/// The result of a method.
type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl QuotaService for Quota {
    async fn get_quota(
        &self,
        request: Request<pb::GetQuotaRequest>,
    ) -> Answer<pb::GetQuotaResponse> {
        answer!(self, get_quota, request)
    }

    async fn update_quota(
        &self,
        request: Request<pb::UpdateQuotaRequest>,
    ) -> Answer<pb::UpdateQuotaResponse> {
        answer!(self, update_quota, by request)
    }

    async fn create_pool(
        &self,
        request: Request<pb::CreatePoolRequest>,
    ) -> Answer<pb::CreatePoolResponse> {
        answer!(self, create_pool, by request)
    }

    async fn get_pool(&self, request: Request<pb::GetPoolRequest>) -> Answer<pb::GetPoolResponse> {
        answer!(self, get_pool, request)
    }

    async fn list_pools(
        &self,
        request: Request<pb::ListPoolsRequest>,
    ) -> Answer<pb::ListPoolsResponse> {
        answer!(self, list_pools, request)
    }

    async fn update_pool(
        &self,
        request: Request<pb::UpdatePoolRequest>,
    ) -> Answer<pb::UpdatePoolResponse> {
        answer!(self, update_pool, by request)
    }

    async fn delete_pool(
        &self,
        request: Request<pb::DeletePoolRequest>,
    ) -> Answer<pb::DeletePoolResponse> {
        answer!(self, delete_pool, by request)
    }

    async fn get_prices(
        &self,
        request: Request<pb::GetPricesRequest>,
    ) -> Answer<pb::GetPricesResponse> {
        answer!(self, get_prices, request)
    }

    async fn update_prices(
        &self,
        request: Request<pb::UpdatePricesRequest>,
    ) -> Answer<pb::UpdatePricesResponse> {
        answer!(self, update_prices, by request)
    }

    async fn create_budget(
        &self,
        request: Request<pb::CreateBudgetRequest>,
    ) -> Answer<pb::CreateBudgetResponse> {
        answer!(self, create_budget, by request)
    }

    async fn get_budget(
        &self,
        request: Request<pb::GetBudgetRequest>,
    ) -> Answer<pb::GetBudgetResponse> {
        answer!(self, get_budget, request)
    }

    async fn list_budgets(
        &self,
        request: Request<pb::ListBudgetsRequest>,
    ) -> Answer<pb::ListBudgetsResponse> {
        answer!(self, list_budgets, request)
    }

    async fn update_budget(
        &self,
        request: Request<pb::UpdateBudgetRequest>,
    ) -> Answer<pb::UpdateBudgetResponse> {
        answer!(self, update_budget, by request)
    }

    async fn delete_budget(
        &self,
        request: Request<pb::DeleteBudgetRequest>,
    ) -> Answer<pb::DeleteBudgetResponse> {
        answer!(self, delete_budget, by request)
    }

    async fn list_usage(
        &self,
        request: Request<pb::ListUsageRequest>,
    ) -> Answer<pb::ListUsageResponse> {
        answer!(self, list_usage, request)
    }

    async fn get_costs(
        &self,
        request: Request<pb::GetCostsRequest>,
    ) -> Answer<pb::GetCostsResponse> {
        answer!(self, get_costs, request)
    }
}

#[tonic::async_trait]
impl QuotaMeshService for Quota {
    async fn watch_limits(
        &self,
        request: Request<mesh_pb::WatchLimitsRequest>,
    ) -> Answer<BoxStream<mesh_pb::WatchLimitsResponse>> {
        answer!(self, watch_limits, request)
    }
}
