use servo_proto::v1::{
    ArtifactKind, CheckDefinition, CodeArtifact, DimensionMapping, PartitionMapping, RetryPolicy,
    RunSpec, ScheduleDefinition, SecretRef, TimeGrain, TimeWindow, Timeouts,
    dimension_mapping::Rule,
};

use super::*;
use crate::core::samples::{asset, days, fixed, manifest, partitioned, source, time};

/// A small manifest without faults.
fn good() -> Manifest {
    manifest(vec![
        source("raw/events"),
        asset("n/a", &["raw/events"]),
        asset("n/b", &["n/a"]),
        partitioned(asset("n/c", &["n/b"]), vec![days()]),
    ])
}

fn faults(manifest: &Manifest) -> Vec<(String, String)> {
    check(manifest).map_or_else(|refusal| refusal.violations, |_| Vec::new())
}

/// After `change` the manifest has exactly one fault, at `path`, whose message contains `part`.
#[track_caller]
fn refuses(change: impl FnOnce(&mut Manifest), path: &str, part: &str) {
    let mut manifest = good();
    change(&mut manifest);
    let found = faults(&manifest);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, path);
    assert!(found[0].1.contains(part), "{found:?}");
}

#[test]
fn a_valid_manifest_passes() {
    assert_eq!(faults(&good()), []);
}

#[test]
fn keys_and_links_must_fit_together() {
    refuses(
        |m| m.assets[3].key = "Bad".into(),
        "assets[3].key",
        "is not an asset key",
    );
    refuses(
        |m| m.assets[3].key = "n/b".into(),
        "assets[3].key",
        "is already declared at assets[2]",
    );
    refuses(
        |m| m.assets[2].dependencies[0].upstream = "raw/event".into(),
        "assets[2].dependencies[0].upstream",
        "there is no asset `raw/event` in the manifest; did you mean `raw/events`?",
    );
    refuses(
        |m| {
            let duplicate = m.assets[2].dependencies[0].clone();
            m.assets[2].dependencies.push(duplicate);
        },
        "assets[2].dependencies[1]",
        "`n/a` appears twice",
    );
    refuses(
        |m| m.assets[2].dependencies[0].parameter = "1st".into(),
        "assets[2].dependencies[0].parameter",
        "is not a parameter name",
    );
    refuses(
        |m| m.assets[2].dependencies[0].mapped = true,
        "assets[2].dependencies[0].mapped",
        "yields no items",
    );
    refuses(|m| m.assets[1].code = None, "assets[1].code", "is missing");
    refuses(
        |m| m.assets[0].code = m.assets[1].code.clone(),
        "assets[0].code",
        "made elsewhere",
    );
    refuses(|m| m.format = 2, "format", "the only format is 1");
}

#[test]
fn settings_are_checked() {
    refuses(
        |m| m.assets[1].config_json = "{".into(),
        "assets[1].config_json",
        "is no JSON",
    );
    refuses(
        |m| m.assets[1].config_json = "1".repeat(65_537),
        "assets[1].config_json",
        "65537 bytes",
    );
    refuses(
        |m| m.assets[1].description = "x".repeat(1 << 20),
        "assets[1].description",
        "1048576 bytes",
    );
    refuses(
        |m| m.assets[1].pool = "x".repeat(1 << 20),
        "assets[1].pool",
        "1048576 bytes",
    );
    refuses(
        |m| {
            m.assets[1].timeouts = Some(Timeouts {
                execution: Some(Default::default()),
                ..Default::default()
            })
        },
        "assets[1].timeouts.execution",
        "is zero",
    );
    refuses(
        |m| {
            m.assets[1].retry = Some(RetryPolicy {
                retry_on_categories: vec![99],
                ..Default::default()
            })
        },
        "assets[1].retry.retry_on_categories[0]",
        "not an error category",
    );
    refuses(
        |m| {
            m.assets[1].checks.push(CheckDefinition {
                name: "c".into(),
                ..Default::default()
            })
        },
        "assets[1].checks[0]",
        "does not say what is checked",
    );
    let secret = SecretRef {
        name: "k".into(),
        provider: "post-it".into(),
        path: "p".into(),
        ..Default::default()
    };
    refuses(
        |m| m.assets[1].secrets.push(secret),
        "assets[1].secrets[0].provider",
        "is not known",
    );
}

