//! Conversion of stored plans.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use servo_model::limits::{DISPATCH_ACK_TIMEOUT, HEARTBEAT_TIMEOUT};
use servo_model::retry::{Backoff, ErrorCategory, RetryPolicy};
use servo_model::{Digest, TaskKey};
use servo_proto::v1 as pb;

use super::request::micros;
use crate::core::{AssetSettings, BadPlan, Plan, PlannedTask};

const EXECUTION_TIMEOUT: Duration = Duration::from_secs(3_600);

pub(crate) fn plan(plan: &pb::Plan) -> Result<Plan, BadPlan> {
    let plan_id: Digest = plan.plan_id.parse().map_err(|e| field("plan_id", e))?;
    let assets = plan.assets.iter().map(settings).collect::<Result<_, _>>()?;
    let mut partitions = Texts::default();
    let tasks = plan
        .tasks
        .iter()
        .map(|task| planned(task, &mut partitions))
        .collect::<Result<_, _>>()?;
    Plan::new(
        *plan_id.as_bytes(),
        plan.deployment_id.as_str().into(),
        assets,
        tasks,
    )
}

fn planned(task: &pb::PlannedTask, partitions: &mut Texts) -> Result<PlannedTask, BadPlan> {
    Ok(PlannedTask {
        key: task
            .task_key
            .parse::<TaskKey>()
            .map_err(|e| field("task_key", e))?,
        asset: task.asset,
        partition_key: partitions.share(&task.partition_key),
        upstream: task.upstream.as_slice().into(),
        mapped_over: task.mapped_over,
        up_to_date: task.up_to_date,
    })
}

fn settings(asset: &pb::PlannedAsset) -> Result<AssetSettings, BadPlan> {
    let timeouts = asset.timeouts.unwrap_or_default();
    let retry = asset.retry.clone().unwrap_or_default();
    Ok(AssetSettings {
        asset_key: asset.asset_key.as_str().into(),
        also_makes: asset
            .also_makes
            .iter()
            .map(|key| key.as_str().into())
            .collect(),
        retry: policy(&retry)?,
        retry_types: retry.retry_on_types,
        never_types: retry.never_on_types,
        execution_us: or_default(timeouts.execution, EXECUTION_TIMEOUT),
        dispatch_ack_us: or_default(timeouts.dispatch_ack, DISPATCH_ACK_TIMEOUT),
        heartbeat_us: or_default(timeouts.heartbeat, HEARTBEAT_TIMEOUT),
        pool: asset.pool.as_str().into(),
        priority: asset.priority,
        code_version: asset.code_version.as_str().into(),
    })
}

fn policy(retry: &pb::RetryPolicy) -> Result<RetryPolicy, BadPlan> {
    let default = RetryPolicy::default();
    let ms = |duration: Option<prost_types::Duration>, default: u64| {
        duration.map_or(default, |d| u64::try_from(micros(&d) / 1_000).unwrap_or(0))
    };
    let category = |code: &i32| {
        let known = i16::try_from(*code).ok().and_then(ErrorCategory::from_code);
        known.ok_or_else(|| {
            BadPlan::Field(format!(
                "retry_on_categories contains {code}, which is unknown to this version"
            ))
        })
    };
    let named: BTreeSet<ErrorCategory> = retry
        .retry_on_categories
        .iter()
        .map(category)
        .collect::<Result<_, _>>()?;
    Ok(RetryPolicy {
        backoff: match retry.backoff() {
            pb::Backoff::Unspecified | pb::Backoff::Exponential => Backoff::Exponential,
            pb::Backoff::Linear => Backoff::Linear,
            pb::Backoff::Constant => Backoff::Constant,
        },
        initial_delay_ms: ms(retry.initial_delay, default.initial_delay_ms),
        max_delay_ms: ms(retry.max_delay, default.max_delay_ms),
        max_attempts: if retry.max_attempts == 0 {
            default.max_attempts
        } else {
            retry.max_attempts
        },
        retry_on: if named.is_empty() {
            default.retry_on
        } else {
            named
        },
    })
}

fn or_default(given: Option<prost_types::Duration>, default: Duration) -> i64 {
    let given = given.map(|duration| micros(&duration)).filter(|us| *us > 0);
    given.unwrap_or_else(|| i64::try_from(default.as_micros()).unwrap_or(i64::MAX))
}

fn field(name: &str, fault: impl std::fmt::Display) -> BadPlan {
    BadPlan::Field(format!("{name}: {fault}"))
}

/// Shares equal partition keys, because ten thousand tasks have few distinct ones.
#[derive(Default)]
struct Texts(HashMap<String, Arc<str>>);

impl Texts {
    fn share(&mut self, text: &str) -> Arc<str> {
        match self.0.get(text) {
            Some(shared) => shared.clone(),
            None => self
                .0
                .entry(text.to_owned())
                .or_insert_with(|| text.into())
                .clone(),
        }
    }
}
