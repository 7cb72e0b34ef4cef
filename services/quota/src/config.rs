//! The `[quota]` section: the limits of tenants and of a platform without settings.

use std::time::Duration;

use serde::Deserialize;
use servo_proto::v1::QuotaLimits;

/// The `[quota]` section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// Limits that apply where neither the tenant nor the platform (tenant `-`, see UpdateQuota)
    /// sets any.
    pub defaults: Defaults,
    /// How often usage is counted when there was nothing to count.
    #[serde(deserialize_with = "servo_mesh::config::duration")]
    pub count_every: Duration,
}

impl Default for Section {
    fn default() -> Section {
        Section {
            defaults: Defaults::default(),
            count_every: Duration::from_secs(5),
        }
    }
}

/// Limits without settings. A cap that is not set does not exist; 4294967295 removes one that is
/// set.
///
/// Concurrency and call rates have no cap by default. Queues, run duration, backfills and shares
/// do.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Defaults {
    pub max_concurrent_tasks: Option<u32>,
    pub max_concurrent_runs: Option<u32>,
    pub max_queued_runs: Option<u32>,
    pub max_queued_tasks: Option<u32>,
    pub max_daily_runs: Option<u32>,
    #[serde(deserialize_with = "servo_mesh::config::duration")]
    pub max_run_duration: Duration,
    pub max_tasks_per_run: Option<u32>,
    pub max_backfill_concurrency: Option<u32>,
    pub weight_millis: u32,
    pub backfill_floor_ppm: u32,
    pub backfill_cap_ppm: u32,
    pub max_calls_per_minute: Option<u32>,
}

impl Default for Defaults {
    fn default() -> Defaults {
        Defaults {
            max_concurrent_tasks: None,
            max_concurrent_runs: None,
            max_queued_runs: Some(1_000),
            max_queued_tasks: Some(1_000),
            max_daily_runs: None,
            max_run_duration: Duration::from_secs(24 * 3600),
            max_tasks_per_run: None,
            max_backfill_concurrency: Some(5),
            weight_millis: 1_000,
            backfill_floor_ppm: 100_000,
            backfill_cap_ppm: 500_000,
            max_calls_per_minute: None,
        }
    }
}

impl Defaults {
    pub(crate) fn limits(&self) -> QuotaLimits {
        let seconds = i64::try_from(self.max_run_duration.as_secs()).unwrap_or(i64::MAX);
        QuotaLimits {
            max_concurrent_tasks: self.max_concurrent_tasks,
            max_concurrent_runs: self.max_concurrent_runs,
            max_queued_runs: self.max_queued_runs,
            max_queued_tasks: self.max_queued_tasks,
            max_daily_runs: self.max_daily_runs,
            max_run_duration: Some(prost_types::Duration { seconds, nanos: 0 }),
            max_tasks_per_run: self.max_tasks_per_run,
            max_backfill_concurrency: self.max_backfill_concurrency,
            weight_millis: Some(self.weight_millis),
            backfill_floor_ppm: Some(self.backfill_floor_ppm),
            backfill_cap_ppm: Some(self.backfill_cap_ppm),
            max_calls_per_minute: self.max_calls_per_minute,
        }
    }
}
