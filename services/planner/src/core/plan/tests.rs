mod statuses;

use std::sync::LazyLock;

use proptest::prelude::*;
use servo_proto::v1::dimension_mapping::Rule;
use servo_proto::v1::partition_selection::Partitions;
use servo_proto::v1::{
    CheckDefinition, DimensionMapping, Manifest, PartitionMapping, PartitionSelection, RetryPolicy,
    TimeGrain, TimeWindow, check_definition,
};

use super::*;
use crate::core::samples::{asset, days, fixed, keys, manifest, partitioned, run, source, time};

static TENANT: LazyLock<TenantId> = LazyLock::new(|| "acme".parse().unwrap());
static WORKSPACE: LazyLock<WorkspaceId> = LazyLock::new(|| "prod".parse().unwrap());
const DEPLOYMENT: &str = "01JCZX5RA0000000000000000A";

fn moment() -> Moment {
    Moment {
        now: "2026-06-01T00:00:00Z".parse().unwrap(),
        ..Moment::default()
    }
}

fn request(spec: &RunSpec) -> PlanRequest<'_> {
    PlanRequest {
        tenant: &TENANT,
        workspace: &WORKSPACE,
        deployment_id: DEPLOYMENT,
        spec,
        reused: &[],
        only: &[],
        max_tasks: 0,
    }
}

fn plan(manifest: Manifest, spec: &RunSpec) -> Result<BuiltPlan, Refusal> {
    make(
        &DeploymentGraph::new(manifest).unwrap(),
        &request(spec),
        &moment(),
    )
}

fn make(
    graph: &DeploymentGraph,
    request: &PlanRequest<'_>,
    moment: &Moment,
) -> Result<BuiltPlan, Refusal> {
    draft(graph, request, moment)?.finish(graph, request, &Statuses::new())
}

/// Each task with its upstream tasks, by name: `n/b <- n/a`.
fn shape(built: &BuiltPlan) -> Vec<String> {
    let name = |ordinal: &u32| {
        built.plan.tasks[*ordinal as usize]
            .task_key
            .replace(":materialize", "")
    };
    let line = |(ordinal, task): (u32, &pb::PlannedTask)| {
        let upstream: Vec<String> = task.upstream.iter().map(name).collect();
        let arrow = if upstream.is_empty() { "" } else { " <- " };
        format!("{}{arrow}{}", name(&ordinal), upstream.join(" "))
    };
    (0..).zip(&built.plan.tasks).map(line).collect()
}

fn refusal(manifest: Manifest, spec: &RunSpec) -> (Reason, String, String) {
    let refusal = plan(manifest, spec).unwrap_err();
    (refusal.reason, refusal.field().to_owned(), refusal.message)
}

fn diamond() -> Manifest {
    manifest(vec![
        source("raw/x"),
        asset("n/top", &["raw/x"]),
        asset("n/left", &["n/top"]),
        asset("n/right", &["n/top"]),
        asset("n/end", &["n/right", "n/left"]),
    ])
}

#[test]
fn tasks_are_ordered_and_sources_have_none() {
    let built = plan(diamond(), &run(&["*"], None)).unwrap();
    assert_eq!(
        shape(&built),
        [
            "n/top",
            "n/left <- n/top",
            "n/right <- n/top",
            "n/end <- n/left n/right"
        ]
    );
    let inputs: Vec<&str> = built.plan.tasks[0]
        .inputs
        .iter()
        .map(|input| input.asset_key.as_str())
        .collect();
    assert_eq!(inputs, ["raw/x"]);
    assert_eq!(
        shape(&plan(diamond(), &run(&["n/left", "n/end"], None)).unwrap()),
        ["n/left", "n/end <- n/left"]
    );
}

#[test]
fn plan_settings_contain_every_default() {
    let mut manifest = diamond();
    manifest.assets[1].priority = 5;
    manifest.assets[1].pool = "gpu".into();
    manifest.assets[1].retry = Some(RetryPolicy {
        max_attempts: 7,
        ..Default::default()
    });
    let spec = RunSpec {
        priority: 3,
        ..run(&["n/top"], None)
    };
    let planned = plan(manifest, &spec).unwrap().plan.assets.remove(0);
    assert_eq!((planned.priority, planned.pool.as_str()), (8, "gpu"));
    let (retry, timeouts) = (planned.retry.unwrap(), planned.timeouts.unwrap());
    assert_eq!(
        (retry.max_attempts, retry.retry_on_categories),
        (7, vec![1, 2, 3])
    );
    assert_eq!(retry.initial_delay.unwrap().seconds, 60);
    assert_eq!(timeouts.execution.unwrap().seconds, 3600);
    assert_eq!(timeouts.dispatch_ack.unwrap().seconds, 30);
    assert_eq!(timeouts.heartbeat.unwrap().seconds, 300);
}

