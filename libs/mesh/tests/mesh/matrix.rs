//! Who reaches what: every pair of services, every method of the API, against the rules in the descriptors.

use servo_local::Issue;
use servo_mesh::Reason;
use servo_mesh::error::reason_of;
use servo_model::Service;
use servo_proto::access::{self, Access, Method};
use tonic::Code;

use crate::support::{Running, World, request, serve, status_of, yes};

async fn serve_all(world: &World) -> Vec<(Service, Running)> {
    let mut running = Vec::new();
    for service in Service::ALL {
        running.push((service, serve(&world.mesh(service), yes()).await));
    }
    running
}

/// A request to `method` that lacks nothing but, perhaps, the right.
fn complete(method: &Method) -> http::Request<tonic::body::Body> {
    let mut request = request(&method.path);
    let said = [("servo-principal", "ada"), ("servo-presigned", "v1")];
    for (name, value) in said {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

/// What the rule says about a service of the mesh.
fn may(caller: Service, access: &Access) -> bool {
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

fn check(caller: Service, server: Service, method: &Method, status: &tonic::Status) {
    let path = &method.path;
    // An admitted call may still be refused for the tenant it did not name: it got through this exposure.
    let reached = matches!(reason_of(status), None | Some(Reason::TenantMismatch));
    assert_eq!(
        reached,
        may(caller, &method.access),
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
async fn workers_reach_what_is_for_workers_and_strangers_reach_nothing() {
    let world = World::new();
    let callback = serve(&world.mesh(Service::Callback), yes()).await;
    world.issue("worker", &Issue::identity("spiffe://servo/worker/acme"));
    world.issue("mallory", &Issue::identity("spiffe://servo/mallory"));
    world.issue("nameless", &Issue::nameless());
    for method in access::methods() {
        let for_workers = match &method.access {
            Access::Permission(permission) => permission.starts_with("work."),
            Access::AttemptSignature | Access::Open => true,
            Access::Callers(_) => false,
        };
        for (name, may) in [
            ("worker", for_workers),
            ("mallory", false),
            ("nameless", false),
        ] {
            let status = status_of(
                world.stranger(Some(name), callback.address),
                complete(method),
            )
            .await;
            let reached = matches!(reason_of(&status), None | Some(Reason::TenantMismatch));
            assert_eq!(reached, may, "{name} calls {}: {status}", method.path);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_nobody_knows_is_unimplemented() {
    let world = World::new();
    let quota = serve(&world.mesh(Service::Quota), yes()).await;
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
async fn a_worker_without_its_attempts_signature_is_refused() {
    let signed = access::methods()
        .iter()
        .filter(|method| method.access == Access::AttemptSignature);
    let world = World::new();
    let callback = serve(&world.mesh(Service::Callback), yes()).await;
    world.issue("worker", &Issue::identity("spiffe://servo/worker/acme"));
    let gateway = world.peer(Service::Gateway, Service::Callback, callback.address);
    for method in signed {
        let status = status_of(
            world.stranger(Some("worker"), callback.address),
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
