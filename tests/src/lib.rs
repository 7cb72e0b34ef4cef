//! Tests and benchmarks that cross crates: end-to-end, chaos, security and tidiness.
//!
//! The tests are in `tests/`; this library holds the parts that they share.

#![allow(
    clippy::disallowed_methods,
    reason = "tests start tasks without supervision"
)]

pub mod concurrency;
pub mod cpu_usage;
pub mod flaky_proxy;
pub mod invariants;
pub mod journal;
pub mod load;
pub mod manifest;
pub mod running;
pub mod user;
pub mod worker;
pub mod worker_process;

use std::path::{Path, PathBuf};
use std::time::Duration;

use servo_local::wait;

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ is in the root")
        .to_path_buf()
}

/// Whether to test the full counts instead of the sample that `make test` takes.
pub fn full() -> bool {
    std::env::var_os("SERVO_FULL").is_some()
}

/// How long a run may take: the runs of the full counts have thousands of tasks.
pub fn run_limit() -> Duration {
    if full() {
        Duration::from_secs(1_800)
    } else {
        wait::LIMIT
    }
}

/// The seed of random choices: `SERVO_SEED`, or the clock. Printed, so that a failure can be
/// repeated.
pub fn seed() -> u64 {
    let given = std::env::var("SERVO_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let clock = || {
        std::time::UNIX_EPOCH
            .elapsed()
            .map_or(0, |now| u64::from(now.subsec_nanos()))
    };
    let seed = given.unwrap_or_else(clock);
    println!("SERVO_SEED={seed}");
    seed
}

/// Every file below `dir` whose name ends with `suffix`, sorted, without build output and hidden
/// folders.
pub fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                open.push(path);
            } else if path.is_file() && name.ends_with(suffix) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
