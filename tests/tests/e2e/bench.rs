//! `bench_engine --sample`, the sample of `make bench`.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::binaries;

/// Ranges wide enough for any machine and any load, so that a figure outside of its range is a
/// defect of the benchmark or of the mesh: a zero, a negative time, a wrong unit, work that was not
/// done.
const RANGES: [(&str, f64, f64); 15] = [
    ("floor_tasks_per_s", 10.0, 10_000_000.0),
    ("idle_latency_ms_p50", 0.1, 30_000.0),
    ("idle_latency_ms_p95", 0.1, 60_000.0),
    ("idle_cpu_percent", 0.0, 10_000.0),
    ("chain_ms_per_hop", 0.1, 30_000.0),
    ("small_runs_tasks_per_s", 0.1, 1_000_000.0),
    ("plan_10k_ms", 0.1, 60_000.0),
    ("fanout_tasks_per_s", 0.1, 1_000_000.0),
    // A sample does not wait until Postgres has reported all of its statistics.
    ("sql_statements_per_task", 0.0, 100.0),
    ("rows_written_per_task", 0.0, 100.0),
    ("rss_mb_total", 9.0, 9.0 * 1_024.0),
    ("rss_mb_max_service", 1.0, 1_024.0),
    ("twins_fanout_ratio", 0.01, 100.0),
    ("twins_small_runs_ratio", 0.01, 100.0),
    ("history_ratio", 0.01, 100.0),
];

#[test]
fn a_sample_of_the_benchmark_prints_plausible_figures() {
    let bench = Command::new(binaries().join("bench_engine"))
        .args(["--sample", "--repeats", "1", "--history", "200"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&bench.stderr);
    assert!(bench.status.success(), "{stderr}");
    let stdout = String::from_utf8(bench.stdout).unwrap();
    let figures: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    let figure = |name: &str| {
        let figure = figures[name].as_f64();
        figure.unwrap_or_else(|| panic!("{name} is missing in {figures}"))
    };
    for (name, min, max) in RANGES {
        let value = figure(name);
        assert!(
            (min..=max).contains(&value),
            "{name} is {value}, outside of {min} to {max}"
        );
    }
    assert_eq!(
        figures.as_object().unwrap().len(),
        RANGES.len(),
        "{figures}"
    );
    assert!(figure("idle_latency_ms_p50") <= figure("idle_latency_ms_p95"));
    assert!(figure("rss_mb_max_service") <= figure("rss_mb_total"));
}