#[test]
fn partitions_are_checked() {
    let with = |dimensions| {
        move |m: &mut Manifest| m.assets[3] = partitioned(m.assets[3].clone(), dimensions)
    };
    let at = "assets[3].partitions";
    let daily = |zone, start, end| vec![time("day", TimeGrain::Day, zone, start, end)];
    refuses(
        with(daily("Mars/Base", "2026-01-01", "")),
        &format!("{at}.dimensions[0].time.time_zone"),
        "Mars/Base",
    );
    refuses(
        with(daily("", "yesterday", "")),
        &format!("{at}.dimensions[0].time.start"),
        "is not a date",
    );
    refuses(
        with(daily("", "2026-01-02", "2026-01-01")),
        &format!("{at}.dimensions[0].time.end"),
        "before the start",
    );
    refuses(
        with(vec![fixed("r", &[])]),
        &format!("{at}.dimensions[0].fixed.values"),
        "has 0 values",
    );
    refuses(
        with(vec![fixed("r", &["a", "a"])]),
        &format!("{at}.dimensions[0].fixed.values"),
        "wrong or repeated",
    );
    refuses(
        with(vec![fixed("R", &["a"])]),
        &format!("{at}.dimensions[0].name"),
        "not a dimension name",
    );
    refuses(with(vec![days(), days()]), at, "appears twice");
    let mapping = DimensionMapping {
        upstream: "day".into(),
        downstream: "day".into(),
        rule: Some(Rule::Window(TimeWindow::default())),
    };
    refuses(
        |m| {
            m.assets[2] = partitioned(m.assets[2].clone(), vec![fixed("r", &["x"])]);
            m.assets[3].dependencies[0].mapping = Some(PartitionMapping {
                dimensions: vec![mapping],
            });
        },
        "assets[3].dependencies[0].mapping.dimensions[0].upstream",
        "has no dimension `day`",
    );
}

#[test]
fn assets_made_by_one_task_must_match() {
    let push = |made_by: &str| {
        let made_by = made_by.to_owned();
        move |m: &mut Manifest| {
            let mut asset = asset("n/also", &[]);
            asset.code = None;
            asset.made_by = made_by;
            m.assets.push(asset);
        }
    };
    let mut fine = good();
    push("n/a")(&mut fine);
    assert_eq!(faults(&fine), []);
    refuses(push("n/z"), "assets[4].made_by", "there is no asset `n/z`");
    refuses(
        push("raw/events"),
        "assets[4].made_by",
        "has no task of its own",
    );
    refuses(push("n/c"), "assets[4].made_by", "partitioned differently");
}

#[test]
fn only_source_archives_are_deployed() {
    let artifact = |kind: ArtifactKind| CodeArtifact {
        digest: "0".repeat(64),
        kind: kind.into(),
        ..CodeArtifact::default()
    };
    let mut archive = good();
    archive.artifact = Some(artifact(ArtifactKind::SourceArchive));
    assert_eq!(faults(&archive), []);
    refuses(
        |m| m.artifact = Some(artifact(ArtifactKind::ContainerImage)),
        "artifact.kind",
        "containers are not served yet, so deploy a SOURCE_ARCHIVE",
    );
    refuses(
        |m| m.artifact = Some(artifact(ArtifactKind::Unspecified)),
        "artifact.kind",
        "is missing; write SOURCE_ARCHIVE",
    );
}

