//! `servo.v1.QuotaService`, one file per method. What is not overridden answers UNIMPLEMENTED.

mod change;
mod context;
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
mod report;
mod update_budget;
mod update_pool;
mod update_prices;
mod update_quota;
mod used;
mod watch_limits;

use servo_mesh::Caller;
use servo_proto::v1::quota_service_server::QuotaService;
use servo_proto::v1::*;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};

pub(crate) use context::Quota;

/// Hands a request to the function of its method.
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

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl QuotaService for Quota {
    async fn get_quota(&self, request: Request<GetQuotaRequest>) -> Answer<GetQuotaResponse> {
        answer!(self, get_quota, request)
    }

    async fn update_quota(
        &self,
        request: Request<UpdateQuotaRequest>,
    ) -> Answer<UpdateQuotaResponse> {
        answer!(self, update_quota, by request)
    }

    async fn create_pool(&self, request: Request<CreatePoolRequest>) -> Answer<CreatePoolResponse> {
        answer!(self, create_pool, by request)
    }

    async fn get_pool(&self, request: Request<GetPoolRequest>) -> Answer<GetPoolResponse> {
        answer!(self, get_pool, request)
    }

    async fn list_pools(&self, request: Request<ListPoolsRequest>) -> Answer<ListPoolsResponse> {
        answer!(self, list_pools, request)
    }

    async fn update_pool(&self, request: Request<UpdatePoolRequest>) -> Answer<UpdatePoolResponse> {
        answer!(self, update_pool, by request)
    }

    async fn delete_pool(&self, request: Request<DeletePoolRequest>) -> Answer<DeletePoolResponse> {
        answer!(self, delete_pool, by request)
    }

    async fn get_prices(&self, request: Request<GetPricesRequest>) -> Answer<GetPricesResponse> {
        answer!(self, get_prices, request)
    }

    async fn update_prices(
        &self,
        request: Request<UpdatePricesRequest>,
    ) -> Answer<UpdatePricesResponse> {
        answer!(self, update_prices, by request)
    }

    async fn create_budget(
        &self,
        request: Request<CreateBudgetRequest>,
    ) -> Answer<CreateBudgetResponse> {
        answer!(self, create_budget, by request)
    }

    async fn get_budget(&self, request: Request<GetBudgetRequest>) -> Answer<GetBudgetResponse> {
        answer!(self, get_budget, request)
    }

    async fn list_budgets(
        &self,
        request: Request<ListBudgetsRequest>,
    ) -> Answer<ListBudgetsResponse> {
        answer!(self, list_budgets, request)
    }

    async fn update_budget(
        &self,
        request: Request<UpdateBudgetRequest>,
    ) -> Answer<UpdateBudgetResponse> {
        answer!(self, update_budget, by request)
    }

    async fn delete_budget(
        &self,
        request: Request<DeleteBudgetRequest>,
    ) -> Answer<DeleteBudgetResponse> {
        answer!(self, delete_budget, by request)
    }

    async fn list_usage(&self, request: Request<ListUsageRequest>) -> Answer<ListUsageResponse> {
        answer!(self, list_usage, request)
    }

    async fn get_costs(&self, request: Request<GetCostsRequest>) -> Answer<GetCostsResponse> {
        answer!(self, get_costs, request)
    }

    async fn watch_limits(
        &self,
        request: Request<WatchLimitsRequest>,
    ) -> Answer<BoxStream<WatchLimitsResponse>> {
        answer!(self, watch_limits, request)
    }
}
