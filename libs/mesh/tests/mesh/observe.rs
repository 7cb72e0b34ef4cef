//! Observability: health, readiness, server information, reflection, metrics, traces.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use servo_mesh::{Exposure, Reason, Sources, current_trace, error};
use servo_model::Service;
use servo_proto::v1::GetServerInfoRequest;
use servo_proto::v1::mesh_service_client::MeshServiceClient;
use servo_proto::v1::scheduler_service_server::{SchedulerService, SchedulerServiceServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tower::ServiceExt;

use crate::support::{
    MAKE_PLANS, Running, TEST_TIMEOUT, World, accept_all, code_of, from_ada, handler, mesh_of, ok,
    request, serve, status_of, until,
};

/// Sends one plain HTTP request to the probe port.
pub(crate) async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    tokio::time::timeout(TEST_TIMEOUT, stream.read_to_string(&mut answer))
        .await
        .expect("no answer")
        .unwrap();
    answer
}

/// A service without implemented methods.
struct Nothing;

impl SchedulerService for Nothing {}

#[tokio::test(flavor = "multi_thread")]
async fn service_reports_what_it_waits_for_until_it_is_ready() {
    let world = World::new();
    let sources: Sources = world
        .sources(Service::Scheduler)
        .set("server.ready_every", "5ms");
    let mesh = mesh_of(Service::Scheduler, &sources);
    let migrated = Arc::new(AtomicBool::new(false));
    let look = migrated.clone();
    let serving = mesh
        .serve(SchedulerServiceServer::new(Nothing))
        .ready_when(move || {
            let ready = look.load(Ordering::Relaxed);
            async move {
                if ready {
                    Ok(())
                } else {
                    Err("the schema is not there; run `servo migrate`")
                }
            }
        });
    let running = Running::start(mesh.shutdown().clone(), serving).await;
    let gateway = world.peer(Service::Gateway, Service::Scheduler, running.address);
    let info = async || {
        let mut client = MeshServiceClient::new(gateway.clone());
        client
            .get_server_info(GetServerInfoRequest {})
            .await
            .unwrap()
            .into_inner()
    };
    let health = async |service: &str| {
        let mut client = HealthClient::new(gateway.clone());
        let answer = client
            .check(HealthCheckRequest {
                service: service.into(),
            })
            .await
            .unwrap();
        answer.into_inner()
    };
    let serving_status = |status| HealthCheckResponse {
        status: i32::from(status),
    };

    until(async || info().await.waiting_for == "the schema is not there; run `servo migrate`")
        .await;
    assert!(!info().await.ready);
    for service in ["", "servo.v1.SchedulerService"] {
        assert_eq!(
            health(service).await,
            serving_status(ServingStatus::NotServing)
        );
    }
    assert!(
        get(running.metrics, "/readyz")
            .await
            .ends_with("waiting: the schema is not there; run `servo migrate`\n")
    );
    assert!(
        get(running.metrics, "/healthz")
            .await
            .starts_with("HTTP/1.1 200")
    );
    let status = status_of(
        gateway.clone(),
        from_ada("/servo.v1.SchedulerService/GetRun"),
    )
    .await;
    assert_eq!(
        (status.code(), error::reason_of(&status)),
        (Code::Unavailable, Some(Reason::NotReady))
    );
    assert!(status.message().contains("run `servo migrate`"), "{status}");

    migrated.store(true, Ordering::Relaxed);
    until(async || {
        health("servo.v1.SchedulerService").await == serving_status(ServingStatus::Serving)
    })
    .await;
    let info_response = info().await;
    assert!(
        info_response.ready
            && info_response.waiting_for.is_empty()
            && info_response.start_time.is_some()
    );
    assert_eq!(
        (
            info_response.service.as_str(),
            info_response.identity.as_str()
        ),
        ("scheduler", "spiffe://servo/scheduler")
    );
    assert!(
        get(running.metrics, "/readyz")
            .await
            .starts_with("HTTP/1.1 200")
    );
    let status = status_of(
        gateway.clone(),
        from_ada("/servo.v1.SchedulerService/GetRun"),
    )
    .await;
    assert_eq!(
        (status.code(), error::reason_of(&status)),
        (Code::Unimplemented, Some(Reason::NotImplemented))
    );

    migrated.store(false, Ordering::Relaxed);
    until(async || health("").await == serving_status(ServingStatus::NotServing)).await;
    let status = status_of(
        gateway.clone(),
        from_ada("/servo.v1.SchedulerService/GetRun"),
    )
    .await;
    assert_eq!(
        status.code(),
        Code::Unimplemented,
        "after the service was ready once, calls are admitted"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_lists_the_api() {
    let world = World::new();
    let mesh = world.mesh(Service::Scheduler);
    let running = Running::start(mesh.shutdown().clone(), mesh.serving(Exposure::Mesh)).await;
    let mut client = ServerReflectionClient::new(world.peer(
        Service::Gateway,
        Service::Scheduler,
        running.address,
    ));
    let list = MessageRequest::ListServices(String::new());
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(list),
    };
    let mut answers = client
        .server_reflection_info(tokio_stream::iter([request]))
        .await
        .unwrap()
        .into_inner();
    let answer = answers
        .message()
        .await
        .unwrap()
        .unwrap()
        .message_response
        .unwrap();
    let MessageResponse::ListServicesResponse(list) = answer else {
        panic!("{answer:?}")
    };
    let names: Vec<&str> = list
        .service
        .iter()
        .map(|service| service.name.as_str())
        .collect();
    for name in [
        "servo.v1.MeshService",
        "servo.v1.SchedulerService",
        "grpc.health.v1.Health",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_counted_by_method_and_code() {
    let world = World::new();
    let mesh = world.mesh(Service::Planner);
    let running = serve(&mesh, accept_all()).await;
    let scheduler = world.peer(Service::Scheduler, Service::Planner, running.address);
    let quota = world.peer(Service::Quota, Service::Planner, running.address);
    for _ in 0..3 {
        assert_eq!(
            code_of(scheduler.clone(), request(MAKE_PLANS)).await,
            Code::Ok
        );
    }
    assert_eq!(
        code_of(quota.clone(), request(MAKE_PLANS)).await,
        Code::PermissionDenied
    );
    assert_eq!(
        code_of(quota, request("/made/up")).await,
        Code::Unimplemented
    );
    let count = |method: &str, code: &str, n: u32| {
        format!("servo_rpc_requests_total{{method=\"{method}\",code=\"{code}\"}} {n}")
    };
    let expected = [
        count(MAKE_PLANS, "OK", 3),
        count(MAKE_PLANS, "PERMISSION_DENIED", 1),
        count("unknown", "UNIMPLEMENTED", 1),
        format!("servo_rpc_duration_seconds_count{{method=\"{MAKE_PLANS}\"}} 4"),
        "servo_rpc_in_flight 0".to_owned(),
        format!(
            "servo_build_info{{service=\"planner\",version=\"{}\"}} 1",
            env!("CARGO_PKG_VERSION")
        ),
    ];
    // The last byte may arrive before the call is counted.
    until(async || {
        let metrics = get(running.metrics, "/metrics").await;
        expected
            .iter()
            .all(|line| metrics.lines().any(|found| found == line))
    })
    .await;
    let metrics = get(running.metrics, "/metrics").await;
    let expiry = metrics
        .lines()
        .find_map(|line| line.strip_prefix("servo_tls_certificate_expiry_seconds "));
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    assert!(expiry.unwrap().parse::<u64>().unwrap() > now, "{expiry:?}");
    assert!(
        get(running.metrics, "/else")
            .await
            .starts_with("HTTP/1.1 404")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn trace_continues_through_all_calls() {
    let world = World::new();
    let add_trace = |mut response: http::Response<tonic::body::Body>, name: &'static str| {
        let trace = current_trace().unwrap().to_string();
        response.headers_mut().insert(name, trace.parse().unwrap());
        response
    };
    let dispatcher = serve(
        &world.mesh(Service::Dispatcher),
        handler(move |_| async move { add_trace(ok(), "second") }),
    )
    .await;
    let onward = world.peer(Service::Dispatcher, Service::Dispatcher, dispatcher.address);
    let planner = serve(
        &world.mesh(Service::Planner),
        handler(move |_| {
            let onward = onward.clone();
            async move {
                add_trace(
                    onward
                        .oneshot(request(
                            "/servo.mesh.v1.DispatcherMeshService/ExplainAdmission",
                        ))
                        .await
                        .unwrap(),
                    "first",
                )
            }
        }),
    )
    .await;
    world.mesh(Service::Scheduler);
    let mut request = request(MAKE_PLANS);
    request.headers_mut().insert(
        "traceparent",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            .parse()
            .unwrap(),
    );
    let response = world
        .raw_client(Some("scheduler"), planner.address)
        .oneshot(request)
        .await
        .unwrap();
    let spans: Vec<&str> = ["first", "second"]
        .map(|name| response.headers()[name].to_str().unwrap())
        .to_vec();
    assert!(
        spans
            .iter()
            .all(|span| span.starts_with("00-0af7651916cd43dd8448eb211c80319c-")),
        "{spans:?}"
    );
    assert!(
        spans[0] != spans[1] && !spans.iter().any(|span| span.contains("b7ad6b7169203331")),
        "{spans:?}"
    );
}