#[test]
fn any_change_of_a_plan_changes_its_id() {
    let base = plan(diamond(), &run(&["n/end"], None)).unwrap();
    assert_eq!(plan(diamond(), &run(&["n/end"], None)).unwrap(), base);
    let changed = |change: fn(&mut Manifest, &mut RunSpec)| {
        let (mut manifest, mut spec) = (diamond(), run(&["n/end"], None));
        change(&mut manifest, &mut spec);
        plan(manifest, &spec).unwrap().id
    };
    let changes: [fn(&mut Manifest, &mut RunSpec); 5] = [
        |_, spec| spec.selection.push("n/left".into()),
        |_, spec| spec.config_json = "{\"rate\": 0.5}".into(),
        |_, spec| spec.priority = 1,
        |manifest, _| manifest.assets[4].config_json = "{}".into(),
        |manifest, _| manifest.assets[0].description = "other".into(),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        assert_ne!(changed(change), base.id, "change {index}");
    }
}

#[test]
fn partitions_follow_their_mappings() {
    let hours = time(
        "hour",
        TimeGrain::Hour,
        "",
        "2026-01-01T00:00:00Z",
        "2026-02-01T00:00:00Z",
    );
    let world = || {
        manifest(vec![
            partitioned(asset("n/hourly", &[]), vec![hours.clone()]),
            partitioned(asset("n/daily", &["n/hourly"]), vec![days()]),
            asset("n/total", &["n/daily"]),
        ])
    };
    let one_day = plan(
        world(),
        &run(&["+n/daily"], Some(keys(&["day=d:2026-01-02"]))),
    )
    .unwrap();
    assert_eq!(one_day.plan.tasks.len(), 25);
    assert_eq!(one_day.plan.tasks[24].upstream.len(), 24);
    assert_eq!(one_day.plan.tasks[24].inputs[0].partition_keys.len(), 24);
    // Mappings are followed downstream too: to the day that contains the hour, and to the
    // unpartitioned asset.
    let one_hour = run(&["n/hourly+"], Some(keys(&["hour=t:2026-01-02T05:00:00Z"])));
    assert_eq!(
        shape(&plan(world(), &one_hour).unwrap()),
        [
            "n/hourly[hour=t:2026-01-02T05:00:00Z]",
            "n/daily[day=d:2026-01-02] <- n/hourly[hour=t:2026-01-02T05:00:00Z]",
            "n/total <- n/daily[day=d:2026-01-02]",
        ]
    );
    let latest = PartitionSelection {
        partitions: Some(Partitions::Latest(2)),
        ..Default::default()
    };
    let latest = plan(world(), &run(&["n/daily"], Some(latest))).unwrap();
    assert_eq!(
        shape(&latest),
        ["n/daily[day=d:2026-01-30]", "n/daily[day=d:2026-01-31]"]
    );
}

#[test]
fn a_window_reads_earlier_partitions() {
    let mut rolling = partitioned(asset("n/rolling", &["n/daily"]), vec![days()]);
    let window = DimensionMapping {
        upstream: "day".into(),
        downstream: "day".into(),
        rule: Some(Rule::Window(TimeWindow {
            start_offset: -2,
            end_offset: 0,
        })),
    };
    rolling.dependencies[0].mapping = Some(PartitionMapping {
        dimensions: vec![window],
    });
    let world = manifest(vec![
        partitioned(asset("n/daily", &[]), vec![days()]),
        rolling,
    ]);
    let built = plan(
        world,
        &run(&["n/rolling", "n/daily"], Some(keys(&["day=d:2026-01-05"]))),
    )
    .unwrap();
    // Only selected partitions run; the rest of the window is read without being made.
    assert_eq!(
        shape(&built),
        [
            "n/daily[day=d:2026-01-05]",
            "n/rolling[day=d:2026-01-05] <- n/daily[day=d:2026-01-05]"
        ]
    );
    assert_eq!(
        built.plan.tasks[1].inputs[0].partition_keys,
        ["day=d:2026-01-03", "day=d:2026-01-04", "day=d:2026-01-05"]
    );
}

