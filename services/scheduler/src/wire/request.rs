//! Conversion of run requests.

use std::sync::Arc;

use servo_model::request::RequestFingerprint;
use servo_model::{RunId, TenantId, Timestamp};
use servo_proto::v1 as pb;
use servo_proto::v1::trigger::Source;

use crate::core::{RunHeader, TriggerType};

#[derive(Debug, thiserror::Error)]
#[error("{field}: {fault}")]
pub(crate) struct BadRequest {
    pub field: &'static str,
    pub fault: String,
}

impl BadRequest {
    pub(super) fn new(field: &'static str, fault: impl ToString) -> BadRequest {
        BadRequest {
            field,
            fault: fault.to_string(),
        }
    }
}

/// The header of a run, from its RunRequested.
pub(crate) fn header(
    tenant: &TenantId,
    workspace: &str,
    number: i64,
    requested: &pb::RunRequested,
    trace: Option<&pb::TraceContext>,
    at: Timestamp,
) -> Result<RunHeader, BadRequest> {
    let fingerprint = fingerprint(requested)?;
    let source = requested
        .trigger
        .as_ref()
        .and_then(|trigger| trigger.source.as_ref());
    Ok(RunHeader {
        run_id: requested
            .run_id
            .parse::<RunId>()
            .map_err(|e| BadRequest::new("run_id", e))?,
        number,
        tenant: tenant.clone(),
        workspace: workspace
            .parse()
            .map_err(|e| BadRequest::new("workspace", e))?,
        fingerprint: *fingerprint.digest().as_bytes(),
        created_at: at,
        deadline: requested
            .max_duration
            .as_ref()
            .map(|duration| at.plus_us(micros(duration))),
        priority: requested.spec.as_ref().map_or(0, |spec| spec.priority),
        backfill: matches!(source, Some(Source::Backfill(_))),
        trigger: trigger_type(requested.trigger.as_ref()),
        traceparent: Arc::from(trace.map_or("", |trace| trace.traceparent.as_str())),
    })
}

pub(crate) fn trigger_type(trigger: Option<&pb::Trigger>) -> TriggerType {
    match trigger.and_then(|trigger| trigger.source.as_ref()) {
        Some(Source::Schedule(_)) => TriggerType::Schedule,
        Some(Source::Sensor(_)) => TriggerType::Sensor,
        Some(Source::Backfill(_)) => TriggerType::Backfill,
        Some(Source::Condition(_)) => TriggerType::Condition,
        Some(Source::Manual(_)) | None => TriggerType::Manual,
    }
}

/// The fingerprint of the request.
pub(crate) fn fingerprint(requested: &pb::RunRequested) -> Result<RequestFingerprint, BadRequest> {
    requested
        .request_fingerprint
        .parse()
        .map_err(|e| BadRequest::new("request_fingerprint", e))
}

/// The call that requested the run, unless another service did.
pub(crate) fn manual_trigger(requested: &pb::RunRequested) -> Option<&pb::ManualTrigger> {
    match requested.trigger.as_ref()?.source.as_ref()? {
        pb::trigger::Source::Manual(manual) => Some(manual),
        _ => None,
    }
}

/// The request id that is stored in the run's row.
pub(crate) fn stored_request_id(requested: &pb::RunRequested) -> Option<String> {
    let manual = manual_trigger(requested)?;
    (!manual.request_id.is_empty()).then(|| manual.request_id.clone())
}

/// A duration in microseconds, saturated.
pub(crate) fn micros(duration: &prost_types::Duration) -> i64 {
    duration
        .seconds
        .saturating_mul(1_000_000)
        .saturating_add(i64::from(duration.nanos) / 1_000)
}

pub(crate) fn duration(micros: i64) -> prost_types::Duration {
    let nanos = i32::try_from(micros.rem_euclid(1_000_000)).unwrap_or(0) * 1_000;
    prost_types::Duration {
        seconds: micros.div_euclid(1_000_000),
        nanos,
    }
}
