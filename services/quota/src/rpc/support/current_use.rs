//! The current use of a tenant's limits, read from the services that enforce them.

use std::time::Duration;

use servo_model::TenantId;
use servo_proto::mesh::v1::{
    CountRunsRequest, CountRunsResponse, CountUseRequest, CountUseResponse,
};
use servo_proto::v1::QuotaUse;
use tonic::{Request, Response, Status};
use tracing::warn;

use crate::rpc::Quota;

/// Timeout of these calls, because limits are worth an answer without their current use.
const USE_TIMEOUT: Duration = Duration::from_secs(1);

impl Quota {
    /// Returns `None` when one of the services does not answer, because a partial answer would look
    /// complete.
    pub(crate) async fn current_use(&self, tenant: &TenantId) -> Option<QuotaUse> {
        let (tasks, runs) = tokio::join!(self.count_use(tenant, ""), self.count_runs(tenant));
        let (tasks, runs) = (tasks?, runs?);
        Some(QuotaUse {
            concurrent_tasks: tasks.live_attempts,
            concurrent_runs: runs.concurrent,
            queued_runs: runs.waiting,
            queued_tasks: tasks.queued_attempts,
            daily_runs: runs.today,
            backfill_runs: runs.backfills,
        })
    }

    /// Returns the slots taken in all pools of the tenant, and the holders of those of `pool`.
    pub(crate) async fn count_use(
        &self,
        tenant: &TenantId,
        pool: &str,
    ) -> Option<CountUseResponse> {
        let request = CountUseRequest {
            tenant: tenant.to_string(),
            pool: pool.to_owned(),
        };
        log_failure(
            self.dispatcher
                .clone()
                .count_use(with_timeout(request))
                .await,
            "tasks",
        )
    }

    async fn count_runs(&self, tenant: &TenantId) -> Option<CountRunsResponse> {
        let request = CountRunsRequest {
            tenant: tenant.to_string(),
        };
        log_failure(
            self.scheduler
                .clone()
                .count_runs(with_timeout(request))
                .await,
            "runs",
        )
    }
}

fn with_timeout<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(USE_TIMEOUT);
    request
}

fn log_failure<T>(answer: Result<Response<T>, Status>, of: &str) -> Option<T> {
    let warn_failed = |status: &Status| {
        warn!(
            error = status.message(),
            of, "failed to read the current use of limits"
        );
    };
    answer
        .inspect_err(warn_failed)
        .ok()
        .map(Response::into_inner)
}
