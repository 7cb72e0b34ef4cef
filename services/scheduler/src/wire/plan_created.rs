//! The event that gives a run its plan.

use servo_model::request::RequestFingerprint;
use servo_model::{Digest, RunId};
use servo_proto::v1 as pb;

use crate::core::Plan;

pub(crate) fn plan_created(
    run_id: &RunId,
    fingerprint: &RequestFingerprint,
    plan: &Plan,
    plan_fingerprint: &str,
) -> pb::PlanCreated {
    pb::PlanCreated {
        run_id: run_id.to_string(),
        request_fingerprint: fingerprint.to_string(),
        plan_id: Digest::from_bytes(plan.plan_id).to_string(),
        plan_fingerprint: plan_fingerprint.to_owned(),
        deployment_id: plan.deployment_id.to_string(),
        task_count: u32::try_from(plan.tasks.len()).unwrap_or(u32::MAX),
    }
}
