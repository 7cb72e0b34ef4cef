//! F36: large graphs are planned and run to their end within the memory limit of each service.

use std::time::{Duration, Instant};

use servo_client::api::{self, RunState};
use servo_tests::manifest::{all_partitions, chain, partitioned_fan_out, partitioned_layers};
use servo_tests::user::{User, WORKSPACE};
use servo_tests::{full, invariants};

use crate::support::{Running, binaries};

const MEMORY_MB_MAX: f64 = 256.0;
const PLANNED_WITHIN: Duration = Duration::from_secs(2);
const LAYER_WIDTH: usize = 100;
const LAYER_REACH: usize = 6;

/// A graph, the request for all of it, and the size of its plan.
struct Graph {
    name: &'static str,
    manifest: api::Manifest,
    spec: api::RunSpec,
    tasks: usize,
    edges: usize,
}

/// One root and `width` tasks that depend on it.
fn wide(width: usize) -> Graph {
    let (manifest, spec) = (
        partitioned_fan_out(width),
        all_partitions(&["fan/root", "fan/part"]),
    );
    Graph {
        name: "wide",
        manifest,
        spec,
        tasks: width + 1,
        edges: width,
    }
}

/// One root, `width` tasks that depend on it, and one that depends on all of them.
fn diamond(width: usize) -> Graph {
    let (manifest, spec) = (partitioned_fan_out(width), all_partitions(&["fan.*"]));
    Graph {
        name: "diamond",
        manifest,
        spec,
        tasks: width + 2,
        edges: 2 * width,
    }
}

/// Every task depends on several previous layers, as far as they exist.
fn many_edges(layers: usize) -> Graph {
    let manifest = partitioned_layers(layers, LAYER_WIDTH, LAYER_REACH);
    let edges = LAYER_WIDTH
        * (0..layers)
            .map(|layer| layer.min(LAYER_REACH))
            .sum::<usize>();
    Graph {
        name: "many edges",
        manifest,
        spec: all_partitions(&["deep.*"]),
        tasks: layers * LAYER_WIDTH,
        edges,
    }
}

/// Each task depends on the previous one.
fn deep(length: usize) -> Graph {
    let spec = api::RunSpec {
        selection: vec!["chain.*".to_owned()],
        ..Default::default()
    };
    Graph {
        name: "deep",
        manifest: chain(length),
        spec,
        tasks: length,
        edges: length - 1,
    }
}

/// Plans the graph without running it, then runs it, and asserts that all tasks succeed.
async fn run_to_the_end(user: &User, graph: Graph) {
    let Graph {
        name,
        manifest,
        spec,
        tasks,
        edges,
    } = graph;
    user.deploy(manifest).await.unwrap();
    let request = api::PlanRunRequest {
        tenant: user.tenant().to_owned(),
        workspace: WORKSPACE.to_owned(),
        spec: Some(spec.clone()),
        max_tasks: u32::try_from(tasks).unwrap(),
        ..Default::default()
    };
    let called = Instant::now();
    let planned = user
        .client
        .planner()
        .plan_run(request)
        .await
        .unwrap()
        .into_inner();
    let planning = called.elapsed();
    let planned_edges: usize = planned
        .plan
        .unwrap_or_default()
        .tasks
        .iter()
        .map(|task| task.upstream.len())
        .sum();
    assert_eq!(
        (planned.task_count as usize, planned_edges),
        (tasks, edges),
        "{name}"
    );
    let called = Instant::now();
    let run = user.trigger_spec(spec).await.unwrap();
    let ended = user.wait_for_end(&run.run_id).await.unwrap();
    assert_eq!(ended.state(), RunState::Succeeded, "{name}: {ended:?}");
    let counts = ended.tasks.unwrap();
    assert_eq!(
        (counts.total as usize, counts.succeeded as usize),
        (tasks, tasks),
        "{name}"
    );
    println!(
        "{name}: {tasks} tasks, {edges} edges, planned in {planning:?}, run in {:?}",
        called.elapsed()
    );
    assert!(
        !full() || planning < PLANNED_WITHIN,
        "{name} was planned in {planning:?}"
    );
}

#[tokio::test]
async fn chaos_f36_large_graphs_run_to_their_end() {
    let graphs = if full() {
        [wide(9_999), diamond(9_998), many_edges(100), deep(10_000)]
    } else {
        [wide(999), diamond(998), many_edges(10), deep(100)]
    };
    let mut running = Running::start().await;
    let user = User::of(&running.mesh).unwrap();
    let _worker = user.start_worker(256);
    for graph in graphs {
        run_to_the_end(&user, graph).await;
    }
    for (instance, megabytes) in running.mesh.peak_memory().unwrap() {
        println!("{instance}: {megabytes:.0} MB");
        assert!(
            !full() || megabytes < MEMORY_MB_MAX,
            "{instance} took {megabytes:.0} MB"
        );
    }
    invariants::check(&mut running.mesh, &binaries())
        .await
        .unwrap();
    running.mesh.stop().await.unwrap();
}
