//! Prometheus metrics of what this instance folds.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use servo_model::Timestamp;
use servo_model::states::TaskState;

use crate::core::{Changes, Run};

const TASK_SECONDS: [f64; 9] = [0.01, 0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0];
const WAIT_SECONDS: [f64; 9] = [0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0];
const RUN_SECONDS: [f64; 9] = [
    0.1, 1.0, 10.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 28_800.0,
];
const FLUSH_SECONDS: [f64; 8] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 1.0];
const FLUSH_EVENTS: [f64; 8] = [1.0, 4.0, 16.0, 64.0, 256.0, 512.0, 1_024.0, 2_048.0];

/// Attempt numbers above this share a label.
const ATTEMPTS_NAMED_MAX: u32 = 9;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TaskLabels {
    tenant_id: String,
    workspace_id: String,
    asset_key: String,
    state: &'static str,
    outcome: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AssetLabels {
    tenant_id: String,
    asset_key: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    tenant_id: String,
    asset_key: String,
    attempt_number: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TenantLabels {
    tenant_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunLabels {
    tenant_id: String,
    workspace_id: String,
    state: &'static str,
    trigger_type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WorkspaceLabels {
    tenant_id: String,
    workspace_id: String,
}

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    tasks: Family<TaskLabels, Counter>,
    task_seconds: Family<AssetLabels, Histogram, fn() -> Histogram>,
    waits: Family<TenantLabels, Histogram, fn() -> Histogram>,
    attempts: Family<AttemptLabels, Counter>,
    runs: Family<RunLabels, Counter>,
    run_seconds: Family<WorkspaceLabels, Histogram, fn() -> Histogram>,
    pub(crate) flush_seconds: Histogram,
    pub(crate) flush_events: Histogram,
    pub(crate) shards: Gauge,
    pub(crate) set_aside: Counter,
    pub(crate) lane_panics: Counter,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            tasks: Family::default(),
            task_seconds: Family::new_with_constructor(|| Histogram::new(TASK_SECONDS)),
            waits: Family::new_with_constructor(|| Histogram::new(WAIT_SECONDS)),
            attempts: Family::default(),
            runs: Family::default(),
            run_seconds: Family::new_with_constructor(|| Histogram::new(RUN_SECONDS)),
            flush_seconds: Histogram::new(FLUSH_SECONDS),
            flush_events: Histogram::new(FLUSH_EVENTS),
            shards: Gauge::default(),
            set_aside: Counter::default(),
            lane_panics: Counter::default(),
        }
    }
}

impl Metrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("task", "Transitions of tasks", self.tasks.clone());
        registry.register(
            "task_duration_seconds",
            "From a task's start to its end",
            self.task_seconds.clone(),
        );
        let help = "From a task being ready to its start";
        registry.register("task_queue_wait_seconds", help, self.waits.clone());
        registry.register(
            "task_attempts",
            "Attempts by their number",
            self.attempts.clone(),
        );
        registry.register("run", "Transitions of runs", self.runs.clone());
        registry.register(
            "run_duration_seconds",
            "From a run's start to its end",
            self.run_seconds.clone(),
        );
        let help = "How long a flush took to be stored";
        registry.register("scheduler_flush_seconds", help, self.flush_seconds.clone());
        registry.register(
            "scheduler_flush_events",
            "Events per flush",
            self.flush_events.clone(),
        );
        registry.register(
            "scheduler_shards_held",
            "Shards that this instance folds",
            self.shards.clone(),
        );
        let help =
            "Runs that were set aside because an event could not be folded; any is worth an alert";
        registry.register("scheduler_runs_set_aside", help, self.set_aside.clone());
        let help = "Panics after which an instance reloaded its shards; any is worth an alert";
        registry.register("scheduler_lane_panics", help, self.lane_panics.clone());
    }

    /// Counts the changes of a run.
    pub(crate) fn record(&self, run: &Run, changes: &Changes) {
        let tenant_id = run.header.tenant.to_string();
        let workspace_id = run.header.workspace.to_string();
        for (_, state, _) in &changes.run_history {
            let labels = RunLabels {
                tenant_id: tenant_id.clone(),
                workspace_id: workspace_id.clone(),
                trigger_type: run.header.trigger.name(),
                state: state.name(),
            };
            self.runs.get_or_create(&labels).inc();
        }
        if let (Some(ended), Some(started)) = (run.ended_at.filter(|_| changes.run), run.started_at)
        {
            let labels = WorkspaceLabels {
                tenant_id: tenant_id.clone(),
                workspace_id: workspace_id.clone(),
            };
            self.run_seconds
                .get_or_create(&labels)
                .observe(seconds(started, ended));
        }
        self.record_tasks(run, changes, &tenant_id, &workspace_id);
    }

    fn record_tasks(&self, run: &Run, changes: &Changes, tenant_id: &str, workspace_id: &str) {
        let Some(plan) = &run.plan else { return };
        for change in &changes.history {
            let asset_key = plan.settings(change.task_ref.ordinal).asset_key.to_string();
            let labels = TaskLabels {
                tenant_id: tenant_id.to_owned(),
                workspace_id: workspace_id.to_owned(),
                asset_key: asset_key.clone(),
                state: change.to.name(),
                outcome: outcome(change.to),
                reason: change.reason.name(),
            };
            self.tasks.get_or_create(&labels).inc();
            let labels = AssetLabels {
                tenant_id: tenant_id.to_owned(),
                asset_key,
            };
            let Some(task_row) = run.task_row(change.task_ref) else {
                continue;
            };
            match change.to {
                TaskState::Queued => self.record_attempt(labels, change.attempt),
                TaskState::Succeeded | TaskState::Failed => {
                    if let (Some(started), Some(ended)) = (task_row.started_at, task_row.ended_at) {
                        self.task_seconds
                            .get_or_create(&labels)
                            .observe(seconds(started, ended));
                    }
                }
                _ => {}
            }
            // A pulled attempt starts when it is delivered; its start may be reported with its end.
            if let (
                TaskState::Running | TaskState::Succeeded | TaskState::Failed,
                Some(ready),
                Some(started),
            ) = (change.to, task_row.first_ready_at, task_row.started_at)
                && change.from != TaskState::Running
            {
                let labels = TenantLabels {
                    tenant_id: tenant_id.to_owned(),
                };
                self.waits
                    .get_or_create(&labels)
                    .observe(seconds(ready, started));
            }
        }
    }

    fn record_attempt(
        &self,
        AssetLabels {
            tenant_id,
            asset_key,
        }: AssetLabels,
        attempt: u32,
    ) {
        let attempt_number = attempt.min(ATTEMPTS_NAMED_MAX);
        self.attempts
            .get_or_create(&AttemptLabels {
                tenant_id,
                asset_key,
                attempt_number,
            })
            .inc();
    }
}

/// How a task ended; empty while it has not.
fn outcome(state: TaskState) -> &'static str {
    match state {
        TaskState::Succeeded => "success",
        TaskState::Failed => "failure",
        TaskState::Skipped => "skipped",
        TaskState::Cancelled => "cancelled",
        _ => "",
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.since(from).as_secs_f64()
}
