//! Every limit is enforced with a clear error instead of a queue.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use servo_mesh::{Reason, error};
use servo_model::Service;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::{Code, Status};
use tonic_types::StatusExt;
use tower::ServiceExt;

use crate::observe::get;
use crate::support::{
    BlockedHandler, MAKE_PLANS, Running, SERVER_INFO, TEST_TIMEOUT, WATCH_RUN, World, accept_all,
    code_of, from_ada, handler, mesh_of, request, request_with, serve, set_metadata, silent_stream,
    status_of, until,
};

fn assert_shed(status: &Status) {
    let reason = error::reason_of(status);
    assert_eq!(
        (status.code(), reason),
        (Code::ResourceExhausted, Some(Reason::Overloaded)),
        "{status}"
    );
    let retry = status
        .get_details_retry_info()
        .and_then(|info| info.retry_delay);
    assert!(
        retry.is_some_and(|delay| delay > Duration::ZERO),
        "{status:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_above_the_limit_are_refused_until_others_end() {
    let world = World::new();
    let blocked = BlockedHandler::new();
    let sources = world
        .sources(Service::Planner)
        .set("server.max_requests", 2);
    let running = serve(&mesh_of(Service::Planner, &sources), blocked.handler()).await;
    let peer = world.peer(Service::Scheduler, Service::Planner, running.address);
    let calls: Vec<_> = (0..2)
        .map(|_| tokio::spawn(code_of(peer.clone(), request(MAKE_PLANS))))
        .collect();
    blocked.wait_for_call().await;
    blocked.wait_for_call().await;
    assert_shed(&status_of(peer.clone(), request(MAKE_PLANS)).await);
    assert_eq!(
        code_of(peer.clone(), request(SERVER_INFO)).await,
        Code::Ok,
        "probes are always answered"
    );
    blocked.release.add_permits(3);
    for call in calls {
        assert_eq!(call.await.unwrap(), Code::Ok);
    }
    until(async || code_of(peer.clone(), request(MAKE_PLANS)).await == Code::Ok).await;
    assert!(
        get(running.metrics, "/metrics")
            .await
            .contains(r#"servo_rpc_shed_total{limit="max_requests"}"#)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_have_a_separate_limit() {
    let world = World::new();
    let sources = world
        .sources(Service::Scheduler)
        .set("server.max_streams", 1)
        .set("server.max_requests", 1);
    let running = serve(
        &mesh_of(Service::Scheduler, &sources),
        handler(|_| async { silent_stream() }),
    )
    .await;
    let peer = world.peer(Service::Gateway, Service::Scheduler, running.address);
    let first = peer.clone().oneshot(from_ada(WATCH_RUN)).await.unwrap();
    assert_shed(&status_of(peer.clone(), from_ada(WATCH_RUN)).await);
    drop(first);
    let opens = async || peer.clone().oneshot(from_ada(WATCH_RUN)).await.unwrap();
    until(async || Status::from_header_map(opens().await.headers()).is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_message_is_refused_before_it_is_read() {
    let world = World::new();
    let sources = world
        .sources(Service::Planner)
        .set("server.max_message", "2KiB");
    let running = serve(&mesh_of(Service::Planner, &sources), accept_all()).await;
    let peer = world.peer(Service::Scheduler, Service::Planner, running.address);
    // Field 15, which no message has, with 2,000 and with 3,000 bytes.
    let message = |len: u16| {
        [
            &[0x7a, (len & 0x7f | 0x80) as u8, (len >> 7) as u8],
            &vec![b'x'; len.into()][..],
        ]
        .concat()
    };
    assert_eq!(
        code_of(peer.clone(), request_with(MAKE_PLANS, &message(2000))).await,
        Code::Ok
    );
    let status = status_of(peer, request_with(MAKE_PLANS, &message(3000))).await;
    assert_eq!(
        (status.code(), error::reason_of(&status)),
        (Code::InvalidArgument, Some(Reason::MessageTooLarge))
    );
    assert_eq!(
        status.message(),
        "the message has 3003 bytes, 2048 are allowed (server.max_message)"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_connections_are_closed() {
    let world = World::new();
    let sources = world
        .sources(Service::Planner)
        .set("server.max_connections", 1);
    let running = serve(&mesh_of(Service::Planner, &sources), accept_all()).await;
    let first = world.peer(Service::Scheduler, Service::Planner, running.address);
    assert_eq!(code_of(first.clone(), request(MAKE_PLANS)).await, Code::Ok);
    let second = world.peer(Service::Scheduler, Service::Planner, running.address);
    assert_eq!(
        code_of(second.clone(), request(MAKE_PLANS)).await,
        Code::Unavailable
    );
    drop(first);
    until(async || code_of(second.clone(), request(MAKE_PLANS)).await == Code::Ok).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_without_a_tls_handshake_is_closed() {
    let world = World::new();
    let sources = world
        .sources(Service::Planner)
        .set("server.handshake_timeout", "20ms");
    let running = serve(&mesh_of(Service::Planner, &sources), accept_all()).await;
    let mut silent = TcpStream::connect(running.address).await.unwrap();
    let closed = tokio::time::timeout(TEST_TIMEOUT, silent.read_to_end(&mut Vec::new())).await;
    assert_eq!(closed.expect("it was not closed").unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_have_a_limit() {
    let world = World::new();
    let running = serve(&world.mesh(Service::Planner), accept_all()).await;
    world.mesh(Service::Scheduler);
    let mut large = request(MAKE_PLANS);
    set_metadata(&mut large, &[("x-large", &"x".repeat(20_000))]);
    assert_ne!(
        code_of(world.raw_client(Some("scheduler"), running.address), large).await,
        Code::Ok
    );
    assert_eq!(
        code_of(
            world.raw_client(Some("scheduler"), running.address),
            request(MAKE_PLANS)
        )
        .await,
        Code::Ok
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn panic_is_answered_and_the_service_continues() {
    let world = World::new();
    let panics = handler(|request| async move {
        if request.headers().contains_key("panic") {
            panic!("a fault in a handler");
        }
        crate::support::ok()
    });
    let running = serve(&world.mesh(Service::Planner), panics).await;
    let peer = world.peer(Service::Scheduler, Service::Planner, running.address);
    let mut bad = request(MAKE_PLANS);
    set_metadata(&mut bad, &[("panic", "please")]);
    let status = status_of(peer.clone(), bad).await;
    assert_eq!(
        (status.code(), error::reason_of(&status)),
        (Code::Internal, Some(Reason::Internal))
    );
    assert_eq!(code_of(peer, request(MAKE_PLANS)).await, Code::Ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn public_port_forwards_other_bodies_unchanged_up_to_the_limit() {
    let world = World::new();
    let mesh = mesh_of(
        Service::Gateway,
        &world
            .sources(Service::Gateway)
            .set("server.max_message", "1KiB"),
    );
    let echo = handler(|request| async move {
        match request.into_body().collect().await {
            Ok(body) => http::Response::new(tonic::body::Body::new(body)),
            Err(status) => status.into_http(),
        }
    });
    let running = Running::start(mesh.shutdown().clone(), mesh.serve_public(echo)).await;
    let send = async |text: &str| {
        let body = tonic::body::Body::new(Full::new(Bytes::copy_from_slice(text.as_bytes())));
        let request = http::Request::post("/v1/anything")
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        let response = world
            .raw_client(None, running.address)
            .oneshot(request)
            .await
            .unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    };
    let fits = r#"{"not": "a frame"}"#;
    assert_eq!(send(fits).await, fits.as_bytes());
    assert_eq!(
        send(&"x".repeat(1025)).await.len(),
        0,
        "a body that is too long is not forwarded"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn public_port_also_supports_http_1() {
    let world = World::new();
    let mesh = world.mesh(Service::Gateway);
    let hello = handler(|_| async {
        http::Response::new(tonic::body::Body::new(Full::new(Bytes::from("hello"))))
    });
    let running = Running::start(mesh.shutdown().clone(), mesh.serve_public(hello)).await;
    let mut stream = world.plain_tls(running.address, b"http/1.1").await;
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("hello"),
        "{answer}"
    );
}
