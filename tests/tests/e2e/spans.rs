//! One trace tells of a run from the call that asked for it to its end.

use std::time::{Duration, Instant};

use servo_client::api;
use servo_local::{Collector, TENANT, TakenSpan};
use servo_mesh::TraceContext;
use servo_tests::manifest::chain;
use servo_tests::user::{User, WORKSPACE};
use tonic::Request;

use crate::support::{Running, binaries};

const PATIENCE: Duration = Duration::from_secs(30);
const SCHEDULER: &str = "servo-scheduler";
/// Which service exports which span how often for a run of two tasks.
const EXPECTED: [(&str, &str, usize); 6] = [
    ("servo-gateway", "rpc", 1),
    (SCHEDULER, "rpc", 1),
    (SCHEDULER, "servo.plan_run", 1),
    (SCHEDULER, "servo.start_run", 1),
    ("servo-dispatcher", "servo.dispatch_task", 2),
    (SCHEDULER, "servo.finalize_run", 1),
];

/// TriggerRun below `caller`; the run, once it has ended.
async fn run_below(user: &User, caller: &TraceContext) -> api::Run {
    let mut asked = Request::new(api::TriggerRunRequest {
        tenant: TENANT.to_owned(),
        workspace: WORKSPACE.to_owned(),
        spec: Some(api::RunSpec {
            selection: vec!["chain.*".to_owned()],
            ..Default::default()
        }),
        ..Default::default()
    });
    asked
        .metadata_mut()
        .insert("traceparent", caller.to_string().parse().unwrap());
    let answer = user
        .client
        .scheduler()
        .trigger_run(asked)
        .await
        .unwrap()
        .into_inner();
    user.ended(&answer.run.unwrap().run_id).await.unwrap()
}

/// The spans of a trace, once all that are looked at are there: each process sends its own when it is time.
async fn told(collector: &Collector, trace: &TraceContext) -> Vec<TakenSpan> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let spans = collector.trace(&trace.trace_id());
        if EXPECTED
            .iter()
            .all(|(service, name, count)| named(&spans, service, name).len() >= *count)
        {
            return spans;
        }
        assert!(
            Instant::now() < deadline,
            "of {trace} came {spans:#?}, of others {:#?}",
            names(collector)
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn names(collector: &Collector) -> Vec<String> {
    let name = |taken: TakenSpan| {
        format!(
            "{} {} in {}",
            taken.service,
            taken.span.name,
            taken.trace_id()
        )
    };
    collector.spans().into_iter().map(name).collect()
}

fn named<'a>(spans: &'a [TakenSpan], service: &str, name: &str) -> Vec<&'a TakenSpan> {
    spans
        .iter()
        .filter(|taken| taken.service == service && taken.span.name == name)
        .collect()
}

/// The only one of its name, which has these attributes.
fn only<'a>(spans: &'a [TakenSpan], name: &str, attributes: &[(&str, &str)]) -> &'a TakenSpan {
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
    let _worker = user.work(4);
    user.deploy(chain(2)).await.unwrap();
    let caller = TraceContext::root();
    let run = run_below(&user, &caller).await;
    let spans = told(collector, &caller).await;

    let calls = |service| named(&spans, service, "rpc");
    let [gateway] = calls("servo-gateway")[..] else {
        panic!("{spans:?}")
    };
    assert_eq!(gateway.parent_id(), caller.span_id());
    let asked = calls(SCHEDULER)
        .into_iter()
        .find(|rpc| rpc.parent_id() == gateway.id());
    let asked = asked.unwrap_or_else(|| panic!("{spans:?}")).id();

    let scope = [
        ("tenant_id", TENANT),
        ("workspace_id", WORKSPACE),
        ("trigger_type", "manual"),
    ];
    assert_eq!(only(&spans, "servo.plan_run", &scope).parent_id(), asked);
    let started = [
        ("run_id", run.run_id.as_str()),
        ("plan_id", &run.plan_id),
        ("tasks_count", "2"),
    ];
    assert_eq!(only(&spans, "servo.start_run", &started).parent_id(), asked);
    let ended = [
        ("outcome", "SUCCEEDED"),
        ("tasks_succeeded", "2"),
        ("tasks_failed", "0"),
    ];
    assert_eq!(
        only(&spans, "servo.finalize_run", &ended).parent_id(),
        asked
    );

    let dispatched = named(&spans, "servo-dispatcher", "servo.dispatch_task");
    assert!(
        dispatched.iter().all(|task| task.parent_id() == asked),
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
        .filter(|taken| taken.span.name == "servo.scheduler_tick");
    assert!(ticks.clone().count() > 0 && ticks.into_iter().all(|tick| tick.service == SCHEDULER));
}

#[tokio::test]
async fn a_runs_trace_goes_from_its_trigger_to_its_end() {
    let collector = Collector::start(None).await.unwrap();
    let endpoint = format!("http://{}", collector.address());
    let running = Running::start_with(|options| options.otlp_endpoint(&endpoint)).await;
    check(&running, &collector).await;
}

#[tokio::test]
async fn services_in_one_process_keep_their_names() {
    let collector = Collector::start(None).await.unwrap();
    let endpoint = format!("http://{}", collector.address());
    let running = Running::start_with(|options| servo_local::MeshOptions {
        one_process: Some(binaries().join("servo-standalone")),
        ..options.otlp_endpoint(&endpoint)
    })
    .await;
    check(&running, &collector).await;
}
