//! Runs a command with a temporary Postgres cluster, whose URL is in `SERVO_TEST_DATABASE_URL`.
//!
//! `make test` uses it so that hundreds of test processes share one cluster.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use servo_local::{Postgres, PostgresOptions};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("with-postgres: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let program = words
        .next()
        .context("usage: with-postgres COMMAND [ARGUMENT…]")?;
    let dir = std::env::temp_dir().join(format!("servo-tests-{}", std::process::id()));
    let mut postgres = Postgres::start_with(&dir, PostgresOptions::without_durability())?;
    let status = Command::new(&program)
        .args(words)
        .env("SERVO_TEST_DATABASE_URL", postgres.admin_url())
        .status()
        .with_context(|| format!("run {}", program.display()))?;
    postgres.stop()?;
    std::fs::remove_dir_all(&dir).with_context(|| format!("remove {}", dir.display()))?;
    Ok(ExitCode::from(
        u8::try_from(status.code().unwrap_or(1)).unwrap_or(1),
    ))
}
