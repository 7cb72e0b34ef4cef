//! The settings of an asset in a plan: the manifest's values with every default filled in.

use std::collections::BTreeSet;

use prost_types::Duration;
use servo_model::limits::{CONFIG_BYTES_MAX, DISPATCH_ACK_TIMEOUT, HEARTBEAT_TIMEOUT};
use servo_model::plan;
use servo_model::retry::{Backoff, ErrorCategory, RetryPolicy};
use servo_proto::v1 as pb;
use servo_proto::v1::{AssetDefinition, Manifest, PlannedAsset};

use super::json_keys::JsonWithUniqueKeys;

const EXECUTION_TIMEOUT: Duration = Duration {
    seconds: 3600,
    nanos: 0,
};

/// Returns the asset's settings for plans; `also` are the further assets that its task makes.
pub(crate) fn planned(
    asset: &AssetDefinition,
    manifest: &Manifest,
    also: Vec<String>,
) -> PlannedAsset {
    PlannedAsset {
        asset_key: asset.key.clone(),
        code: code(asset, manifest),
        config_json: asset.config_json.clone(),
        resources: Some(asset.resources.clone().unwrap_or_default()),
        timeouts: Some(timeouts(asset.timeouts.unwrap_or_default())),
        retry: Some(retry(asset.retry.clone().unwrap_or_default())),
        pool: asset.pool.clone(),
        priority: asset.priority,
        checks: asset.checks.clone(),
        quarantine: asset.quarantine,
        secrets: asset.secrets.clone(),
        also_makes: also,
        code_version: code_version(asset, manifest),
        isolated: asset.isolated,
    }
}

/// Returns the version whose change makes an asset's data stale: its own, or that of the code it
/// comes from.
pub(crate) fn code_version(asset: &AssetDefinition, manifest: &Manifest) -> String {
    let own = Some(&asset.code_version);
    let packaged = asset.code.as_ref().map(|code| &code.artifact_digest);
    let shared = manifest.artifact.as_ref().map(|artifact| &artifact.digest);
    let versions = [own, packaged, shared, Some(&manifest.code_version)];
    versions
        .into_iter()
        .flatten()
        .find(|version| !version.is_empty())
        .cloned()
        .unwrap_or_default()
}

/// Accepts any JSON of bounded size, or an empty text.
pub(crate) fn check_config(text: &str) -> Result<(), String> {
    if text.len() > CONFIG_BYTES_MAX {
        return Err(format!(
            "has {} bytes; at most {CONFIG_BYTES_MAX} are allowed",
            text.len()
        ));
    }
    if text.is_empty() {
        return Ok(());
    }
    serde_json::from_str::<JsonWithUniqueKeys>(text)
        .map(drop)
        .map_err(|error| format!("is no JSON: {error}"))
}

/// Returns the configuration of a handler; empty for a function.
pub(crate) fn handler_config(asset: &AssetDefinition) -> &str {
    match asset.code.as_ref().and_then(|code| code.target.as_ref()) {
        Some(pb::code_ref::Target::Handler(handler)) => &handler.config_json,
        _ => "",
    }
}

/// Returns the resources in the form that the model uses.
pub(crate) fn resources(planned: &PlannedAsset) -> plan::Resources {
    let resources = planned.resources.clone().unwrap_or_default();
    let execution = planned
        .timeouts
        .and_then(|timeouts| timeouts.execution)
        .unwrap_or(EXECUTION_TIMEOUT);
    plan::Resources {
        cpu_millicores: resources.cpu_millicores,
        memory_bytes: resources.memory_bytes,
        timeout_ms: millis(execution),
    }
}

pub(crate) fn retry_policy(planned: &PlannedAsset) -> RetryPolicy {
    let retry = planned.retry.clone().unwrap_or_default();
    let category = |number: &i32| {
        i16::try_from(*number)
            .ok()
            .and_then(ErrorCategory::from_code)
    };
    let categories: BTreeSet<ErrorCategory> = retry
        .retry_on_categories
        .iter()
        .filter_map(category)
        .collect();
    RetryPolicy {
        backoff: i16::try_from(retry.backoff)
            .ok()
            .and_then(Backoff::from_code)
            .unwrap_or(Backoff::Exponential),
        initial_delay_ms: retry.initial_delay.map_or(0, millis),
        max_attempts: retry.max_attempts,
        max_delay_ms: retry.max_delay.map_or(0, millis),
        retry_on: categories,
    }
}

fn code(asset: &AssetDefinition, manifest: &Manifest) -> Option<pb::CodeRef> {
    let mut code = asset.code.clone()?;
    if code.artifact_digest.is_empty()
        && matches!(code.target, Some(pb::code_ref::Target::EntryPoint(_)))
    {
        code.artifact_digest = manifest
            .artifact
            .as_ref()
            .map(|a| a.digest.clone())
            .unwrap_or_default();
    }
    Some(code)
}

fn timeouts(declared: pb::Timeouts) -> pb::Timeouts {
    pb::Timeouts {
        execution: declared.execution.or(Some(EXECUTION_TIMEOUT)),
        dispatch_ack: declared
            .dispatch_ack
            .or_else(|| Some(whole_seconds(DISPATCH_ACK_TIMEOUT))),
        heartbeat: declared
            .heartbeat
            .or_else(|| Some(whole_seconds(HEARTBEAT_TIMEOUT))),
    }
}

fn retry(mut policy: pb::RetryPolicy) -> pb::RetryPolicy {
    let defaults = RetryPolicy::default();
    if policy.max_attempts == 0 {
        policy.max_attempts = defaults.max_attempts;
    }
    if policy.backoff == 0 {
        policy.backoff = defaults.backoff.code().into();
    }
    if policy.retry_on_categories.is_empty() {
        policy.retry_on_categories = defaults
            .retry_on
            .iter()
            .map(|category| category.code().into())
            .collect();
    }
    policy.initial_delay = policy
        .initial_delay
        .or_else(|| Some(from_millis(defaults.initial_delay_ms)));
    policy.max_delay = policy
        .max_delay
        .or_else(|| Some(from_millis(defaults.max_delay_ms)));
    policy
}

fn millis(duration: Duration) -> u64 {
    let seconds = u64::try_from(duration.seconds).unwrap_or(0);
    seconds.saturating_mul(1000) + u64::try_from(duration.nanos / 1_000_000).unwrap_or(0)
}

fn from_millis(millis: u64) -> Duration {
    let seconds = i64::try_from(millis / 1000).unwrap_or(i64::MAX);
    Duration {
        seconds,
        nanos: i32::try_from(millis % 1000).unwrap_or(0) * 1_000_000,
    }
}

fn whole_seconds(duration: std::time::Duration) -> Duration {
    Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: 0,
    }
}
