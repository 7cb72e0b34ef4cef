//! WhoAmI: the caller about itself.

use std::sync::Arc;

use servo_mesh::{Error, Reason};
use servo_model::{Grants, Role, WorkspaceScope};
use servo_proto::v1 as pb;
use tonic::Extensions;

use crate::core::api_keys::{Principal, PrincipalKind};

pub(super) fn who_am_i(extensions: &Extensions) -> Result<pb::WhoAmIResponse, Error> {
    let missing = || Error::new(Reason::Internal, "the request has no principal");
    let principal = extensions.get::<Arc<Principal>>().ok_or_else(missing)?;
    let (platform_operator, grants) = match &principal.kind {
        PrincipalKind::PlatformOperator => (true, Vec::new()),
        PrincipalKind::Member {
            tenant,
            workspaces,
            roles,
        } => (false, vec![grant(tenant.as_str(), workspaces, roles)]),
    };
    Ok(pb::WhoAmIResponse {
        principal: principal.id.clone(),
        platform_operator,
        grants,
        expire_time: None,
    })
}

fn grant(tenant: &str, workspaces: &WorkspaceScope, roles: &[Role]) -> pb::Grant {
    let permissions = Grants::of_roles(roles).iter();
    pb::Grant {
        tenant: tenant.to_owned(),
        workspaces: workspaces
            .to_string()
            .split(',')
            .map(str::to_owned)
            .collect(),
        roles: roles.iter().map(|role| role.to_string()).collect(),
        permissions: permissions
            .map(|permission| permission.to_string())
            .collect(),
    }
}