#[test]
fn invalid_requests_are_refused_with_their_field() {
    let world = || {
        let daily = partitioned(
            asset("n/daily", &[]),
            vec![days(), fixed("region", &["eu", "us"])],
        );
        manifest(vec![source("raw/x"), asset("n/whole", &[]), daily])
    };
    let check = |spec: RunSpec, reason: Reason, field: &str, part: &str| {
        let (found, at, message) = refusal(world(), &spec);
        assert_eq!((found, at.as_str()), (reason, field), "{message}");
        assert!(message.contains(part), "{message}");
    };
    let day = |text: &str| run(&["n/daily"], Some(keys(&[text])));
    for unknown in ["n/dayly", "+n/dayly", "1+n/dayly+"] {
        let offered = "did you mean `n/daily`?";
        check(
            run(&[unknown], None),
            Reason::AssetNotFound,
            "spec.selection[0]",
            offered,
        );
    }
    check(
        run(&["n/whole", "++"], None),
        Reason::SelectionInvalid,
        "spec.selection[1]",
        "is not a selection",
    );
    check(
        run(&[], None),
        Reason::SelectionInvalid,
        "spec.selection",
        "is empty",
    );
    check(
        run(&["tag:none"], None),
        Reason::SelectionEmpty,
        "spec.selection",
        "means no asset",
    );
    check(
        run(&["raw/x"], None),
        Reason::SelectionEmpty,
        "spec.selection",
        "only sources",
    );
    check(
        run(&["n/daily"], None),
        Reason::PartitionInvalid,
        "spec.partitions",
        "say which",
    );
    check(
        run(&["n/whole"], Some(keys(&["x=i:1"]))),
        Reason::PartitionInvalid,
        "spec.partitions",
        "leave this out",
    );
    check(
        day("nonsense"),
        Reason::PartitionInvalid,
        "spec.partitions.keys.keys[0]",
        "not a dimension",
    );
    check(
        day("day=d:2026-01-02"),
        Reason::PartitionInvalid,
        "spec.partitions.keys",
        "day, region",
    );
    check(
        day("day=d:2025-01-02,region=s:eu"),
        Reason::PartitionOutOfRange,
        "spec.partitions.keys",
        "before",
    );
    check(
        day("day=d:2026-02-01,region=s:eu"),
        Reason::PartitionOutOfRange,
        "spec.partitions.keys",
        "after",
    );
    check(
        day("day=d:2026-01-02,region=s:mars"),
        Reason::PartitionInvalid,
        "spec.partitions.keys",
        "no value",
    );
    let config = RunSpec {
        config_json: "nope".into(),
        ..run(&["n/whole"], None)
    };
    check(
        config,
        Reason::InvalidField,
        "spec.config_json",
        "is no JSON",
    );
    let long = "x".repeat(1 << 20);
    check(
        run(&[&long], None),
        Reason::SelectionInvalid,
        "spec.selection[0]",
        "is not a selection",
    );
    check(
        day(&long),
        Reason::PartitionInvalid,
        "spec.partitions.keys.keys[0]",
        "not a dimension",
    );
}

#[test]
fn the_number_of_tasks_is_limited() {
    let world = manifest(vec![partitioned(asset("n/daily", &[]), vec![days()])]);
    let graph = DeploymentGraph::new(world).unwrap();
    let spec = run(
        &["*"],
        Some(PartitionSelection {
            partitions: Some(Partitions::All(true)),
            ..Default::default()
        }),
    );
    let with = |max_tasks| {
        make(
            &graph,
            &PlanRequest {
                max_tasks,
                ..request(&spec)
            },
            &moment(),
        )
    };
    assert_eq!(with(31).unwrap().plan.tasks.len(), 31);
    let refused = with(30).unwrap_err();
    assert_eq!(refused.reason, Reason::QuotaExceeded);
    assert!(
        refused.message.contains("means 31 tasks, more than the 30"),
        "{}",
        refused.message
    );
}

#[test]
fn one_task_may_make_several_assets() {
    let mut also = asset("n/also", &[]);
    also.code = None;
    also.made_by = "n/top".into();
    let mut world = diamond();
    world.assets.push(also);
    world.assets.push(asset("n/reader", &["n/also"]));
    let built = plan(world, &run(&["n/also+"], None)).unwrap();
    assert_eq!(shape(&built), ["n/top", "n/reader <- n/top"]);
    assert_eq!(
        built.plan.assets[built.plan.tasks[0].asset as usize].also_makes,
        ["n/also"]
    );
    assert_eq!(built.plan.tasks[1].inputs[0].asset_key, "n/also");
}

