//! Calls to other services: which are retried, which are not, and reconnecting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use servo_mesh::{Error, Handler, Reason};
use servo_model::Service;
use tonic::{Code, Status};

use crate::support::{
    MAKE_PLANS, World, code_of, from_ada, handler, mesh_of, ok, request, serve, status_of,
};

/// Fails the first `failures` calls with `reason` and counts all of them.
fn failing(failures: usize, reason: Reason) -> (Handler, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let answer = handler(move |_| {
        let fails = count.fetch_add(1, Ordering::Relaxed) < failures;
        let failed = || Status::from(Error::new(reason, "not now")).into_http();
        std::future::ready(if fails { failed() } else { ok() })
    });
    (answer, calls)
}

async fn check(
    path: &str,
    failures: usize,
    reason: Reason,
    max_retries: u32,
    expected: (Code, usize),
) {
    let world = World::new();
    let (answer, calls) = failing(failures, reason);
    let running = serve(&world.mesh(Service::Dispatcher), answer).await;
    let gateway = mesh_of(
        Service::Gateway,
        &world
            .sources(Service::Gateway)
            .set("peers.max_retries", max_retries),
    );
    let peer = gateway
        .peer_at(Service::Dispatcher, &format!("https://{}", running.address))
        .unwrap();
    let code = code_of(peer, from_ada(path)).await;
    assert_eq!(
        (code, calls.load(Ordering::Relaxed)),
        expected,
        "{path}, {failures} x {reason:?}"
    );
}

const IDEMPOTENT: &str = "/servo.v1.SchedulerService/GetRun";
/// A client stream cannot be sent twice.
const STREAM: &str = "/servo.v1.DispatcherService/PullTasks";

#[tokio::test(flavor = "multi_thread")]
async fn idempotent_calls_are_retried_when_unavailable_up_to_the_maximum() {
    let unavailable = Reason::DependencyUnavailable;
    check(IDEMPOTENT, 0, unavailable, 3, (Code::Ok, 1)).await;
    check(IDEMPOTENT, 2, unavailable, 3, (Code::Ok, 3)).await;
    check(IDEMPOTENT, 9, unavailable, 3, (Code::Unavailable, 4)).await;
    check(IDEMPOTENT, 9, unavailable, 0, (Code::Unavailable, 1)).await;
    check(IDEMPOTENT, 9, Reason::Internal, 3, (Code::Internal, 1)).await;
    check(
        IDEMPOTENT,
        9,
        Reason::Overloaded,
        3,
        (Code::ResourceExhausted, 1),
    )
    .await;
    check(STREAM, 9, unavailable, 3, (Code::Unavailable, 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_stop_when_the_budget_is_spent() {
    let world = World::new();
    let (answer, calls) = failing(usize::MAX, Reason::DependencyUnavailable);
    let running = serve(&world.mesh(Service::Scheduler), answer).await;
    let peer = world.peer(Service::Gateway, Service::Scheduler, running.address);
    let calls_made = 200;
    let all = (0..calls_made).map(|_| code_of(peer.clone(), from_ada(IDEMPOTENT)));
    let codes = futures::future::join_all(all).await;
    assert!(codes.iter().all(|code| *code == Code::Unavailable));
    // Without a budget there would be four calls for each one. The budget allows the reserve of 5
    // per second for 10 s and a fifth of the calls of the window.
    let sent = calls.load(Ordering::Relaxed);
    assert!(
        sent > calls_made && sent <= calls_made + 50 + calls_made / 5,
        "{sent} calls were sent for {calls_made}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn peer_reconnects_after_an_outage() {
    let world = World::new();
    let first = serve(&world.mesh(Service::Planner), handler(|_| async { ok() })).await;
    let address = first.address;
    let peer = world.peer(Service::Scheduler, Service::Planner, address);
    assert_eq!(code_of(peer.clone(), request(MAKE_PLANS)).await, Code::Ok);
    first.shutdown.drain();
    first.ended().await;
    let status = status_of(peer.clone(), request(MAKE_PLANS)).await;
    assert_eq!(status.code(), Code::Unavailable);
    assert!(
        status
            .message()
            .contains("cannot be reached: Connection refused"),
        "{status}"
    );
    let sources = world
        .sources(Service::Planner)
        .set("server.listen", address);
    let second = serve(
        &mesh_of(Service::Planner, &sources),
        handler(|_| async { ok() }),
    )
    .await;
    assert_eq!(code_of(peer, request(MAKE_PLANS)).await, Code::Ok);
    drop(second);
}

#[test]
fn invalid_address_is_refused() {
    let world = World::new();
    let mesh = world.mesh(Service::Scheduler);
    for wrong in [
        "",
        "planner:7411",
        "http://planner:7411",
        "https://planner",
        "https://planner:7411/path",
    ] {
        let Err(error) = mesh.peer_at(Service::Planner, wrong) else {
            panic!("{wrong} was accepted")
        };
        assert_eq!(error.reason(), Reason::InvalidField);
    }
}
