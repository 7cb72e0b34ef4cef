//! `servo.v1.AccessService`: tenants, workspaces, API keys and roles.

use servo_proto::v1::access_service_server::AccessService;

/// Methods that are not implemented answer UNIMPLEMENTED.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access;

#[tonic::async_trait]
impl AccessService for Access {}
