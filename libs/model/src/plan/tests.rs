use proptest::prelude::*;

use super::*;

fn key(name: &str) -> TaskKey {
    format!("raw/{name}:materialize").parse().unwrap()
}

fn task(name: &str, upstream: &[&str]) -> PlanTask<TaskKey> {
    PlanTask {
        key: key(name),
        upstream: upstream.iter().map(|name| key(name)).collect(),
        map_over: None,
        priority: 0,
        resources: Resources {
            memory_bytes: 1,
            cpu_millicores: 2,
            timeout_ms: 3,
        },
        retry: RetryPolicy::default(),
        settings: BTreeMap::new(),
    }
}

fn header() -> PlanHeader {
    PlanHeader {
        tenant: "acme".parse().unwrap(),
        workspace: "prod".parse().unwrap(),
        deployment: Digest::of("deployment"),
        settings: BTreeMap::new(),
    }
}

fn plan(tasks: Vec<PlanTask<TaskKey>>) -> Plan {
    Plan::new(header(), tasks).unwrap()
}

fn refusal(tasks: Vec<PlanTask<TaskKey>>) -> String {
    Plan::new(header(), tasks).unwrap_err().to_string()
}

#[test]
fn tasks_come_after_their_upstreams() {
    let mapped = PlanTask {
        map_over: Some(key("z")),
        ..task("a", &["b", "z", "b"])
    };
    let plan = plan(vec![mapped, task("b", &["z"]), task("z", &[])]);
    let names: Vec<&str> = plan
        .tasks()
        .iter()
        .map(|task| task.key.asset().name())
        .collect();
    assert_eq!(names, ["z", "b", "a"]);
    assert_eq!(
        (
            plan.tasks()[2].upstream.as_slice(),
            plan.tasks()[2].map_over
        ),
        (&[0, 1][..], Some(0))
    );
}

#[test]
fn invalid_plans_are_rejected() {
    assert_eq!(
        refusal(vec![task("a", &["gone"])]),
        "the plan's tasks do not fit together: `raw/a:materialize` depends on `raw/gone:materialize`, which is not \
         there; add it or drop the dependency"
    );
    assert_eq!(
        refusal(vec![task("a", &[]), task("a", &[])]),
        "the plan's tasks do not fit together: `raw/a:materialize` appears twice; keep one"
    );
    assert_eq!(
        refusal(vec![task("a", &["b"]), task("b", &["a"])]),
        "the plan's tasks do not fit together: the dependencies form a cycle: raw/a:materialize -> \
         raw/b:materialize -> raw/a:materialize; drop one of them"
    );
    assert_eq!(
        refusal(vec![
            PlanTask {
                map_over: Some(key("b")),
                ..task("a", &[])
            },
            task("b", &[])
        ]),
        "the task `raw/a:materialize` is mapped over `raw/b:materialize`, which is not among its upstreams; add it \
         there"
    );
    let deep = (0..64).fold(Json::Null, |inner, _| Json::Array(vec![inner]));
    let too_deep = PlanTask {
        settings: BTreeMap::from([("deep".to_owned(), deep)]),
        ..task("a", &[])
    };
    assert!(
        refusal(vec![too_deep])
            .starts_with("the plan's settings have no canonical form: at .tasks[0].settings")
    );
}

#[test]
fn plan_size_is_limited() {
    let tasks: Vec<_> = (0..=TASKS_PER_RUN_MAX)
        .map(|n| task(&format!("t{n}"), &[]))
        .collect();
    assert_eq!(
        Plan::new(header(), tasks[1..].to_vec())
            .unwrap()
            .tasks()
            .len(),
        TASKS_PER_RUN_MAX
    );
    assert_eq!(
        Plan::new(header(), tasks),
        Err(PlanError::TooManyTasks(TASKS_PER_RUN_MAX + 1))
    );
}

type Change = fn(&mut PlanHeader, &mut PlanTask<TaskKey>);

#[test]
fn plan_id_covers_everything_and_fingerprint_only_the_shape() {
    let base = plan(vec![task("a", &["b"]), task("b", &[])]);
    let changes: [(&str, bool, Change); 9] = [
        ("tenant", true, |header, _| {
            header.tenant = "other".parse().unwrap()
        }),
        ("priority", true, |_, task| task.priority = 1),
        ("resources", true, |_, task| task.resources.timeout_ms = 4),
        ("upstream", true, |_, task| task.upstream.clear()),
        ("deployment", false, |header, _| {
            header.deployment = Digest::of("other")
        }),
        ("retry", false, |_, task| task.retry.max_attempts = 9),
        ("map over", false, |_, task| task.map_over = Some(key("b"))),
        ("run settings", false, |header, _| {
            header.settings = BTreeMap::from([("config".into(), Json::Null)])
        }),
        ("task settings", false, |_, task| {
            task.settings = BTreeMap::from([("pool".into(), Json::Text("gpu".into()))])
        }),
    ];
    for (what, shapes, change) in changes {
        let (mut header, mut first) = (header(), task("a", &["b"]));
        change(&mut header, &mut first);
        let changed = Plan::new(header, vec![first, task("b", &[])]).unwrap();
        assert_ne!(changed.id(), base.id(), "{what}");
        assert_eq!(
            changed.fingerprint() != base.fingerprint(),
            shapes,
            "{what}"
        );
    }
}

proptest! {
    #[test]
    fn input_order_does_not_matter(
        edges in prop::collection::btree_set((0usize..8, 0usize..8), 0..16),
        order in Just((0usize..8).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let name = |n: &usize| format!("t{n}");
        let node = |n: usize| {
            let upstream: Vec<String> = edges.iter().filter(|(a, b)| a < b && *b == n).map(|(a, _)| name(a)).collect();
            task(&name(&n), &upstream.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let mut shuffled: Vec<_> = order.into_iter().map(node).collect();
        shuffled.iter_mut().for_each(|task| task.upstream.reverse());
        prop_assert_eq!(plan(shuffled), plan((0..8).map(node).collect()));
    }
}
