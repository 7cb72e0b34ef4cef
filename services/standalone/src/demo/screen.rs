//! How the example looks while it runs, and when it is over.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, Color, Table};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use servo_client::api;
use servo_client::api::TaskState;

use super::Outcome;

/// A bar on a terminal, a line per end elsewhere, nothing when it is to be quiet.
pub(super) struct Screen {
    quiet: bool,
    bar: ProgressBar,
    seen: BTreeMap<String, TaskState>,
}

impl Screen {
    pub(super) fn open(quiet: bool, deployed: &api::DeployResponse, run: &api::Run) -> Screen {
        let total = u64::from(run.tasks.unwrap_or_default().total);
        if !quiet {
            let version = deployed
                .deployment
                .as_ref()
                .map_or(0, |deployment| deployment.version);
            println!(
                "\nThe example project is deployed as version {version}; {} runs its {total} tasks:",
                run.run_id
            );
        }
        let hidden = quiet || !std::io::stderr().is_terminal();
        let target = if hidden {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let style = ProgressStyle::with_template("  {bar:30.green} {pos}/{len}  {msg}");
        let bar = ProgressBar::with_draw_target(Some(total), target);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Screen {
            quiet,
            bar,
            seen: BTreeMap::new(),
        }
    }

    pub(super) fn show(&mut self, outcome: &Outcome) {
        let mut running = Vec::new();
        let mut ended = 0;
        for task in &outcome.tasks {
            let state = task.state();
            ended += u64::from(task.end_time.is_some());
            if matches!(
                state,
                TaskState::Queued | TaskState::Dispatched | TaskState::Running
            ) {
                running.push(task.task_key.trim_end_matches(":materialize"));
            }
            let before = self.seen.insert(task.task_key.clone(), state);
            if before != Some(state)
                && !self.quiet
                && (task.end_time.is_some() || state == TaskState::RetryWait)
            {
                self.bar
                    .suspend(|| println!("  {} {}", mark(state), line(task)));
            }
        }
        self.bar.set_position(ended);
        self.bar.set_message(running.join(", "));
    }

    pub(super) fn close(&self, outcome: &Outcome) {
        self.bar.finish_and_clear();
        if !self.quiet {
            println!("{}", table(&outcome.tasks));
            println!(
                "  the run ended {:?}, as it should: {}",
                outcome.run.state(),
                outcome.run.error
            );
        }
    }
}

fn mark(state: TaskState) -> &'static str {
    match state {
        TaskState::Succeeded => "✓",
        TaskState::Failed => "✗",
        TaskState::RetryWait => "↻",
        _ => "–",
    }
}

fn line(task: &api::Task) -> String {
    let key = task.task_key.trim_end_matches(":materialize");
    let why = task
        .error
        .as_ref()
        .map_or("", |error| error.message.as_str());
    match task.state() {
        TaskState::RetryWait => format!("{key}: {why}; tried again in a moment"),
        TaskState::Failed => format!("{key}: {why}"),
        TaskState::Skipped => format!("{key}: skipped, for what it is made from is missing"),
        _ => key.to_owned(),
    }
}

fn table(tasks: &[api::Task]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header(["asset", "partition", "state", "attempts", "took"]);
    for task in tasks {
        let state = Cell::new(name(task.state()));
        let state = if crate::show::coloured() {
            state.fg(colour(task.state()))
        } else {
            state
        };
        let text = |text: &str| Cell::new(text);
        let took = took(task).map_or_else(String::new, |took| format!("{} ms", took.as_millis()));
        table.add_row([
            text(&task.asset_key),
            text(&task.partition_key),
            state,
            Cell::new(task.attempt),
            Cell::new(took),
        ]);
    }
    table
}

pub(super) fn name(state: TaskState) -> &'static str {
    state.as_str_name().trim_start_matches("TASK_STATE_")
}

fn colour(state: TaskState) -> Color {
    match state {
        TaskState::Succeeded => Color::Green,
        TaskState::Failed => Color::Red,
        _ => Color::Yellow,
    }
}

fn took(task: &api::Task) -> Option<Duration> {
    let (start, end) = (task.start_time?, task.end_time?);
    let nanos = (end.seconds - start.seconds) * 1_000_000_000 + i64::from(end.nanos - start.nanos);
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}
