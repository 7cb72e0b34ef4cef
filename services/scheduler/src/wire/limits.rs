//! Limits on runs, as the quota service sends them.

use servo_model::limits::TASKS_PER_RUN_MAX;
use servo_proto::mesh::v1 as mesh_pb;

use super::request::micros;
use crate::core::RunLimits;

pub(crate) fn run_limits(update: &mesh_pb::TenantLimits) -> RunLimits {
    let (limits, default) = (update.limits.unwrap_or_default(), RunLimits::default());
    RunLimits {
        max_concurrent_runs: limits.max_concurrent_runs,
        max_queued_runs: limits.max_queued_runs,
        max_daily_runs: limits.max_daily_runs,
        max_tasks_per_run: limits
            .max_tasks_per_run
            .map_or(default.max_tasks_per_run, |max| {
                max.min(TASKS_PER_RUN_MAX as u32)
            }),
        max_run_duration_us: limits
            .max_run_duration
            .as_ref()
            .map_or(default.max_run_duration_us, micros),
    }
}
