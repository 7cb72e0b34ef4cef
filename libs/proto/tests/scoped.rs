//! Requests tell whom they speak about.

use servo_proto::Scoped;
use servo_proto::v1::{GetQuotaRequest, GetRunRequest, PauseDispatchRequest};

#[test]
fn a_workspace_request_names_both() {
    let request = GetRunRequest {
        tenant: "acme".into(),
        workspace: "prod".into(),
        ..Default::default()
    };
    assert_eq!((request.tenant(), request.workspace()), ("acme", "prod"));
}

#[test]
fn a_tenant_request_has_no_workspace() {
    let request = GetQuotaRequest {
        tenant: "acme".into(),
    };
    assert_eq!((request.tenant(), request.workspace()), ("acme", ""));
}

// The workspace it pauses is what it asks for, not where it is asked.
#[test]
fn a_workspace_that_stands_elsewhere_is_no_scope() {
    let request = PauseDispatchRequest {
        tenant: "acme".into(),
        workspace: "prod".into(),
        ..Default::default()
    };
    assert_eq!(request.workspace(), "");
}