fn mapped() -> Manifest {
    let mut list = asset("n/list", &[]);
    list.yields_items = true;
    let mut each = asset("n/each", &["n/list"]);
    each.dependencies[0].mapped = true;
    manifest(vec![list, each, asset("n/join", &["n/each"])])
}

#[test]
fn a_mapped_task_names_the_task_it_runs_over() {
    let built = plan(mapped(), &run(&["*"], None)).unwrap();
    let over: Vec<Option<u32>> = built
        .plan
        .tasks
        .iter()
        .map(|task| task.mapped_over)
        .collect();
    assert_eq!(
        (shape(&built)[1].as_str(), over),
        ("n/each <- n/list", vec![None, Some(0), None])
    );
    let (reason, _, message) = refusal(mapped(), &run(&["n/each"], None));
    assert_eq!(reason, Reason::SelectionInvalid);
    assert!(
        message.contains("runs over the items of `n/list`"),
        "{message}"
    );
}

fn reused_output(also_made: &[&str]) -> ReusedOutput {
    let also_made = also_made.iter().map(|asset| (*asset).into()).collect();
    ReusedOutput {
        task_key: "n/top:materialize".into(),
        materialization_id: DEPLOYMENT.into(),
        also_made,
    }
}

#[test]
fn a_retry_runs_the_named_tasks_and_reuses_other_outputs() {
    let (graph, spec) = (DeploymentGraph::new(diamond()).unwrap(), run(&["*"], None));
    let reused = [reused_output(&[])];
    let only = [
        "n/end:materialize".to_owned(),
        "n/left:materialize".to_owned(),
    ];
    let retry = PlanRequest {
        reused: &reused,
        only: &only,
        ..request(&spec)
    };
    let built = make(&graph, &retry, &moment()).unwrap();
    assert_eq!(shape(&built), ["n/left", "n/end <- n/left"]);
    assert_eq!(built.plan.reused, reused);
    let unknown = ["n/none:materialize".to_owned()];
    let refused = make(
        &graph,
        &PlanRequest {
            only: &unknown,
            ..request(&spec)
        },
        &moment(),
    )
    .unwrap_err();
    assert_eq!(
        (refused.reason, refused.field()),
        (Reason::InvalidField, "only_task_keys[0]")
    );
    let reusing = |reused: &[ReusedOutput]| {
        make(
            &graph,
            &PlanRequest {
                reused,
                only: &only,
                ..request(&spec)
            },
            &moment(),
        )
    };
    assert!(reusing(&[reused_output(&[]), reused_output(&[])]).is_err());
    let both = reusing(&[reused_output(&["n/also"])]).unwrap();
    assert_eq!(
        (both.plan.reused[0].also_made.len(), both.id == built.id),
        (1, false),
        "another reused output is another plan"
    );
    let refused = reusing(&[reused_output(&["n/also", "Not An Asset"])]).unwrap_err();
    assert_eq!(
        (refused.reason, refused.field()),
        (Reason::InvalidField, "reused[0].also_made[1]")
    );
    // Items are not stored, so the task that yields them runs again.
    let graph = DeploymentGraph::new(mapped()).unwrap();
    let only = ["n/each:materialize".to_owned()];
    let built = make(
        &graph,
        &PlanRequest {
            only: &only,
            ..request(&spec)
        },
        &moment(),
    )
    .unwrap();
    assert_eq!(shape(&built), ["n/list", "n/each <- n/list"]);
}

#[test]
fn checks_read_the_asset_they_check() {
    let mut world = diamond();
    world.assets[2].checks.push(CheckDefinition {
        name: "rows".into(),
        spec: Some(check_definition::Spec::RowCount(Default::default())),
        ..Default::default()
    });
    let spec = RunSpec {
        operation: pb::Operation::Check.into(),
        ..run(&["*"], None)
    };
    let built = plan(world, &spec).unwrap();
    assert_eq!(built.plan.tasks.len(), 1);
    assert_eq!(built.plan.tasks[0].task_key, "n/left:check");
    assert_eq!(built.plan.tasks[0].inputs[0].asset_key, "n/left");
}

