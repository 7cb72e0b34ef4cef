//! Spans of a real process, as a collector receives them.

use nix::sys::signal::Signal;
use servo_local::{Collector, Issue, ReceivedSpan};
use tokio::net::TcpListener;
use tonic::Code;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

use crate::observe::get;
use crate::process::Process;
use crate::support::{MAKE_PLANS, World, code_of, request, until};

const ENDPOINT: &str = "SERVO_TELEMETRY__OTLP_ENDPOINT";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// Starts a process that exports to `endpoint` and answers immediately.
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
    let mut request = request(MAKE_PLANS);
    request
        .headers_mut()
        .insert("traceparent", traceparent.parse().unwrap());
    let scheduler = process.world.raw_client(Some("scheduler"), process.address);
    assert_eq!(code_of(scheduler, request).await, Code::Ok);
}

/// The process must end cleanly, regardless of its spans.
fn stop(process: &mut Process) {
    process.child.signal(Signal::SIGTERM).unwrap();
    assert_eq!(process.exit_code(), Some(0), "{}", process.stderr());
}

fn only_span<'a>(spans: &'a [ReceivedSpan], name: &str) -> &'a ReceivedSpan {
    let mut found = spans.iter().filter(|received| received.span.name == name);
    let (first, second) = (found.next(), found.next());
    assert!(second.is_none(), "{name} was received twice: {spans:?}");
    first.unwrap_or_else(|| panic!("{name} was not received: {spans:?}"))
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
    // The queued spans are sent before the process ends.
    stop(&mut process);

    let spans = collector.trace(TRACE);
    let rpc = only_span(&spans, "rpc");
    assert_eq!(
        (rpc.parent_id().as_str(), rpc.service.as_str()),
        (CALLER, "servo-planner")
    );
    let attributes =
        ["method", "peer", "code", "service", "trace_id"].map(|key| rpc.attribute(key));
    let expected = [
        Some(MAKE_PLANS),
        Some("spiffe://servo/scheduler"),
        Some("OK"),
        None,
        None,
    ];
    assert_eq!(attributes.each_ref().map(Option::as_deref), expected);
    assert!(rpc.span.start_time_unix_nano < rpc.span.end_time_unix_nano);

    let plan_run = only_span(&spans, "servo.plan_run");
    assert_eq!(plan_run.parent_id(), rpc.id());
    assert_eq!(plan_run.attribute("tenant_id").as_deref(), Some("acme"));
    assert_eq!(
        spans.len(),
        2,
        "only spans with a documented name are exported: {spans:?}"
    );

    // This span has level debug, while the log level is info.
    let other_trace = collector.trace(&"1".repeat(32));
    let dispatch = only_span(&other_trace, "servo.dispatch_task");
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
    let quota = process.world.raw_client(Some("quota"), process.address);
    assert_eq!(
        code_of(quota, request(MAKE_PLANS)).await,
        Code::PermissionDenied
    );
    stop(&mut process);
    let spans = collector.spans();
    let rpc = only_span(&spans, "rpc");
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
async fn unsampled_traces_are_not_exported() {
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
async fn collector_is_reached_over_tls() {
    let world = World::new();
    let pair = world.ca.issue(&Issue::without_identity()).unwrap();
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
async fn service_works_without_its_collector_and_counts_lost_spans() {
    let endpoint = format!("http://127.0.0.1:{}", servo_local::free_port().unwrap());
    let mut process = exporting(World::new(), &endpoint, "60m").await;
    // Each call's spans are lost in a separate batch.
    for lost in [3, 6] {
        call(&process, &format!("00-{TRACE}-{CALLER}-01")).await;
        let line = format!("servo_telemetry_spans_dropped_total {lost}\n");
        until(async || get(process.metrics, "/metrics").await.contains(&line)).await;
    }
    stop(&mut process);
    let log = process.stderr();
    let warnings: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("spans were lost"))
        .collect();
    assert!(
        warnings.len() == 1 && warnings[0].contains("telemetry.otlp_endpoint"),
        "{warnings:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unresponsive_collector_does_not_delay_the_service() {
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
