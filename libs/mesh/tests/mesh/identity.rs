//! Connections that must fail, and the error that the client reports.

use std::net::SocketAddr;
use std::sync::Arc;

use servo_local::{Ca, Issue, KeyPair};
use servo_mesh::{Exposure, Reason, Sources, error};
use servo_model::Service;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Code, Status};

use crate::support::{Running, SERVER_INFO, World, accept_all, mesh_of, request, serve, status_of};

/// A server that is not part of the mesh, with the given certificate.
async fn foreign_server(pair: KeyPair) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = ServerTlsConfig::new().identity(Identity::from_pem(pair.certificate, pair.key));
    let (_, health) = tonic_health::server::health_reporter();
    let server = Server::builder()
        .tls_config(tls)
        .unwrap()
        .add_service(health);
    tokio::spawn(
        server.serve_with_incoming(tokio_stream::wrappers::TcpListenerStream::new(listener)),
    );
    address
}

/// Returns the error message of our client for a planner at `address`.
async fn client_error(world: &World, address: SocketAddr) -> String {
    let status = status_of(
        world.peer(Service::Scheduler, Service::Planner, address),
        request(SERVER_INFO),
    )
    .await;
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert_eq!(
        error::reason_of(&status),
        Some(Reason::DependencyUnavailable)
    );
    status.message().replace(&address.to_string(), "{address}")
}

#[tokio::test(flavor = "multi_thread")]
async fn client_refuses_a_wrong_server_and_reports_why() {
    let world = World::new();
    let planner = Issue::identity("spiffe://servo/planner");
    let foreign = Ca::new().unwrap();
    let cases = [
        (
            world
                .ca
                .issue(&Issue::identity("spiffe://servo/quota"))
                .unwrap(),
            "it presented the identity spiffe://servo/quota, but spiffe://servo/planner was expected",
        ),
        (
            world.ca.issue(&Issue::without_identity()).unwrap(),
            "it presented the identity a certificate without a SPIFFE id, but spiffe://servo/planner was expected",
        ),
        (
            world.ca.issue(&planner.clone().expired()).unwrap(),
            "it presented a certificate that has expired",
        ),
        (
            foreign.issue(&planner).unwrap(),
            "it presented a certificate that our tls.ca does not vouch for",
        ),
    ];
    for (pair, why) in cases {
        let address = foreign_server(pair).await;
        assert_eq!(
            client_error(&world, address).await,
            format!("planner at {{address}} and we do not trust each other: {why}")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn client_reports_that_its_certificate_was_refused() {
    let ours = World::new();
    let theirs = World::new();
    let planner = serve(&theirs.mesh(Service::Planner), accept_all()).await;
    // We trust them, they do not trust us.
    std::fs::write(ours.path("ca.crt"), theirs.ca.certificate()).unwrap();
    let message = client_error(&ours, planner.address).await;
    assert_eq!(
        message,
        "planner at {address} and we do not trust each other: it refused our certificate spiffe://servo/scheduler: its \
         tls.ca does not vouch for it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_and_plaintext_servers_are_reported() {
    let world = World::new();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let message = client_error(&world, address).await;
    assert_eq!(
        message,
        "planner at {address} cannot be reached: Connection refused (os error 111)"
    );

    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    let (_, health) = tonic_health::server::health_reporter();
    let server = Server::builder().add_service(health);
    tokio::spawn(server.serve_with_incoming(tokio_stream::wrappers::TcpListenerStream::new(plain)));
    let message = client_error(&world, address).await;
    assert_eq!(
        message,
        "planner at {address} cannot be reached: it does not speak TLS"
    );
}

/// Calls the health method, which succeeds if the TLS handshake does.
async fn health_check(client: tonic::transport::Channel) -> Result<(), Status> {
    let status = status_of(client, request("/grpc.health.v1.Health/Check")).await;
    if status.code() == Code::Ok {
        Ok(())
    } else {
        Err(status)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_refuses_clients_without_a_valid_certificate() {
    let world = World::new();
    let planner = serve(&world.mesh(Service::Planner), accept_all()).await;
    let issue = Issue::identity("spiffe://servo/scheduler");
    world.issue("good", &issue);
    world.issue("expired", &issue.clone().expired());
    Ca::new()
        .unwrap()
        .issue(&issue)
        .unwrap()
        .write(world.dir(), "foreign")
        .unwrap();
    health_check(world.raw_client(Some("good"), planner.address))
        .await
        .unwrap();
    for name in [None, Some("expired"), Some("foreign")] {
        health_check(world.raw_client(name, planner.address))
            .await
            .expect_err("the call was accepted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plaintext_connection_gets_no_response() {
    use tokio::io::AsyncWriteExt;
    let world = World::new();
    let planner = serve(&world.mesh(Service::Planner), accept_all()).await;
    let mut stream = TcpStream::connect(planner.address).await.unwrap();
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    // At most a TLS alert (record type 21), never a frame of HTTP/2.
    assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_1_2_is_refused() {
    let world = World::new();
    let planner = serve(&world.mesh(Service::Planner), accept_all()).await;
    let mut stream = TcpStream::connect(planner.address).await.unwrap();
    let (hello, handshake_failure) = (client_hello_1_2(), [21, 3, 3, 0, 2, 2, 70]);
    use tokio::io::AsyncWriteExt;
    stream.write_all(&hello).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, handshake_failure, "a fatal alert: protocol_version");
}

/// The smallest ClientHello that offers TLS 1.2 and nothing newer.
fn client_hello_1_2() -> Vec<u8> {
    let mut hello = vec![3, 3];
    hello.extend([7; 32]); // random
    hello.push(0); // no session
    hello.extend([0, 2, 0xc0, 0x2b]); // one cipher suite
    hello.extend([1, 0]); // no compression
    let groups = [0, 10, 0, 4, 0, 2, 0, 23];
    let signatures = [0, 13, 0, 4, 0, 2, 4, 3];
    hello.extend([0, 16]);
    hello.extend(groups);
    hello.extend(signatures);
    let body_len = hello.len() as u8;
    let mut record = vec![22, 3, 1, 0, body_len + 4, 1, 0, 0, body_len];
    record.extend(hello);
    record
}

#[tokio::test(flavor = "multi_thread")]
async fn public_port_accepts_clients_without_a_certificate_but_refuses_foreign_certificates() {
    let world = World::new();
    let mesh = world.mesh(Service::Gateway);
    let running = Running::start(mesh.shutdown().clone(), mesh.serve_public(accept_all())).await;
    world.issue("worker", &Issue::identity("spiffe://servo/worker/acme"));
    Ca::new()
        .unwrap()
        .issue(&Issue::identity("spiffe://servo/worker/acme"))
        .unwrap()
        .write(world.dir(), "foreign")
        .unwrap();
    for name in [None, Some("worker")] {
        health_check(world.raw_client(name, running.address))
            .await
            .unwrap();
    }
    health_check(world.raw_client(Some("foreign"), running.address))
        .await
        .expect_err("the call was accepted");
}

#[tokio::test(flavor = "multi_thread")]
async fn error_of_a_busy_port_names_the_setting() {
    let world = World::new();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let sources: Sources = world
        .sources(Service::Planner)
        .set("server.listen", format!("127.0.0.1:{port}"));
    let mesh = Arc::new(mesh_of(Service::Planner, &sources));
    let Err(fault) = mesh.serving(Exposure::Mesh).bind().await else {
        panic!("it was bound")
    };
    assert_eq!(
        fault.to_string(),
        format!("port {port} on 127.0.0.1 is in use: set server.listen")
    );
}
