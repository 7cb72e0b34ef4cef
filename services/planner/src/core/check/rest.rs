//! Checks everything in a manifest except its assets.

use std::collections::HashSet;

use servo_model::AssetKey;
use servo_model::selection::Selection;
use servo_proto::v1::sensor_definition::Source;
use servo_proto::v1::{ArtifactKind, GapPolicy, Manifest, OverlapPolicy, RunSpec};

use super::{Faults, Names, assets, values};

const DEFINITIONS_MAX: usize = 10_000;
const LABELS_MAX: usize = 32;

pub(super) fn check(manifest: &Manifest, names: &Names<'_>, faults: &mut Faults) {
    values::short(
        faults,
        "code_version",
        &manifest.code_version,
        values::NAME_BYTES_MAX,
    );
    if manifest.labels.len() > LABELS_MAX {
        faults.add(
            "labels",
            format!(
                "has {} entries; at most {LABELS_MAX} are allowed",
                manifest.labels.len()
            ),
        );
    }
    for (key, value) in &manifest.labels {
        values::name(faults, "labels", key);
        values::short(faults, "labels", value, values::NAME_BYTES_MAX);
    }
    if let Some(artifact) = &manifest.artifact {
        values::digest(faults, "artifact.digest", &artifact.digest);
        match ArtifactKind::try_from(artifact.kind) {
            Ok(ArtifactKind::SourceArchive) => {}
            // No worker starts containers, so the tasks of such a deployment could never run.
            Ok(ArtifactKind::ContainerImage) => faults.add(
                "artifact.kind",
                "is CONTAINER_IMAGE; containers are not served yet, so deploy a SOURCE_ARCHIVE",
            ),
            _ => faults.add("artifact.kind", "is missing; write SOURCE_ARCHIVE"),
        }
    }
    for (field, count) in [
        ("schedules", manifest.schedules.len()),
        ("sensors", manifest.sensors.len()),
    ] {
        if count > DEFINITIONS_MAX {
            faults.add(
                field,
                format!("has {count} entries; at most {DEFINITIONS_MAX} are allowed"),
            );
            return;
        }
    }
    check_schedules(manifest, names, faults);
    check_sensors(manifest, names, faults);
}

fn check_schedules(manifest: &Manifest, names: &Names<'_>, faults: &mut Faults) {
    let mut seen = HashSet::new();
    for (index, schedule) in manifest.schedules.iter().enumerate() {
        let at = format!("schedules[{index}]");
        check_name(faults, &at, &schedule.name, &mut seen);
        values::cron(faults, &format!("{at}.cron"), &schedule.cron);
        values::zone(faults, &format!("{at}.time_zone"), &schedule.time_zone);
        values::listed::<GapPolicy>(faults, &format!("{at}.gap"), schedule.gap);
        values::listed::<OverlapPolicy>(faults, &format!("{at}.overlap"), schedule.overlap);
        values::duration(
            faults,
            &format!("{at}.catch_up_window"),
            schedule.catch_up_window,
            true,
        );
        match &schedule.run {
            Some(run) => check_run(faults, &format!("{at}.run"), run, names),
            None => faults.add(format!("{at}.run"), "is missing; say what a tick runs"),
        }
    }
}

fn check_sensors(manifest: &Manifest, names: &Names<'_>, faults: &mut Faults) {
    let mut seen = HashSet::new();
    for (index, sensor) in manifest.sensors.iter().enumerate() {
        let at = format!("sensors[{index}]");
        check_name(faults, &at, &sensor.name, &mut seen);
        match &sensor.source {
            None => faults.add(&at, "has no source; say what it watches"),
            Some(Source::Poll(poll)) => {
                values::duration(faults, &format!("{at}.poll.interval"), poll.interval, false);
                values::duration(faults, &format!("{at}.poll.timeout"), poll.timeout, false);
                match &poll.code {
                    Some(code) => {
                        assets::check_code_ref(faults, &format!("{at}.poll.code"), code, manifest)
                    }
                    None => faults.add(
                        format!("{at}.poll.code"),
                        "is missing; say how it is polled",
                    ),
                }
            }
            Some(_) => {}
        }
        if let Some(run) = &sensor.run {
            check_run(faults, &format!("{at}.run"), run, names);
        }
    }
}

fn check_name<'a>(faults: &mut Faults, at: &str, name: &'a str, seen: &mut HashSet<&'a str>) {
    values::name(faults, format!("{at}.name"), name);
    if !seen.insert(name) {
        faults.add(
            format!("{at}.name"),
            "appears twice in the manifest; keep one",
        );
    }
}

/// Every asset that a selection names must exist in the manifest.
fn check_run(faults: &mut Faults, at: &str, run: &RunSpec, names: &Names<'_>) {
    values::config(faults, &format!("{at}.config_json"), &run.config_json);
    let selection = match Selection::parse(&run.selection) {
        Ok(selection) => selection,
        Err(error) => {
            return faults.add(
                format!("{at}.selection[{}]", error.index),
                error.to_string(),
            );
        }
    };
    let unknown = selection
        .named()
        .filter(|(_, key)| !names.contains_key(key.canonical().as_str()));
    for (index, key) in unknown.collect::<Vec<(usize, &AssetKey)>>() {
        let key = key.canonical();
        let suggestion = faults.suggest(&key, names);
        faults.add(
            format!("{at}.selection[{index}]"),
            format!("there is no asset `{key}` in the manifest{suggestion}"),
        );
    }
}
