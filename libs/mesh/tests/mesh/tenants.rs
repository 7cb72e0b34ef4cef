//! Caller metadata: only the gateway is trusted, and only for its caller's own tenant.

use servo_local::Issue;
use servo_mesh::{Caller, PeerIdentity, Reason, error};
use servo_model::{Grants, Role, Service, WorkspaceScope};
use tonic::metadata::MetadataMap;
use tonic::{Code, Extensions};
use tower::ServiceExt;

use crate::support::{
    MAKE_PLANS, World, accept_all, handler, ok, request_with, scoped, serve, set_metadata,
    status_of,
};

const GET_RUN: &str = "/servo.v1.SchedulerService/GetRun";
const REGISTER_WORKER: &str = "/servo.v1.DispatcherService/RegisterWorker";
const CALLER_METADATA: [(&str, &str); 5] = [
    ("servo-tenant", "acme"),
    ("servo-workspaces", "prod"),
    ("servo-principal", "ada"),
    ("servo-grants", "runs.read,work.pull"),
    ("servo-request-id", "r-1"),
];

/// Serves a handler that responds with the caller it received and the remaining caller metadata.
async fn caller_seen(world: &World, client: &str, path: &str) -> (String, usize) {
    let echo_caller = handler(|request: http::Request<tonic::body::Body>| async move {
        let (parts, _) = request.into_parts();
        let caller = parts.extensions.get::<Caller>().cloned().unwrap();
        let metadata = parts
            .headers
            .keys()
            .filter(|name| CALLER_METADATA.iter().any(|(metadata, _)| metadata == name))
            .count();
        let mut response = ok();
        let Caller {
            peer,
            tenant,
            workspaces,
            principal,
            grants,
            request_id,
        } = caller;
        let tenant = tenant.map(|tenant| tenant.to_string()).unwrap_or_default();
        let seen = format!("{peer}|{tenant}|{workspaces}|{principal}|{grants}|{request_id}");
        response.headers_mut().insert("seen", seen.parse().unwrap());
        response.headers_mut().insert("metadata", metadata.into());
        response
    });
    let running = serve(&world.mesh(Service::Scheduler), echo_caller).await;
    let mut request = request_with(path, &scoped("acme", "prod"));
    set_metadata(&mut request, &CALLER_METADATA);
    let response = world
        .raw_client(Some(client), running.address)
        .oneshot(request)
        .await
        .unwrap();
    let header = |name| {
        response
            .headers()
            .get(name)
            .unwrap_or_else(|| panic!("{response:?}"))
            .to_str()
            .unwrap()
    };
    (
        header("seen").to_owned(),
        header("metadata").parse().unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_gateways_caller_metadata_is_trusted() {
    let world = World::new();
    for service in [Service::Gateway, Service::Scheduler] {
        world.mesh(service);
    }
    world.issue("worker", &Issue::identity("spiffe://servo/worker/acme"));
    let seen = caller_seen(&world, "gateway", GET_RUN).await;
    assert_eq!(
        seen,
        (
            "spiffe://servo/gateway|acme|prod|ada|runs.read,work.pull|r-1".into(),
            0
        )
    );
    let seen = caller_seen(&world, "scheduler", MAKE_PLANS).await;
    assert_eq!(seen, ("spiffe://servo/scheduler||-|||".into(), 0));
    let seen = caller_seen(&world, "worker", REGISTER_WORKER).await;
    assert_eq!(
        seen,
        (
            "spiffe://servo/worker/acme|acme|-|spiffe://servo/worker/acme|self.read,work.pull,work.report|"
                .into(),
            0
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn request_about_another_tenant_is_refused_without_revealing_it() {
    let world = World::new();
    let running = serve(&world.mesh(Service::Scheduler), accept_all()).await;
    let gateway = world.peer(Service::Gateway, Service::Scheduler, running.address);
    let send = async |metadata: &[(&'static str, &str)], tenant: &str, workspace: &str| {
        let mut request = request_with(GET_RUN, &scoped(tenant, workspace));
        set_metadata(&mut request, metadata);
        let status = status_of(gateway.clone(), request).await;
        (
            status.code(),
            error::reason_of(&status),
            status.message().to_owned(),
        )
    };
    let fine = (Code::Ok, None, String::new());
    let denied = |reason, message: &str| (Code::PermissionDenied, Some(reason), message.to_owned());
    let everywhere = [
        CALLER_METADATA[0],
        ("servo-workspaces", "-"),
        CALLER_METADATA[2],
        CALLER_METADATA[3],
    ];
    assert_eq!(send(&CALLER_METADATA, "acme", "prod").await, fine);
    assert_eq!(send(&everywhere, "acme", "prod").await, fine);
    assert_eq!(
        send(&CALLER_METADATA, "evil", "prod").await,
        denied(
            Reason::TenantMismatch,
            "tenant `evil` does not exist or is not open to this caller"
        )
    );
    assert_eq!(
        send(&CALLER_METADATA, "acme", "test").await,
        denied(
            Reason::WorkspaceMismatch,
            "workspace `test` does not exist or is not open to this caller"
        )
    );
    assert_eq!(
        send(&CALLER_METADATA[1..4], "acme", "prod").await.1,
        Some(Reason::TenantMismatch),
        "a principal of no tenant"
    );
    assert_eq!(
        send(&CALLER_METADATA[..1], "acme", "prod").await.1,
        Some(Reason::CallerNotAllowed),
        "a tenant without a principal"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_names_are_refused_by_field() {
    let world = World::new();
    let running = serve(&world.mesh(Service::Scheduler), accept_all()).await;
    let gateway = world.peer(Service::Gateway, Service::Scheduler, running.address);
    let long = "w".repeat(100_000);
    for (tenant, workspace, field) in [
        ("", "prod", "tenant"),
        ("acme", "", "workspace"),
        ("acme", "-", "workspace"),
        ("acme", long.as_str(), "workspace"),
    ] {
        let mut request = request_with(GET_RUN, &scoped(tenant, workspace));
        set_metadata(&mut request, &CALLER_METADATA);
        let status = status_of(gateway.clone(), request).await;
        assert_eq!(error::reason_of(&status), Some(Reason::InvalidField));
        assert!(
            status.message().starts_with(&format!("{field}: ")),
            "{status}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn permission_is_decided_before_the_handler() {
    let world = World::new();
    let running = serve(&world.mesh(Service::Scheduler), accept_all()).await;
    let gateway = world.peer(Service::Gateway, Service::Scheduler, running.address);
    for (grants, expected) in [
        ("runs.read", None),
        ("runs.cancel,logs.read", Some(Reason::PermissionDenied)),
        ("", Some(Reason::PermissionDenied)),
        ("*", Some(Reason::PermissionDenied)),
    ] {
        let mut request = request_with(GET_RUN, &scoped("acme", "prod"));
        set_metadata(&mut request, &CALLER_METADATA);
        set_metadata(&mut request, &[("servo-grants", grants)]);
        let status = status_of(gateway.clone(), request).await;
        assert_eq!(error::reason_of(&status), expected, "{grants}: {status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn confined_principal_may_call_only_methods_that_check_workspaces() {
    let world = World::new();
    let running = serve(&world.mesh(Service::Dispatcher), accept_all()).await;
    let gateway = world.peer(Service::Gateway, Service::Dispatcher, running.address);
    let quota = serve(&world.mesh(Service::Quota), accept_all()).await;
    let quota = world.peer(Service::Gateway, Service::Quota, quota.address);
    let grants = Grants::of_role(Role::Admin).to_string();
    let send = async |peer: servo_mesh::Peer, path: &str| {
        let mut request = request_with(path, &scoped("acme", ""));
        set_metadata(&mut request, &CALLER_METADATA);
        set_metadata(&mut request, &[("servo-grants", &grants)]);
        error::reason_of(&status_of(peer, request).await)
    };
    assert_eq!(
        send(gateway, "/servo.v1.DispatcherService/ListWorkers").await,
        None
    );
    assert_eq!(
        send(quota, "/servo.v1.QuotaService/ListPools").await,
        Some(Reason::WorkspaceMismatch)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_accesses_its_own_tenant_only() {
    let world = World::new();
    let running = serve(&world.mesh(Service::Dispatcher), accept_all()).await;
    world.issue("worker", &Issue::identity("spiffe://servo/worker/acme"));
    for (tenant, expected) in [("acme", None), ("evil", Some(Reason::TenantMismatch))] {
        let mut request = request_with(REGISTER_WORKER, &scoped(tenant, ""));
        set_metadata(
            &mut request,
            &[("servo-tenant", tenant), ("servo-principal", "ada")],
        );
        let status = status_of(world.raw_client(Some("worker"), running.address), request).await;
        assert_eq!(error::reason_of(&status), expected, "{status}");
    }
}

#[test]
fn caller_metadata_survives_a_round_trip() {
    let caller = Caller {
        peer: PeerIdentity::Service(Service::Gateway),
        tenant: Some("acme".parse().unwrap()),
        workspaces: WorkspaceScope::All,
        principal: "key:1".into(),
        grants: Grants::of_role(Role::Worker),
        request_id: "r-2".into(),
    };
    let mut metadata = MetadataMap::new();
    metadata.insert("servo-tenant", "forged".parse().unwrap());
    metadata.insert("other", "stays".parse().unwrap());
    caller.apply(&mut metadata).unwrap();
    let headers = metadata.into_headers();
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    assert_eq!(
        (text("servo-tenant"), text("servo-principal"), text("other")),
        ("acme".into(), "key:1".into(), "stays".into())
    );
    let unsendable = Caller {
        principal: "a\nb".into(),
        ..caller
    };
    assert_eq!(
        unsendable
            .apply(&mut MetadataMap::new())
            .unwrap_err()
            .reason(),
        Reason::InvalidField
    );
    assert!(
        Caller::of(&Extensions::new()).is_err(),
        "a request that did not pass the server has no caller"
    );
}
