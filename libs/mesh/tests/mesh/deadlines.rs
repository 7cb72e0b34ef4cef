//! A call nobody waits for ends.

use std::time::Duration;

use http::Response;
use servo_mesh::{Reason, error, time_left};
use servo_model::Service;
use tokio::sync::mpsc;
use tonic::Code;
use tonic::body::Body;
use tower::ServiceExt;

use crate::support::{
    MAKE_PLANS, PATIENCE, WATCH_RUN, World, from_ada, handler, mesh_of, ok, request, serve,
    silence, status_of, until, yes,
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
async fn a_call_without_a_deadline_is_refused_unless_it_is_a_stream_or_a_probe() {
    let world = World::new();
    let running = serve(&world.mesh(Service::Planner), yes()).await;
    world.mesh(Service::Scheduler);
    world.mesh(Service::Gateway);
    let send = async |from, mut request: http::Request<Body>| {
        request.headers_mut().remove("grpc-timeout");
        status_of(world.stranger(Some(from), running.address), request).await
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
async fn a_deadline_is_cut_to_the_longest_and_its_end_is_told() {
    let world = World::new();
    let sources = world
        .sources(Service::Planner)
        .set("server.max_deadline", "20ms");
    let (dropped, mut was_dropped) = mpsc::unbounded_channel();
    let forever = handler(move |_| {
        let tell = TellWhenDropped(dropped.clone());
        async move {
            let _tell = tell;
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
    let stopped = tokio::time::timeout(PATIENCE, was_dropped.recv())
        .await
        .expect("the handler works on");
    assert_eq!(stopped, Some(()));
}

struct TellWhenDropped(mpsc::UnboundedSender<()>);

impl Drop for TellWhenDropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_gets_what_is_left_of_the_deadline() {
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
    let passing_on = handler(move |_| {
        let onward = onward.clone();
        async move {
            onward
                .oneshot(without_timeout(
                    "/servo.v1.DispatcherService/ExplainAdmission",
                ))
                .await
                .unwrap()
        }
    });
    let planner = serve(&world.mesh(Service::Planner), passing_on).await;
    let peer = world.peer(Service::Scheduler, Service::Planner, planner.address);
    let mut asked = request(MAKE_PLANS);
    asked
        .headers_mut()
        .insert("grpc-timeout", "5S".parse().unwrap());
    let response = peer.oneshot(asked).await.unwrap();
    // Had it not been inherited, it would be the ten seconds of peers.deadline.
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
            "/servo.v1.DispatcherService/ExplainAdmission",
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
async fn our_client_gives_up_at_its_deadline() {
    let world = World::new();
    let running = serve(
        &world.mesh(Service::Planner),
        handler(|_| std::future::pending()),
    )
    .await;
    let peer = world.peer(Service::Scheduler, Service::Planner, running.address);
    // On a busy machine the first tries may end before the connection stands, which is told as such.
    until(async || {
        let mut asked = request(MAKE_PLANS);
        asked
            .headers_mut()
            .insert("grpc-timeout", "20m".parse().unwrap());
        status_of(peer.clone(), asked).await.code() == Code::DeadlineExceeded
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_at_the_deadline_it_asked_for() {
    let world = World::new();
    let running = serve(
        &world.mesh(Service::Scheduler),
        handler(|_| async { silence() }),
    )
    .await;
    world.mesh(Service::Gateway);
    let client = world.stranger(Some("gateway"), running.address);
    // The client's own clock runs until the stream is open, so the deadline grows until it is the server's that ends it.
    let mut millis = 50;
    until(async || {
        let mut asked = from_ada(WATCH_RUN);
        asked
            .headers_mut()
            .insert("grpc-timeout", format!("{millis}m").parse().unwrap());
        millis *= 2;
        let status = status_of(client.clone(), asked).await;
        status.code() == Code::DeadlineExceeded
            && error::reason_of(&status) == Some(Reason::DeadlineExceeded)
    })
    .await;
}
