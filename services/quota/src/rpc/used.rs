//! What is used of a tenant's limits just now, as those know who enforce them.

use std::time::Duration;

use servo_proto::v1::{
    CountRunsRequest, CountRunsResponse, CountUseRequest, CountUseResponse, QuotaUse,
};
use tonic::{Request, Response, Status};
use tracing::warn;

use super::context::Quota;

/// How long they are waited for. Limits are worth an answer without what is used of them.
const PATIENCE: Duration = Duration::from_secs(1);

impl Quota {
    /// `None` when one of those who know it does not answer: half of it would look like the whole.
    pub(super) async fn used(&self, tenant: &str) -> Option<QuotaUse> {
        let (tasks, runs) = tokio::join!(self.count_use(tenant, ""), self.count_runs(tenant));
        let (tasks, runs) = (tasks?, runs?);
        Some(QuotaUse {
            concurrent_tasks: tasks.live_attempts,
            concurrent_runs: runs.under_way,
            queued_runs: runs.waiting,
            queued_tasks: tasks.queued_attempts,
            daily_runs: runs.today,
            backfill_runs: runs.backfills,
        })
    }

    /// Slots taken in all pools of the tenant, and who holds those of `pool`.
    pub(super) async fn count_use(&self, tenant: &str, pool: &str) -> Option<CountUseResponse> {
        let asked = CountUseRequest {
            tenant: tenant.to_owned(),
            pool: pool.to_owned(),
        };
        told(
            self.dispatcher.clone().count_use(soon(asked)).await,
            "tasks",
        )
    }

    async fn count_runs(&self, tenant: &str) -> Option<CountRunsResponse> {
        let asked = CountRunsRequest {
            tenant: tenant.to_owned(),
        };
        told(self.scheduler.clone().count_runs(soon(asked)).await, "runs")
    }
}

fn soon<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(PATIENCE);
    request
}

fn told<T>(answer: Result<Response<T>, Status>, of: &str) -> Option<T> {
    let silent = |status: &Status| {
        warn!(
            error = status.message(),
            of, "what is used of limits could not be asked for"
        );
    };
    answer.inspect_err(silent).ok().map(Response::into_inner)
}
