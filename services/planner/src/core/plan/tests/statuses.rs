//! Plans that depend on the states of partitions.

use servo_model::Timestamp;

use super::*;
use crate::core::freshness::{Status, Version};

/// Statuses from `(asset, partition, time of its version, newest attempt failed)`.
fn statuses(known: &[(&str, &str, i64, bool)]) -> Statuses {
    let status = |(asset, partition, at, failed): &(&str, &str, i64, bool)| {
        let version = |at| Version {
            recorded_at: at,
            readable_at: at,
            code: String::new(),
        };
        let promoted = (*at > 0).then(|| version(Timestamp::from_unix_us(*at)));
        (
            ((*asset).to_owned(), (*partition).to_owned()),
            Status {
                promoted,
                failed: *failed,
            },
        )
    };
    known.iter().map(status).collect()
}

/// Returns the names of the tasks that are up to date, and of all others.
fn up_to_date_and_running(
    manifest: Manifest,
    selection: &[&str],
    known: &[(&str, &str, i64, bool)],
) -> (String, String) {
    let graph = DeploymentGraph::new(manifest).unwrap();
    let spec = RunSpec {
        skip_up_to_date: true,
        ..run(selection, None)
    };
    let drafted = draft(&graph, &request(&spec), &moment()).unwrap();
    let built = drafted
        .finish(&graph, &request(&spec), &statuses(known))
        .unwrap();
    let names = |up_to_date: bool| {
        let tasks = built
            .plan
            .tasks
            .iter()
            .filter(|task| task.up_to_date == up_to_date);
        let name = |task: &pb::PlannedTask| task.task_key.replace(":materialize", "");
        tasks.map(name).collect::<Vec<_>>().join(" ")
    };
    (names(true), names(false))
}

#[test]
fn fresh_tasks_that_depend_on_no_running_task_are_up_to_date() {
    let check = |known: &[(&str, &str, i64, bool)], fresh: &str, runs: &str| {
        assert_eq!(
            up_to_date_and_running(diamond(), &["*"], known),
            (fresh.to_owned(), runs.to_owned()),
            "{known:?}"
        );
    };
    let all = [
        ("n/top", "", 1, false),
        ("n/left", "", 2, false),
        ("n/right", "", 2, false),
    ];
    check(&all, "n/top n/left n/right", "n/end");
    check(
        &[&all[..], &[("n/end", "", 3, false)]].concat(),
        "n/top n/left n/right n/end",
        "",
    );
    // `n/right` is newer than `n/end`, which reads it, so `n/end` runs.
    check(
        &[
            &all[..2],
            &[("n/right", "", 9, false), ("n/end", "", 3, false)],
        ]
        .concat(),
        "n/top n/left n/right",
        "n/end",
    );
    check(
        &[
            &all[..2],
            &[("n/right", "", 2, true), ("n/end", "", 3, false)],
        ]
        .concat(),
        "n/top n/left",
        "n/right n/end",
    );
    check(&[], "", "n/top n/left n/right n/end");
    // The source is newer than everything made from it.
    check(
        &[&all[..], &[("raw/x", "", 7, false)]].concat(),
        "",
        "n/top n/left n/right n/end",
    );
    let without_upstream = up_to_date_and_running(
        diamond(),
        &["n/end"],
        &[("n/end", "", 3, false), ("n/left", "", 4, false)],
    );
    assert_eq!(without_upstream, (String::new(), "n/end".to_owned()));
}

#[test]
fn a_task_whose_items_are_needed_is_never_up_to_date() {
    let list = servo_proto::v1::AssetDefinition {
        yields_items: true,
        ..asset("n/list", &[])
    };
    let mut each = asset("n/each", &["n/list"]);
    each.dependencies[0].mapped = true;
    let world = manifest(vec![list, each, asset("n/other", &[])]);
    let known = [
        ("n/list", "", 1, false),
        ("n/each", "", 2, false),
        ("n/other", "", 1, false),
    ];
    assert_eq!(
        up_to_date_and_running(world, &["*"], &known),
        ("n/other".to_owned(), "n/list n/each".to_owned())
    );
}

#[test]
fn partitions_are_selected_by_their_condition() {
    let graph = DeploymentGraph::new(manifest(vec![
        partitioned(asset("n/a", &[]), vec![fixed("p", &["1", "2", "3", "4"])]),
        partitioned(
            asset("n/b", &["n/a"]),
            vec![fixed("p", &["1", "2", "3", "4"])],
        ),
    ]))
    .unwrap();
    // Partition 1 is up to date, 2 is stale, 3 failed with older data, and 4 was never made.
    let known = statuses(&[
        ("n/a", "p=s:1", 1, false),
        ("n/b", "p=s:1", 2, false),
        ("n/a", "p=s:2", 3, false),
        ("n/b", "p=s:2", 2, false),
        ("n/b", "p=s:3", 2, true),
    ]);
    let chosen = |condition: PartitionCondition| {
        let all = PartitionSelection {
            partitions: Some(Partitions::All(true)),
            only: condition.into(),
        };
        let spec = run(&["n/b"], Some(all));
        let drafted = draft(&graph, &request(&spec), &moment()).unwrap();
        let built = drafted
            .finish(&graph, &request(&spec), &known)
            .map_err(|refusal| refusal.reason);
        built.map(|built| {
            built
                .plan
                .tasks
                .iter()
                .map(|task| task.partition_key.replace("p=s:", ""))
                .collect()
        })
    };
    assert_eq!(chosen(PartitionCondition::Missing), Ok("4".to_owned()));
    assert_eq!(chosen(PartitionCondition::Failed), Ok("3".to_owned()));
    assert_eq!(chosen(PartitionCondition::Stale), Ok("2".to_owned()));
    assert_eq!(
        chosen(PartitionCondition::NotUpToDate),
        Ok("234".to_owned())
    );
    assert_eq!(
        chosen(PartitionCondition::Unspecified),
        Ok("1234".to_owned())
    );
    let only_current = PartitionSelection {
        only: PartitionCondition::Stale.into(),
        ..keys(&["p=s:1"])
    };
    let spec = run(&["n/b"], Some(only_current));
    let drafted = draft(&graph, &request(&spec), &moment()).unwrap();
    let refused = drafted.finish(&graph, &request(&spec), &known).unwrap_err();
    assert_eq!(refused.reason, Reason::SelectionEmpty);
}

#[test]
fn a_condition_needs_partitions_and_a_known_value() {
    let world = || {
        manifest(vec![partitioned(
            asset("n/a", &[]),
            vec![fixed("p", &["1"])],
        )])
    };
    let nothing_named = PartitionSelection {
        partitions: None,
        only: PartitionCondition::Stale.into(),
    };
    let (reason, field, _) = refusal(world(), &run(&["n/a"], Some(nothing_named)));
    assert_eq!(
        (reason, field.as_str()),
        (Reason::PartitionInvalid, "spec.partitions.only")
    );
    let unknown = PartitionSelection {
        only: 99,
        ..keys(&["p=s:1"])
    };
    let (reason, field, _) = refusal(world(), &run(&["n/a"], Some(unknown)));
    assert_eq!(
        (reason, field.as_str()),
        (Reason::PartitionInvalid, "spec.partitions.only")
    );
}
