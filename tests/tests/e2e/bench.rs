//! A sample of `make bench`: everything is measured, little of it, and what it did was done right.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::binaries;

/// What the engine's bench must tell.
const FIGURES: [&str; 14] = [
    "floor_tasks_per_s",
    "idle_latency_ms_p50",
    "idle_latency_ms_p95",
    "idle_cpu_percent",
    "chain_ms_per_hop",
    "small_runs_tasks_per_s",
    "plan_10k_ms",
    "fanout_tasks_per_s",
    "sql_statements_per_task",
    "rows_written_per_task",
    "rss_mb_total",
    "rss_mb_max_service",
    "twins_fanout_ratio",
    "twins_small_runs_ratio",
];

#[test]
fn a_sample_of_the_bench_tells_every_figure() {
    let bench = Command::new(binaries().join("bench_engine"))
        .args(["--sample", "--repeats", "1", "--history", "200"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        bench.status.success(),
        "{}",
        String::from_utf8_lossy(&bench.stderr)
    );
    let text = String::from_utf8(bench.stdout).unwrap();
    let told: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    for figure in FIGURES.into_iter().chain(["history_ratio"]) {
        assert!(told[figure].is_number(), "{figure} is missing in {told}");
    }
}
