//! Parses ids and scopes of requests.

use servo_mesh::{Error, Reason};
use servo_model::DeploymentId;
use servo_model::ids::IdError;
use servo_model::plan::PlanId;
use servo_proto::Scoped;
use servo_service::request;
pub(crate) use servo_service::request::required_request_id as check_request_id;

use crate::store::Scope;

/// The id that names the current deployment.
const CURRENT: &str = "current";

/// Returns the tenant and workspace of a request.
pub(crate) fn scope(request: &impl Scoped) -> Result<Scope, Error> {
    parse_scope(request.tenant(), request.workspace())
}

pub(crate) fn parse_scope(tenant: &str, workspace: &str) -> Result<Scope, Error> {
    Ok(Scope {
        tenant: request::tenant(tenant)?,
        workspace: request::workspace(workspace)?,
    })
}

/// Returns `None` for the current deployment. A malformed id is reported as not found.
pub(crate) fn parse_deployment_id(text: &str) -> Result<Option<DeploymentId>, Error> {
    if text.is_empty() || text == CURRENT {
        return Ok(None);
    }
    let parsed = text.parse().map(Some);
    parsed.map_err(|error: IdError| Error::new(Reason::DeploymentNotFound, error.to_string()))
}

pub(crate) fn parse_plan_id(text: &str) -> Result<PlanId, Error> {
    text.parse()
        .map_err(|error: IdError| Error::new(Reason::PlanNotFound, error.to_string()))
}

pub(crate) fn plan_not_found(plan_id: &str) -> Error {
    let shown = &plan_id[..plan_id.floor_char_boundary(64)];
    Error::new(
        Reason::PlanNotFound,
        format!("there is no plan {shown} in this workspace"),
    )
}
