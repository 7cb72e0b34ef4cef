//! Requests expose their tenant and workspace.

use servo_proto::Scoped;
use servo_proto::v1::{GetQuotaRequest, GetRunRequest, PauseDispatchRequest};

#[test]
fn workspace_request_has_tenant_and_workspace() {
    let request = GetRunRequest {
        tenant: "acme".into(),
        workspace: "prod".into(),
        ..Default::default()
    };
    assert_eq!((request.tenant(), request.workspace()), ("acme", "prod"));
}

#[test]
fn tenant_request_has_no_workspace() {
    let request = GetQuotaRequest {
        tenant: "acme".into(),
    };
    assert_eq!((request.tenant(), request.workspace()), ("acme", ""));
}

// The workspace here is the one to pause, not the scope of the request.
#[test]
fn workspace_in_another_field_is_not_the_scope() {
    let request = PauseDispatchRequest {
        tenant: "acme".into(),
        workspace: "prod".into(),
        ..Default::default()
    };
    assert_eq!(request.workspace(), "");
}
