//! Deadlines: a call whose caller no longer waits is ended.

use std::time::Duration;

use http::Response;
use servo_mesh::{Reason, error, time_left};
use servo_model::Service;
use tokio::sync::mpsc;
use tonic::Code;
use tonic::body::Body;
use tower::ServiceExt;

use crate::support::{
    MAKE_PLANS, TEST_TIMEOUT, WATCH_RUN, World, accept_all, from_ada, handler, mesh_of, ok,
    request, serve, silent_stream, status_of, until,
};

const LEFT: &str = "time-left-ms";

/// Answers with the time left, as the handler sees it.
fn with_time_left() -> Response<Body> {
    let mut response = ok();
    let left = time_left().map_or(u64::MAX, |left| left.as_millis() as u64);
    response.headers_mut().insert(LEFT, left.into());
    response
}

fn left(response: &Response<Body>) -> Duration {
    Duration::from_millis(response.headers()[LEFT].to_str().unwrap().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn unary_call_without_a_deadline_is_refused() {
    let world = World::new();
    let running = serve(&world.mesh(Service::Planner), accept_all()).await;
    world.mesh(Service::Scheduler);
    world.mesh(Service::Gateway);
    let send = async |from, mut request: http::Request<Body>| {
        request.headers_mut().remove("grpc-timeout");
        status_of(world.raw_client(Some(from), running.address), request).await
    };
    let status = send("scheduler", request(MAKE_PLANS)).await;
    assert_eq!(
        (status.code(), error::reason_of(&status)),
        (Code::InvalidArgument, Some(Reason::DeadlineRequired))
    );
    assert_eq!(send("gateway", from_ada(WATCH_RUN)).await.code(), Code::Ok);
    assert_eq!(
        send("scheduler", request("/grpc.health.v1.Health/Check"))
            .await
            .code(),
        Code::Ok
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn deadline_is_capped_and_its_expiry_is_reported() {
    let world = World::new();
    let sources = world
        .sources(Service::Planner)
        .set("server.max_deadline", "20ms");
    let (dropped, mut was_dropped) = mpsc::unbounded_channel();
    let forever = handler(move |_| {
        let notify = NotifyOnDrop(dropped.clone());
        async move {
            let _notify = notify;
            std::future::pending().await
        }
    });
    let running = serve(&mesh_of(Service::Planner, &sources), forever).await;
    let peer = world.peer(Service::Scheduler, Service::Planner, running.address);
    let status = status_of(peer, request(MAKE_PLANS)).await;
    let reason = error::reason_of(&status);
    assert_eq!(
        (status.code(), reason),
        (Code::DeadlineExceeded, Some(Reason::DeadlineExceeded)),
        "{status}"
    );
    let stopped = tokio::time::timeout(TEST_TIMEOUT, was_dropped.recv())
        .await
        .expect("the handler was not dropped");
    assert_eq!(stopped, Some(()));
}

struct NotifyOnDrop(mpsc::UnboundedSender<()>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn peer_inherits_the_rest_of_the_deadline() {
    let world = World::new();
    let quota = serve(
        &world.mesh(Service::Dispatcher),
        handler(|_| async { with_time_left() }),
    )
    .await;
    let planner_mesh = world.mesh(Service::Dispatcher);
    let onward = planner_mesh
        .peer_at(Service::Dispatcher, &format!("https://{}", quota.address))
        .unwrap();
    let forwarding = handler(move |_| {
        let onward = onward.clone();
        async move {
            onward
                .oneshot(without_timeout(
                    "/servo.mesh.v1.DispatcherMeshService/ExplainAdmission",
                ))
                .await
                .unwrap()
        }
    });
    let planner = serve(&world.mesh(Service::Planner), forwarding).await;
    let peer = world.peer(Service::Scheduler, Service::Planner, planner.address);
    let mut request = request(MAKE_PLANS);
    request
        .headers_mut()
        .insert("grpc-timeout", "5S".parse().unwrap());
    let response = peer.oneshot(request).await.unwrap();
    // If the deadline were not inherited, it would be the ten seconds of peers.deadline.
    assert!(
        left(&response) <= Duration::from_secs(5),
        "{:?}",
        left(&response)
    );

    let outside = planner_mesh
        .peer_at(Service::Dispatcher, &format!("https://{}", quota.address))
        .unwrap();
    let response = outside
        .oneshot(without_timeout(
            "/servo.mesh.v1.DispatcherMeshService/ExplainAdmission",
        ))
        .await
        .unwrap();
    assert!(
        left(&response) <= Duration::from_secs(10),
        "a loop's call gets peers.deadline"
    );
}

fn without_timeout(path: &str) -> http::Request<Body> {
    let mut request = request(path);
    request.headers_mut().remove("grpc-timeout");
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn client_stops_waiting_at_its_deadline() {
    let world = World::new();
    let running = serve(
        &world.mesh(Service::Planner),
        handler(|_| std::future::pending()),
    )
    .await;
    let peer = world.peer(Service::Scheduler, Service::Planner, running.address);
    // On a busy machine the first tries may end before the connection is established, with another
    // code.
    until(async || {
        let mut request = request(MAKE_PLANS);
        request
            .headers_mut()
            .insert("grpc-timeout", "20m".parse().unwrap());
        status_of(peer.clone(), request).await.code() == Code::DeadlineExceeded
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_ends_at_its_requested_deadline() {
    let world = World::new();
    let running = serve(
        &world.mesh(Service::Scheduler),
        handler(|_| async { silent_stream() }),
    )
    .await;
    world.mesh(Service::Gateway);
    let client = world.raw_client(Some("gateway"), running.address);
    // The client's own timer also runs while the stream opens, so the deadline grows until the
    // server ends the stream first.
    let mut millis = 50;
    until(async || {
        let mut request = from_ada(WATCH_RUN);
        request
            .headers_mut()
            .insert("grpc-timeout", format!("{millis}m").parse().unwrap());
        millis *= 2;
        let status = status_of(client.clone(), request).await;
        status.code() == Code::DeadlineExceeded
            && error::reason_of(&status) == Some(Reason::DeadlineExceeded)
    })
    .await;
}
