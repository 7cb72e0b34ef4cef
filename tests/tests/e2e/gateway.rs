//! The gateway as its clients see it, over TLS.

use servo_local::MeshInfo;
use servo_model::Service;
use servo_proto::mesh::v1::MakePlansRequest;
use servo_proto::mesh::v1::planner_mesh_service_client::PlannerMeshServiceClient;
use servo_proto::v1::scheduler_service_client::SchedulerServiceClient;
use servo_proto::v1::{GetRunRequest, WatchRunRequest};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;

use crate::support::Running;

/// A connection as a user would open it, with the CA and an address.
fn channel(mesh: &MeshInfo, service: Service) -> Channel {
    let ca = std::fs::read_to_string(mesh.ca_path()).unwrap();
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
    let address = mesh.address(service).replace("127.0.0.1", "localhost");
    Endpoint::from_shared(address)
        .unwrap()
        .tls_config(tls)
        .unwrap()
        .connect_lazy()
}

fn request<T>(message: T, key: Option<&str>) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(std::time::Duration::from_secs(10));
    if let Some(key) = key {
        request
            .metadata_mut()
            .insert("authorization", format!("Bearer {key}").parse().unwrap());
    }
    request
}

fn get_run(tenant: &str) -> GetRunRequest {
    GetRunRequest {
        tenant: tenant.into(),
        workspace: "default".into(),
        run_id: "run_aaaaaaaaaaaaaaaaaaaaaaaaaa".into(),
        ..GetRunRequest::default()
    }
}

#[track_caller]
fn check(status: &Status, code: Code, reason: &str) {
    assert_eq!(status.code(), code, "{status:?}");
    let info = status
        .get_details_error_info()
        .unwrap_or_else(|| panic!("no ErrorInfo: {status:?}"));
    assert_eq!(
        (info.domain.as_str(), info.reason.as_str()),
        ("servo", reason),
        "{status:?}"
    );
    assert!(!status.message().is_empty());
}

#[tokio::test]
async fn the_gateway_authenticates_and_forwards() {
    let running = Running::shared().await;
    let tenant = running.tenant();
    let mut runs = SchedulerServiceClient::new(channel(&running.mesh, Service::Gateway));
    let key = Some(running.mesh.api_key_of(tenant));

    let missing = runs
        .get_run(request(get_run(tenant), key))
        .await
        .unwrap_err();
    check(&missing, Code::NotFound, "RUN_NOT_FOUND");
    let anonymous = runs
        .get_run(request(get_run(tenant), None))
        .await
        .unwrap_err();
    check(&anonymous, Code::Unauthenticated, "CREDENTIALS_MISSING");
    let stranger = runs
        .get_run(request(get_run(tenant), Some("servo_guess")))
        .await
        .unwrap_err();
    check(&stranger, Code::Unauthenticated, "CREDENTIALS_INVALID");
    let foreign = runs
        .get_run(request(get_run("other"), key))
        .await
        .unwrap_err();
    check(&foreign, Code::PermissionDenied, "TENANT_MISMATCH");

    let watch = WatchRunRequest {
        tenant: tenant.into(),
        workspace: "default".into(),
        ..Default::default()
    };
    let stream = runs.watch_run(request(watch, key)).await.unwrap_err();
    check(&stream, Code::NotFound, "RUN_NOT_FOUND");

    let mut plans = PlannerMeshServiceClient::new(channel(&running.mesh, Service::Gateway));
    let internal = plans
        .make_plans(request(MakePlansRequest::default(), key))
        .await
        .unwrap_err();
    check(&internal, Code::PermissionDenied, "CALLER_NOT_ALLOWED");

    // Services behind the gateway refuse connections without a certificate.
    let mut direct = SchedulerServiceClient::new(channel(&running.mesh, Service::Scheduler));
    let refused = direct
        .get_run(request(get_run(tenant), key))
        .await
        .unwrap_err();
    assert!(
        matches!(refused.code(), Code::Unavailable | Code::Unknown),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_client_cannot_set_its_own_identity() {
    let running = Running::shared().await;
    let mut runs = SchedulerServiceClient::new(channel(&running.mesh, Service::Gateway));
    let mut forged = request(
        get_run("other"),
        Some(running.mesh.api_key_of(running.tenant())),
    );
    for (name, value) in [
        ("servo-tenant", "other"),
        ("servo-principal", "root"),
        ("servo-grants", "system.manage"),
        ("servo-workspaces", "-"),
    ] {
        forged.metadata_mut().insert(name, value.parse().unwrap());
    }
    check(
        &runs.get_run(forged).await.unwrap_err(),
        Code::PermissionDenied,
        "TENANT_MISMATCH",
    );
}
