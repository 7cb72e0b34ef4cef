//! Parses ids and scopes of requests.

use servo_mesh::{Error, Reason};
use servo_model::ids::IdError;
use servo_model::plan::PlanId;
use servo_model::{DeploymentId, TenantId, WorkspaceId};
use servo_proto::Scoped;

use crate::store::Scope;

/// The id that names the current deployment.
const CURRENT: &str = "current";
const REQUEST_ID_BYTES_MAX: usize = 128;

/// Returns the tenant and workspace of a request.
pub(crate) fn scope(request: &impl Scoped) -> Result<Scope, Error> {
    parse_scope(request.tenant(), request.workspace())
}

pub(crate) fn parse_scope(tenant: &str, workspace: &str) -> Result<Scope, Error> {
    let tenant: TenantId = tenant
        .parse()
        .map_err(|error: IdError| Error::bad_field("tenant", error.to_string()))?;
    let workspace: WorkspaceId = workspace
        .parse()
        .map_err(|error: IdError| Error::bad_field("workspace", error.to_string()))?;
    Ok(Scope {
        tenant: tenant.to_string(),
        workspace: workspace.to_string(),
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

pub(crate) fn check_request_id(request_id: &str) -> Result<(), Error> {
    match request_id.len() {
        0 => Err(Error::new(
            Reason::RequestIdRequired,
            "request_id is empty; choose one, so that a repeat is safe",
        )),
        1..=REQUEST_ID_BYTES_MAX if !request_id.contains('\0') => Ok(()),
        length => Err(Error::bad_field(
            "request_id",
            format!(
                "has {length} bytes or a NUL; 1 to {REQUEST_ID_BYTES_MAX} plain ones are allowed"
            ),
        )),
    }
}
