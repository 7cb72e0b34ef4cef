//! One trace covers a run from the call that triggered it to its end.

use servo_client::api;
use servo_local::wait::until;
use servo_local::{Collector, ReceivedSpan, TENANT};
use servo_mesh::TraceContext;
use servo_tests::manifest::chain;
use servo_tests::user::{User, WORKSPACE};
use tonic::Request;

use crate::support::{Running, binaries};

const SCHEDULER: &str = "servo-scheduler";
/// The service, name and number of the spans of a run of two tasks.
const EXPECTED: [(&str, &str, usize); 6] = [
    ("servo-gateway", "rpc", 1),
    (SCHEDULER, "rpc", 1),
    (SCHEDULER, "servo.plan_run", 1),
    (SCHEDULER, "servo.start_run", 1),
    ("servo-dispatcher", "servo.dispatch_task", 2),
    (SCHEDULER, "servo.finalize_run", 1),
];

/// Triggers a run with `caller` as the parent span and waits for its end.
async fn run_below(user: &User, caller: &TraceContext) -> api::Run {
    let mut request = Request::new(api::TriggerRunRequest {
        tenant: TENANT.to_owned(),
        workspace: WORKSPACE.to_owned(),
        spec: Some(api::RunSpec {
            selection: vec!["chain.*".to_owned()],
            ..Default::default()
        }),
        ..Default::default()
    });
    request
        .metadata_mut()
        .insert("traceparent", caller.to_string().parse().unwrap());
    let answer = user
        .client
        .scheduler()
        .trigger_run(request)
        .await
        .unwrap()
        .into_inner();
    user.wait_for_end(&answer.run.unwrap().run_id)
        .await
        .unwrap()
}

/// Waits until all expected spans of a trace arrived, because each process exports its own later.
async fn wait_for_spans(collector: &Collector, trace: &TraceContext) -> Vec<ReceivedSpan> {
    until(&format!("the spans of {trace}"), async || {
        let spans = collector.trace(&trace.trace_id());
        EXPECTED
            .iter()
            .all(|(service, name, count)| named(&spans, service, name).len() >= *count)
            .then_some(spans)
    })
    .await
}

fn named<'a>(spans: &'a [ReceivedSpan], service: &str, name: &str) -> Vec<&'a ReceivedSpan> {
    spans
        .iter()
        .filter(|received| received.service == service && received.span.name == name)
        .collect()
}

/// The only span of its name; asserts its attributes.
fn only<'a>(
    spans: &'a [ReceivedSpan],
    name: &str,
    attributes: &[(&str, &str)],
) -> &'a ReceivedSpan {
    let found = named(spans, SCHEDULER, name);
    let [one] = found[..] else {
        panic!("{name}: {spans:?}")
    };
    for (key, value) in attributes {
        assert_eq!(
            one.attribute(key).as_deref(),
            Some(*value),
            "{key} of {name}"
        );
    }
    one
}

async fn check(running: &Running, collector: &Collector) {
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.start_worker(4);
    user.deploy(chain(2)).await.unwrap();
    let caller = TraceContext::root();
    let run = run_below(&user, &caller).await;
    let spans = wait_for_spans(collector, &caller).await;

    let calls = |service| named(&spans, service, "rpc");
    let [gateway] = calls("servo-gateway")[..] else {
        panic!("{spans:?}")
    };
    assert_eq!(gateway.parent_id(), caller.span_id());
    let request = calls(SCHEDULER)
        .into_iter()
        .find(|rpc| rpc.parent_id() == gateway.id());
    let request = request.unwrap_or_else(|| panic!("{spans:?}")).id();

    let scope = [
        ("tenant_id", TENANT),
        ("workspace_id", WORKSPACE),
        ("trigger_type", "manual"),
    ];
    assert_eq!(only(&spans, "servo.plan_run", &scope).parent_id(), request);
    let started = [
        ("run_id", run.run_id.as_str()),
        ("plan_id", &run.plan_id),
        ("tasks_count", "2"),
    ];
    assert_eq!(
        only(&spans, "servo.start_run", &started).parent_id(),
        request
    );
    let ended = [
        ("outcome", "SUCCEEDED"),
        ("tasks_succeeded", "2"),
        ("tasks_failed", "0"),
    ];
    assert_eq!(
        only(&spans, "servo.finalize_run", &ended).parent_id(),
        request
    );

    let dispatched = named(&spans, "servo-dispatcher", "servo.dispatch_task");
    assert!(
        dispatched.iter().all(|task| task.parent_id() == request),
        "{dispatched:?}"
    );
    let of_tasks = |key: &str| {
        dispatched
            .iter()
            .filter_map(|task| task.attribute(key))
            .collect::<Vec<_>>()
    };
    assert_eq!(of_tasks("asset_key"), ["chain/t0", "chain/t1"]);
    assert_eq!(
        (of_tasks("task_id").len(), of_tasks("partition_key").len()),
        (2, 2)
    );
    let ticks = collector
        .spans()
        .into_iter()
        .filter(|received| received.span.name == "servo.scheduler_flush");
    assert!(ticks.clone().count() > 0 && ticks.into_iter().all(|tick| tick.service == SCHEDULER));
}

#[tokio::test]
async fn a_trace_covers_a_run_from_its_trigger_to_its_end() {
    let collector = Collector::start(None).await.unwrap();
    let endpoint = format!("http://{}", collector.address());
    let running = Running::start_with(|options| options.otlp_endpoint(&endpoint)).await;
    check(&running, &collector).await;
}

#[tokio::test]
async fn services_in_one_process_export_spans_under_their_own_names() {
    let collector = Collector::start(None).await.unwrap();
    let endpoint = format!("http://{}", collector.address());
    let running = Running::start_with(|options| servo_local::MeshOptions {
        one_process: Some(binaries().join("servo-standalone")),
        ..options.otlp_endpoint(&endpoint)
    })
    .await;
    check(&running, &collector).await;
}
