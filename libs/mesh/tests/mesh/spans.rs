//! Spans of a real process, as a collector gets them.

use nix::sys::signal::Signal;
use servo_local::{Collector, Issue, TakenSpan};
use tokio::net::TcpListener;
use tonic::Code;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

use crate::observe::get;
use crate::process::Process;
use crate::support::{MAKE_PLANS, World, code_of, request, until};

const ENDPOINT: &str = "SERVO_TELEMETRY__OTLP_ENDPOINT";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// A process that exports to `endpoint` and answers at once.
async fn exporting(world: World, endpoint: &str, grace: &str) -> Process {
    std::fs::write(world.path("release"), "").unwrap();
    let mut process = Process::start(
        world,
        &[(ENDPOINT, endpoint), ("SERVO_SERVER__GRACE", grace)],
    );
    process.is_up().await;
    process
}

async fn call(process: &Process, traceparent: &str) {
    process
        .world
        .issue("scheduler", &Issue::identity("spiffe://servo/scheduler"));
    let mut asked = request(MAKE_PLANS);
    asked
        .headers_mut()
        .insert("traceparent", traceparent.parse().unwrap());
    let scheduler = process.world.stranger(Some("scheduler"), process.address);
    assert_eq!(code_of(scheduler, asked).await, Code::Ok);
}

/// It must end in good order, whatever became of its spans.
fn stop(process: &mut Process) {
    process.child.signal(Signal::SIGTERM).unwrap();
    assert_eq!(process.exit_code(), Some(0), "{}", process.stderr());
}

fn the<'a>(spans: &'a [TakenSpan], name: &str) -> &'a TakenSpan {
    let mut found = spans.iter().filter(|taken| taken.span.name == name);
    let (first, second) = (found.next(), found.next());
    assert!(second.is_none(), "{name} came twice: {spans:?}");
    first.unwrap_or_else(|| panic!("{name} did not come: {spans:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_reach_the_collector_in_the_trace_of_their_call() {
    let collector = Collector::start(None).await.unwrap();
    let mut process = exporting(
        World::new(),
        &format!("http://{}", collector.address()),
        "60m",
    )
    .await;
    call(&process, &format!("00-{TRACE}-{CALLER}-01")).await;
    // What was gathered is sent before the process ends.
    stop(&mut process);

    let spans = collector.trace(TRACE);
    let rpc = the(&spans, "rpc");
    assert_eq!(
        (rpc.parent_id().as_str(), rpc.service.as_str()),
        (CALLER, "servo-planner")
    );
    let told = ["method", "peer", "code", "service", "trace_id"].map(|key| rpc.attribute(key));
    let expected = [
        Some(MAKE_PLANS),
        Some("spiffe://servo/scheduler"),
        Some("OK"),
        None,
        None,
    ];
    assert_eq!(told.each_ref().map(Option::as_deref), expected);
    assert!(rpc.span.start_time_unix_nano < rpc.span.end_time_unix_nano);

    let plan_run = the(&spans, "servo.plan_run");
    assert_eq!(plan_run.parent_id(), rpc.id());
    assert_eq!(plan_run.attribute("tenant_id").as_deref(), Some("acme"));
    assert_eq!(
        spans.len(),
        2,
        "only what has a name of the manual is exported: {spans:?}"
    );

    // Level debug, while the log's is info.
    let elsewhere = collector.trace(&"1".repeat(32));
    let dispatch = the(&elsewhere, "servo.dispatch_task");
    assert_eq!(dispatch.parent_id(), "2".repeat(16));
    assert_eq!(dispatch.attribute("task_id").as_deref(), Some("t1"));
    assert_eq!(dispatch.attribute("attempt").as_deref(), Some("2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_names_the_span_that_is_exported() {
    let collector = Collector::start(None).await.unwrap();
    let mut process = exporting(
        World::new(),
        &format!("http://{}", collector.address()),
        "60m",
    )
    .await;
    process
        .world
        .issue("quota", &Issue::identity("spiffe://servo/quota"));
    let quota = process.world.stranger(Some("quota"), process.address);
    assert_eq!(
        code_of(quota, request(MAKE_PLANS)).await,
        Code::PermissionDenied
    );
    stop(&mut process);
    let spans = collector.spans();
    let rpc = the(&spans, "rpc");
    assert_eq!(
        (rpc.parent_id().as_str(), rpc.attribute("code").as_deref()),
        ("", Some("PERMISSION_DENIED"))
    );
    let log = process.stderr();
    let line = log
        .lines()
        .find(|line| line.contains("call refused"))
        .unwrap();
    assert!(
        line.contains(&rpc.trace_id()) && line.contains(&rpc.id()),
        "{line}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_caller_did_not_sample_is_not_exported() {
    let collector = Collector::start(None).await.unwrap();
    let mut process = exporting(
        World::new(),
        &format!("http://{}", collector.address()),
        "60m",
    )
    .await;
    call(&process, &format!("00-{TRACE}-{CALLER}-00")).await;
    let sampled = "3".repeat(32);
    call(&process, &format!("00-{sampled}-{CALLER}-01")).await;
    stop(&mut process);
    assert_eq!(collector.trace(&sampled).len(), 2);
    assert!(collector.trace(TRACE).is_empty(), "{:?}", collector.spans());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_of_the_mesh_is_reached_over_tls() {
    let world = World::new();
    let pair = world.ca.issue(&Issue::nameless()).unwrap();
    let tls = ServerTlsConfig::new()
        .identity(Identity::from_pem(pair.certificate, pair.key))
        .client_ca_root(Certificate::from_pem(world.ca.certificate()));
    let collector = Collector::start(Some(tls)).await.unwrap();
    let endpoint = format!("https://localhost:{}", collector.address().port());
    let mut process = exporting(world, &endpoint, "60m").await;
    call(&process, &format!("00-{TRACE}-{CALLER}-01")).await;
    stop(&mut process);
    assert_eq!(collector.trace(TRACE).len(), 2, "{}", process.stderr());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_collector_a_service_works_and_counts_what_is_lost() {
    let endpoint = format!("http://127.0.0.1:{}", servo_local::free_port().unwrap());
    let mut process = exporting(World::new(), &endpoint, "60m").await;
    // Each is lost in a batch of its own.
    for lost in [3, 6] {
        call(&process, &format!("00-{TRACE}-{CALLER}-01")).await;
        let line = format!("servo_telemetry_spans_dropped_total {lost}\n");
        until(async || get(process.metrics, "/metrics").await.contains(&line)).await;
    }
    stop(&mut process);
    let log = process.stderr();
    let told: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("spans were lost"))
        .collect();
    assert!(
        told.len() == 1 && told[0].contains("telemetry.otlp_endpoint"),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_never_answers_holds_up_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let mut process = exporting(World::new(), &endpoint, "100ms").await;
    for _ in 0..100 {
        call(&process, &format!("00-{TRACE}-{CALLER}-01")).await;
    }
    stop(&mut process);
    let log = process.stderr();
    assert!(
        log.contains("the last spans did not reach telemetry.otlp_endpoint"),
        "{log}"
    );
}