#[test]
fn schedules_must_name_existing_assets() {
    let schedule = |cron: &str, zone: &str, selection: &str| ScheduleDefinition {
        name: "s".into(),
        cron: cron.into(),
        time_zone: zone.into(),
        run: Some(RunSpec {
            selection: vec![selection.into()],
            ..Default::default()
        }),
        ..Default::default()
    };
    let push = |schedule| move |m: &mut Manifest| m.schedules.push(schedule);
    refuses(
        push(schedule("0 6 * *", "", "n/a")),
        "schedules[0].cron",
        "not a cron expression of five fields",
    );
    refuses(
        push(schedule("0 6 * * *", "Moon", "n/a")),
        "schedules[0].time_zone",
        "not an IANA time zone",
    );
    refuses(
        push(schedule("0 6 * * *", "", "n/z")),
        "schedules[0].run.selection[0]",
        "there is no asset `n/z`",
    );
    refuses(
        push(schedule("0 6 * * *", "", "+")),
        "schedules[0].run.selection[0]",
        "is not a selection",
    );
}

#[test]
fn all_faults_are_reported_at_once() {
    let mut broken = good();
    broken.assets[1].key = "bad".into();
    broken.assets[2].config_json = "}".into();
    broken.assets[3].partitions =
        partitioned(asset("x/x", &[]), vec![fixed("", &["a"])]).partitions;
    let paths: Vec<String> = faults(&broken).into_iter().map(|(path, _)| path).collect();
    // The asset with the invalid key is also reported as missing by its reader.
    let expected = [
        "assets[1].key",
        "assets[2].config_json",
        "assets[3].partitions.dimensions[0].name",
        "assets[2].dependencies[0].upstream",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn cycles_are_reported_with_their_whole_path() {
    let refusal = check(&manifest(vec![
        asset("n/a", &["n/c"]),
        asset("n/b", &["n/a"]),
        asset("n/c", &["n/b"]),
        asset("n/d", &["n/d"]),
    ]))
    .unwrap_err();
    assert_eq!(refusal.reason, Reason::CycleDetected);
    let cycle = |path: &str| format!("the dependencies form a cycle: {path}; drop one of them");
    let expected = [
        (
            "assets[0].dependencies[0].upstream".to_owned(),
            cycle("n/a -> n/b -> n/c -> n/a"),
        ),
        (
            "assets[3].dependencies[0].upstream".to_owned(),
            cycle("n/d -> n/d"),
        ),
    ];
    assert_eq!(refusal.violations, expected);
}

#[test]
fn a_cycle_through_assets_of_one_task_is_found() {
    let mut also = asset("n/also", &["n/b"]);
    also.code = None;
    also.made_by = "n/a".to_owned();
    let refusal = check(&manifest(vec![
        asset("n/a", &[]),
        also,
        asset("n/b", &["n/a"]),
    ]))
    .unwrap_err();
    assert_eq!(refusal.reason, Reason::CycleDetected, "{refusal:?}");
    assert_eq!(
        refusal.violations[0].0,
        "assets[1].dependencies[0].upstream"
    );
}

#[test]
fn the_number_of_assets_is_limited() {
    let assets = |count: usize| manifest((0..count).map(|n| source(&format!("n/a{n}"))).collect());
    assert_eq!(faults(&assets(ASSETS_PER_MANIFEST_MAX)), []);
    let found = faults(&assets(ASSETS_PER_MANIFEST_MAX + 1));
    assert_eq!((found.len(), found[0].0.as_str()), (1, "assets"));
}

#[test]
fn thousands_of_faults_are_reported_quickly() {
    let dangling = |n: usize| asset(&format!("n/a{n}"), &["n/nothing_like_this"]);
    assert_eq!(
        faults(&manifest(
            (0..ASSETS_PER_MANIFEST_MAX).map(dangling).collect()
        ))
        .len(),
        ASSETS_PER_MANIFEST_MAX
    );
}
