//! The stories of `tests/scenarios`, which Python's fold tells too.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use servo_model::retry::{ErrorCategory, RetryPolicy};
use servo_model::states::TaskState;
use servo_model::{AssetKey, Operation, TaskKey};

use super::world::{World, finished, settings};
use crate::core::{AssetSettings, Event, Graph, Outcome, PlannedTask, Slot, TimerKind, Verdict};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Story {
    name: String,
    tasks: Vec<Task>,
    #[serde(default)]
    retry: Retry,
    #[serde(default)]
    attempts: BTreeMap<String, Vec<Attempt>>,
    expect: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    name: String,
    after: Vec<String>,
    over: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Retry {
    max_attempts: Option<u32>,
    retry_types: Vec<String>,
    never_types: Vec<String>,
}

#[derive(Deserialize, Clone, Default)]
#[serde(deny_unknown_fields, default)]
struct Attempt {
    outcome: String,
    items: u32,
    category: String,
    r#type: String,
    retriable: Option<bool>,
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    run: String,
    tasks: BTreeMap<String, String>,
    #[serde(default)]
    attempts: BTreeMap<String, u32>,
    error: Option<String>,
}

#[test]
fn every_fold_tells_these_stories_alike() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/scenarios/runs.json"
    );
    let stories: Vec<Story> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(!stories.is_empty());
    stories.iter().for_each(check);
}

fn check(story: &Story) {
    let mut world = World::begun(story.graph());
    while let Some(slot) = next(&world) {
        if world.state(slot) == TaskState::RetryWait {
            assert_eq!(
                world.timer(slot, TimerKind::Retry),
                Verdict::Folded,
                "{}",
                story.name
            );
            continue;
        }
        assert_eq!(world.claim(slot), Verdict::Folded, "{}", story.name);
        let event = story.end(&world, slot);
        assert_eq!(world.fold(&event), Verdict::Folded, "{}", story.name);
    }
    let named = |name: &str| {
        story
            .slot(name)
            .unwrap_or_else(|| panic!("{}: {name}", story.name))
    };
    let told: BTreeMap<String, String> = world
        .run
        .cells()
        .map(|(slot, cell)| (story.name_of(slot), cell.state.to_string()))
        .collect();
    assert_eq!(told, story.expect.tasks, "{}", story.name);
    for (name, attempts) in &story.expect.attempts {
        assert_eq!(
            world.run.cell(named(name)).unwrap().attempt,
            *attempts,
            "{}: {name}",
            story.name
        );
    }
    assert_eq!(
        world.run.state.to_string(),
        story.expect.run,
        "{}",
        story.name
    );
    let error = world.run.error.as_ref().map(|(_, error)| error.clone());
    assert_eq!(error, story.expect.error, "{}", story.name);
}

fn next(world: &World) -> Option<Slot> {
    let waits = |state| matches!(state, TaskState::Ready | TaskState::RetryWait);
    world
        .run
        .cells()
        .find(|(_, cell)| waits(cell.state))
        .map(|(slot, _)| slot)
}

impl Story {
    fn ordinal(&self, name: &str) -> u32 {
        self.tasks
            .iter()
            .position(|task| task.name == name)
            .unwrap_or_else(|| panic!("no task {name}")) as u32
    }

    /// `m[2]` is a child.
    fn slot(&self, name: &str) -> Option<Slot> {
        match name.split_once('[') {
            None => Some(Slot::planned(self.ordinal(name))),
            Some((parent, item)) => Some(Slot::child(
                self.ordinal(parent),
                item.strip_suffix(']')?.parse().ok()?,
            )),
        }
    }

    fn name_of(&self, slot: Slot) -> String {
        let name = &self.tasks[slot.ordinal as usize].name;
        slot.item
            .map_or_else(|| name.clone(), |item| format!("{name}[{item}]"))
    }

    fn graph(&self) -> Arc<Graph> {
        let tasks = (0u32..)
            .zip(&self.tasks)
            .map(|(ordinal, task)| PlannedTask {
                key: TaskKey::new(
                    AssetKey::new("t", &task.name).unwrap(),
                    None,
                    Operation::Materialize,
                ),
                asset: ordinal,
                partition_key: "".into(),
                upstream: task.after.iter().map(|name| self.ordinal(name)).collect(),
                mapped_over: task.over.as_ref().map(|name| self.ordinal(name)),
                up_to_date: false,
            });
        let assets = (0..self.tasks.len())
            .map(|asset| self.settings(asset))
            .collect();
        Arc::new(Graph::new([9; 32], "d".into(), assets, tasks.collect()).unwrap())
    }

    fn settings(&self, asset: usize) -> AssetSettings {
        let default = RetryPolicy::default();
        let max_attempts = self.retry.max_attempts.unwrap_or(default.max_attempts);
        AssetSettings {
            retry: RetryPolicy {
                max_attempts,
                ..default
            },
            retry_types: self.retry.retry_types.clone(),
            never_types: self.retry.never_types.clone(),
            ..settings(asset, max_attempts)
        }
    }

    /// How the active attempt of a task ends.
    fn end(&self, world: &World, slot: Slot) -> Event {
        let number = world.run.cell(slot).unwrap().attempt as usize - 1;
        let listed = self
            .attempts
            .get(&self.name_of(slot))
            .and_then(|attempts| attempts.get(number));
        let attempt = listed.cloned().unwrap_or_else(|| Attempt {
            outcome: "succeeded".into(),
            ..Default::default()
        });
        let Event::Finished(mut event) = finished(slot, world.active(slot), attempt.outcome())
        else {
            unreachable!("finished makes no other")
        };
        event.message.clone_from(&attempt.message);
        event.items = Some((attempt.items, Arc::from([].as_slice())));
        Event::Finished(event)
    }
}

impl Attempt {
    fn outcome(&self) -> Outcome {
        match self.outcome.as_str() {
            "succeeded" => Outcome::Succeeded,
            "skipped" => Outcome::Skipped,
            "interrupted" => Outcome::Interrupted,
            "check_failed" => Outcome::CheckFailed,
            "failed" => Outcome::Failed {
                category: category(&self.category),
                error_type: self.r#type.clone(),
                retriable: self.retriable,
            },
            other => panic!("{other} is no end of an attempt"),
        }
    }
}

fn category(name: &str) -> ErrorCategory {
    match name {
        "TRANSIENT" => ErrorCategory::Transient,
        "INFRASTRUCTURE" => ErrorCategory::Infrastructure,
        "TIMEOUT" => ErrorCategory::Timeout,
        "USER_CODE" => ErrorCategory::UserCode,
        "INPUT" => ErrorCategory::Input,
        "CONFIGURATION" => ErrorCategory::Configuration,
        other => panic!("{other} is no category"),
    }
}
