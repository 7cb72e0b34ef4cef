//! Draining: no new calls are accepted, calls in flight are finished.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use servo_mesh::{Doorbell, Exposure, Pace, Reason, error};
use servo_model::Service;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tonic::Code;

use crate::observe::get;
use crate::support::{
    BlockedHandler, MAKE_PLANS, Running, TEST_TIMEOUT, WATCH_RUN, World, code_of, from_ada,
    handler, mesh_of, request, serve, silent_stream, status_of, until,
};

#[tokio::test(flavor = "multi_thread")]
async fn call_in_flight_is_finished_while_new_connections_are_refused() {
    let world = World::new();
    let blocked = BlockedHandler::new();
    let running = serve(&world.mesh(Service::Planner), blocked.handler()).await;
    let peer = world.peer(Service::Scheduler, Service::Planner, running.address);
    let call = tokio::spawn(status_of(peer, request(MAKE_PLANS)));
    blocked.wait_for_call().await;

    running.shutdown.drain();
    until(async || TcpStream::connect(running.address).await.is_err()).await;
    until(async || {
        get(running.metrics, "/readyz")
            .await
            .starts_with("HTTP/1.1 503")
    })
    .await;
    assert!(!call.is_finished(), "the call waits for its handler");

    blocked.release.add_permits(1);
    assert_eq!(call.await.unwrap().code(), Code::Ok);
    running.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_aborted_after_the_grace_period() {
    let world = World::new();
    let blocked = BlockedHandler::new();
    let sources = world.sources(Service::Planner).set("server.grace", "20ms");
    let running = serve(&mesh_of(Service::Planner, &sources), blocked.handler()).await;
    let peer = world.peer(Service::Scheduler, Service::Planner, running.address);
    let call = tokio::spawn(code_of(peer, request(MAKE_PLANS)));
    blocked.wait_for_call().await;
    running.shutdown.drain();
    running.ended().await;
    assert_eq!(call.await.unwrap(), Code::Unavailable);
}

#[tokio::test(flavor = "multi_thread")]
async fn second_signal_ends_immediately() {
    let world = World::new();
    let blocked = BlockedHandler::new();
    let sources = world.sources(Service::Planner).set("server.grace", "60m");
    let running = serve(&mesh_of(Service::Planner, &sources), blocked.handler()).await;
    let call = tokio::spawn(code_of(
        world.peer(Service::Scheduler, Service::Planner, running.address),
        request(MAKE_PLANS),
    ));
    blocked.wait_for_call().await;
    running.shutdown.drain();
    running.shutdown.end();
    running.ended().await;
    assert_eq!(call.await.unwrap(), Code::Unavailable);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_with_a_retryable_status() {
    let world = World::new();
    let opened = Arc::new(Semaphore::new(0));
    let open = opened.clone();
    let stream = handler(move |_| {
        open.add_permits(1);
        async { silent_stream() }
    });
    let sources = world.sources(Service::Scheduler).set("server.grace", "60m");
    let running = serve(&mesh_of(Service::Scheduler, &sources), stream).await;
    let peer = world.peer(Service::Gateway, Service::Scheduler, running.address);
    let call = tokio::spawn(status_of(peer, from_ada(WATCH_RUN)));
    opened.acquire().await.unwrap().forget();
    running.shutdown.drain();
    let status = call.await.unwrap();
    assert_eq!(
        (status.code(), error::reason_of(&status)),
        (Code::Unavailable, Some(Reason::NotReady)),
        "{status}"
    );
    running.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn loop_pass_in_progress_is_finished() {
    let world = World::new();
    let mesh = world.mesh(Service::Planner);
    let (begun, release) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let finished = Arc::new(AtomicUsize::new(0));
    let pass = (begun.clone(), release.clone(), finished.clone());
    let serving = mesh.serving(Exposure::Mesh).with_loop(
        "test",
        Pace::every(Duration::from_secs(3600)),
        move || {
            let (begun, release, finished) = pass.clone();
            async move {
                begun.add_permits(1);
                release.acquire().await.unwrap().forget();
                finished.fetch_add(1, Ordering::Relaxed);
                Ok::<_, String>(())
            }
        },
    );
    let running = Running::start(mesh.shutdown().clone(), serving).await;
    begun.acquire().await.unwrap().forget();
    running.shutdown.drain();
    release.add_permits(1);
    running.ended().await;
    assert_eq!(finished.load(Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn loop_repeats_while_it_works_then_waits_for_its_doorbell_and_survives_failures() {
    let world = World::new();
    let mesh = world.mesh(Service::Planner);
    let (doorbell, passes) = (Doorbell::new(), Arc::new(AtomicUsize::new(0)));
    let count = passes.clone();
    let pace = Pace::every(Duration::from_secs(3600)).woken_by(&doorbell);
    let serving = mesh
        .serving(Exposure::Mesh)
        .with_loop("test", pace, move || {
            let pass = count.fetch_add(1, Ordering::Relaxed);
            async move {
                match pass {
                    // Three passes in a row find work, the fourth does not.
                    0..=2 => Ok(true),
                    3 => Ok(false),
                    4 => Err("the store is unavailable"),
                    5 => panic!("a fault in a pass"),
                    _ => Ok(false),
                }
            }
        });
    let running = Running::start(mesh.shutdown().clone(), serving).await;
    let seen = async |n: usize| until(async || passes.load(Ordering::Relaxed) >= n).await;
    seen(4).await;
    doorbell.ring();
    // The pass it woke fails, the next panics, and both are repeated after a delay.
    seen(7).await;
    doorbell.ring();
    seen(8).await;
    let metrics = get(running.metrics, "/metrics").await;
    for line in [
        r#"servo_loop_passes_total{name="test",outcome="worked"} 3"#,
        r#"servo_loop_passes_total{name="test",outcome="failed"} 2"#,
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    running.shutdown.drain();
    tokio::time::timeout(TEST_TIMEOUT, running.ended())
        .await
        .unwrap();
}