#[test]
fn large_graphs_are_planned() {
    let asset = |n: usize| {
        let upstream: Vec<String> = (1..=5)
            .filter_map(|back| n.checked_sub(back * 7))
            .map(|n| format!("n/a{n}"))
            .collect();
        asset(
            &format!("n/a{n}"),
            &upstream.iter().map(String::as_str).collect::<Vec<_>>(),
        )
    };
    let built = plan(
        manifest((0..10_000).map(asset).collect()),
        &run(&["*"], None),
    )
    .unwrap();
    let edges: usize = built
        .plan
        .tasks
        .iter()
        .map(|task| task.upstream.len())
        .sum();
    assert_eq!(
        (built.plan.tasks.len(), edges),
        (10_000, 5 * 10_000 - 7 * (1 + 2 + 3 + 4 + 5))
    );
}

/// Fewer cases than the default, because each one is expensive; `PROPTEST_CASES` overrides it.
fn reduced_cases() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(64),
    }
}

proptest! {
    #![proptest_config(reduced_cases())]

    /// The digest of a manifest and its plans do not depend on the order of its lists.
    #[test]
    fn plans_do_not_depend_on_the_order_of_lists(
        edges in prop::collection::btree_set((0usize..9, 0usize..9), 0..20),
        order in Just((0usize..9).collect::<Vec<_>>()).prop_shuffle(),
        expression in prop::sample::select(vec!["*", "n/t8", "+n/t5", "n/t0+", "1+n/t7"]),
    ) {
        let key = |n: usize| format!("n/t{n}");
        let node = |n: usize| {
            let upstream: Vec<String> = edges.iter().filter(|(a, b)| a < b && *b == n).map(|(a, _)| key(*a)).collect();
            let upstream: Vec<&str> = upstream.iter().map(String::as_str).collect();
            let node = asset(&key(n), &upstream);
            // Every third asset is partitioned, so that mappings are covered.
            if n.is_multiple_of(3) { partitioned(node, vec![days(), fixed("r", &["b", "a"])]) } else { node }
        };
        let mut shuffled = manifest(order.into_iter().map(node).collect());
        for asset in &mut shuffled.assets {
            asset.dependencies.reverse();
            if let Some(partitions) = &mut asset.partitions {
                partitions.dimensions.reverse();
            }
        }
        let sorted = DeploymentGraph::new(manifest((0..9).map(node).collect())).unwrap();
        let shuffled = DeploymentGraph::new(shuffled).unwrap();
        prop_assert_eq!(sorted.digest, shuffled.digest);
        let selection = PartitionSelection { partitions: Some(Partitions::Latest(2)), ..Default::default() };
        for partitions in [None, Some(selection)] {
            let spec = run(&[expression], partitions);
            let built = |graph: &DeploymentGraph| make(graph, &super::tests::request(&spec), &moment());
            prop_assert_eq!(built(&sorted), built(&shuffled));
        }
    }
}

#[test]
fn a_request_for_millions_of_partitions_is_refused_before_keys_are_built() {
    let many: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let wide = partitioned(
        asset("n/wide", &[]),
        vec![fixed("a", &many), fixed("b", &many)],
    );
    let reader = manifest(vec![wide, asset("n/reader", &["n/wide"])]);
    let (reason, field, message) = refusal(reader, &run(&["n/reader"], None));
    assert_eq!(
        (reason, field.as_str()),
        (Reason::QuotaExceeded, "spec.partitions")
    );
    assert!(message.contains("100000000 partitions"), "{message}");
    let daily = |n: usize| {
        partitioned(
            asset(&format!("n/d{n}"), &[]),
            vec![time("day", TimeGrain::Day, "", "2000-01-01", "")],
        )
    };
    let all = PartitionSelection {
        partitions: Some(Partitions::All(true)),
        ..Default::default()
    };
    let (reason, ..) = refusal(
        manifest((0..1_000).map(daily).collect()),
        &run(&["*"], Some(all)),
    );
    assert_eq!(reason, Reason::QuotaExceeded);
}

#[test]
fn a_slice_must_not_have_both_values_and_ends() {
    use servo_proto::v1::{DimensionSlice, PartitionSlices};
    let slice = DimensionSlice {
        dimension: "day".to_owned(),
        values: vec!["2026-01-01".to_owned()],
        start: "2026-01-02".to_owned(),
        ..Default::default()
    };
    let slices = Partitions::Slices(PartitionSlices {
        slices: vec![slice],
    });
    let both = PartitionSelection {
        partitions: Some(slices),
        ..Default::default()
    };
    let world = manifest(vec![partitioned(asset("n/a", &[]), vec![days()])]);
    let (reason, field, _) = refusal(world, &run(&["n/a"], Some(both)));
    assert_eq!(
        (reason, field.as_str()),
        (Reason::PartitionInvalid, "spec.partitions.slices.slices[0]")
    );
}
