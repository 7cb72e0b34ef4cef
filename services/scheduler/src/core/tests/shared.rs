//! The scenarios of `tests/scenarios`, which the Python fold runs too.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use servo_model::retry::{ErrorCategory, RetryPolicy};
use servo_model::states::TaskState;
use servo_model::{AssetKey, Operation, TaskKey, TaskRef};

use super::world::{World, finished, settings};
use crate::core::{AssetSettings, Event, Outcome, Plan, PlannedTask, TimerKind, Verdict};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    name: String,
    tasks: Vec<ScenarioTask>,
    #[serde(default)]
    retry: ScenarioRetry,
    #[serde(default)]
    attempts: BTreeMap<String, Vec<ScenarioAttempt>>,
    expect: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioTask {
    name: String,
    after: Vec<String>,
    over: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ScenarioRetry {
    max_attempts: Option<u32>,
    retry_types: Vec<String>,
    never_types: Vec<String>,
}

#[derive(Deserialize, Clone, Default)]
#[serde(deny_unknown_fields, default)]
struct ScenarioAttempt {
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
fn both_folds_agree_on_the_shared_scenarios() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/scenarios/runs.json"
    );
    let scenarios: Vec<Scenario> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(!scenarios.is_empty());
    scenarios.iter().for_each(check);
}

fn check(scenario: &Scenario) {
    let mut world = World::begun(scenario.plan());
    while let Some(task_ref) = next(&world) {
        if world.state(task_ref) == TaskState::RetryWait {
            assert_eq!(
                world.timer(task_ref, TimerKind::Retry),
                Verdict::Folded,
                "{}",
                scenario.name
            );
            continue;
        }
        assert_eq!(world.claim(task_ref), Verdict::Folded, "{}", scenario.name);
        let event = scenario.end(&world, task_ref);
        assert_eq!(world.fold(&event), Verdict::Folded, "{}", scenario.name);
    }
    let named = |name: &str| {
        scenario
            .task_ref(name)
            .unwrap_or_else(|| panic!("{}: {name}", scenario.name))
    };
    let states: BTreeMap<String, String> = world
        .run
        .task_rows()
        .map(|(task_ref, task_row)| (scenario.name_of(task_ref), task_row.state.to_string()))
        .collect();
    assert_eq!(states, scenario.expect.tasks, "{}", scenario.name);
    for (name, attempts) in &scenario.expect.attempts {
        assert_eq!(
            world.run.task_row(named(name)).unwrap().attempt,
            *attempts,
            "{}: {name}",
            scenario.name
        );
    }
    assert_eq!(
        world.run.state.to_string(),
        scenario.expect.run,
        "{}",
        scenario.name
    );
    let error = world.run.error.as_ref().map(|(_, error)| error.clone());
    assert_eq!(error, scenario.expect.error, "{}", scenario.name);
}

fn next(world: &World) -> Option<TaskRef> {
    let waits = |state| matches!(state, TaskState::Ready | TaskState::RetryWait);
    world
        .run
        .task_rows()
        .find(|(_, task_row)| waits(task_row.state))
        .map(|(task_ref, _)| task_ref)
}

impl Scenario {
    fn ordinal(&self, name: &str) -> u32 {
        self.tasks
            .iter()
            .position(|task| task.name == name)
            .unwrap_or_else(|| panic!("no task {name}")) as u32
    }

    /// `m[2]` is a mapped task.
    fn task_ref(&self, name: &str) -> Option<TaskRef> {
        match name.split_once('[') {
            None => Some(TaskRef::planned(self.ordinal(name))),
            Some((parent, item)) => Some(TaskRef::mapped(
                self.ordinal(parent),
                item.strip_suffix(']')?.parse().ok()?,
            )),
        }
    }

    fn name_of(&self, task_ref: TaskRef) -> String {
        let name = &self.tasks[task_ref.ordinal as usize].name;
        task_ref
            .map_index
            .map_or_else(|| name.clone(), |item| format!("{name}[{item}]"))
    }

    fn plan(&self) -> Arc<Plan> {
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
        Arc::new(Plan::new([9; 32], "d".into(), assets, tasks.collect()).unwrap())
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
    fn end(&self, world: &World, task_ref: TaskRef) -> Event {
        let number = world.run.task_row(task_ref).unwrap().attempt as usize - 1;
        let listed = self
            .attempts
            .get(&self.name_of(task_ref))
            .and_then(|attempts| attempts.get(number));
        let attempt = listed.cloned().unwrap_or_else(|| ScenarioAttempt {
            outcome: "succeeded".into(),
            ..Default::default()
        });
        let Event::TaskFinished(mut event) =
            finished(task_ref, world.active(task_ref), attempt.outcome())
        else {
            unreachable!("finished returns this variant")
        };
        event.message.clone_from(&attempt.message);
        event.items = Some((attempt.items, Arc::from([].as_slice())));
        Event::TaskFinished(event)
    }
}

impl ScenarioAttempt {
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
            other => panic!("{other} is not an outcome"),
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
        other => panic!("{other} is not a category"),
    }
}
