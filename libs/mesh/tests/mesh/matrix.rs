//! Access rules: every pair of services and every method of the API, against the rules in the
//! descriptors.

use servo_local::Issue;
use servo_mesh::Reason;
use servo_mesh::error::reason_of;
use servo_model::{Grants, Role, Service};
use servo_proto::access::{self, Access, Method};
use tonic::Code;

use crate::support::{Running, World, accept_all, request, serve, status_of};

async fn serve_all(world: &World) -> Vec<(Service, Running)> {
    let mut running = Vec::new();
    for service in Service::ALL {
        running.push((service, serve(&world.mesh(service), accept_all()).await));
    }
    running
}

/// A complete request to `method`; only the permission may be missing.
fn complete(method: &Method) -> http::Request<tonic::body::Body> {
    let mut request = request(&method.path);
    let grants = Grants::platform().to_string();
    let metadata = [
        ("servo-principal", "ada"),
        ("servo-grants", &grants),
        ("servo-presigned", "v1"),
    ];
    for (name, value) in metadata {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

/// Whether the rule admits a service of the mesh.
fn is_admitted(caller: Service, access: &Access) -> bool {
    match access {
        Access::Callers(callers) => callers.contains(&caller),
        Access::Permission(_) | Access::AttemptSignature => caller == Service::Gateway,
        Access::Open => true,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_allowed_services_reach_a_method() {
    let world = World::new();
    let servers = serve_all(&world).await;
    let mut calls = 0;
    for caller in Service::ALL {
        let mesh = world.mesh(caller);
        for (server, running) in &servers {
            let peer = mesh
                .peer_at(*server, &format!("https://{}", running.address))
                .unwrap();
            for method in access::methods() {
                let status = status_of(peer.clone(), complete(method)).await;
                check(caller, *server, method, &status);
                calls += 1;
            }
        }
    }
    assert_eq!(calls, 81 * access::methods().len());
}

/// An admitted call may still be refused because it names no tenant; it has passed the access rule.
fn has_passed(status: &tonic::Status) -> bool {
    matches!(reason_of(status), None | Some(Reason::InvalidField))
}

fn check(caller: Service, server: Service, method: &Method, status: &tonic::Status) {
    let path = &method.path;
    let reached = has_passed(status);
    assert_eq!(
        reached,
        is_admitted(caller, &method.access),
        "{caller} calls {path} at {server}: {status}"
    );
    if !reached {
        assert_eq!(
            status.code(),
            Code::PermissionDenied,
            "{caller} calls {path} at {server}"
        );
        assert_eq!(reason_of(status), Some(Reason::CallerNotAllowed));
        assert!(
            status.message().contains(&caller.spiffe_id()),
            "{}",
            status.message()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_reach_only_worker_methods_and_unknown_identities_reach_none() {
    let world = World::new();
    let callback = serve(&world.mesh(Service::Callback), accept_all()).await;
    world.issue("worker", &Issue::identity("spiffe://servo/worker/acme"));
    world.issue("mallory", &Issue::identity("spiffe://servo/mallory"));
    world.issue("nameless", &Issue::without_identity());
    for method in access::methods() {
        let for_workers = match &method.access {
            Access::Permission(permission) => Grants::of_role(Role::Worker).contains(*permission),
            Access::AttemptSignature | Access::Open => true,
            Access::Callers(_) => false,
        };
        for (name, may) in [
            ("worker", for_workers),
            ("mallory", false),
            ("nameless", false),
        ] {
            let status = status_of(
                world.raw_client(Some(name), callback.address),
                complete(method),
            )
            .await;
            assert_eq!(
                has_passed(&status),
                may,
                "{name} calls {}: {status}",
                method.path
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_method_is_unimplemented() {
    let world = World::new();
    let quota = serve(&world.mesh(Service::Quota), accept_all()).await;
    let peer = world.peer(Service::Scheduler, Service::Quota, quota.address);
    for path in [
        "/servo.v1.QuotaService/Nothing",
        "/servo.v2.QuotaService/GetQuota",
        "/",
    ] {
        let status = status_of(peer.clone(), request(path)).await;
        assert_eq!(
            (status.code(), reason_of(&status)),
            (Code::Unimplemented, Some(Reason::NotImplemented)),
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_without_the_attempts_signature_is_refused() {
    let signed = access::methods()
        .iter()
        .filter(|method| method.access == Access::AttemptSignature);
    let world = World::new();
    let callback = serve(&world.mesh(Service::Callback), accept_all()).await;
    world.issue("worker", &Issue::identity("spiffe://servo/worker/acme"));
    let gateway = world.peer(Service::Gateway, Service::Callback, callback.address);
    for method in signed {
        let status = status_of(
            world.raw_client(Some("worker"), callback.address),
            request(&method.path),
        )
        .await;
        assert_eq!(
            reason_of(&status),
            Some(Reason::SignatureInvalid),
            "{status}"
        );
        let status = status_of(gateway.clone(), request(&method.path)).await;
        assert_eq!(
            reason_of(&status),
            Some(Reason::SignatureInvalid),
            "{status}"
        );
    }
}
