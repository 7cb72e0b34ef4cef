//! `rebuild`: rebuilds the scheduler's tables from the ledger, while no scheduler runs.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use clap::Args;
use comfy_table::{Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget};
use servo_model::{Service, Stream};
use servo_scheduler::Rebuilt;
use servo_store::{DatabaseConfig, Store};

#[derive(Debug, Args)]
pub struct Rebuild {
    /// postgres://host:port/database; connects with the scheduler's role
    #[arg(long, env = "SERVO_DATABASE__URL")]
    database_url: String,
    /// The password of the service roles
    #[arg(long, env = "SERVO_ROLE_PASSWORD", hide_env_values = true)]
    role_password: String,
    /// One line of JSON instead of a table
    #[arg(long)]
    json: bool,
}

impl Rebuild {
    pub fn run(self) -> Result<()> {
        let config = DatabaseConfig::new(self.database_url, self.role_password);
        let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
        let rebuilt = runtime.block_on(async {
            let store = Store::connect(Service::Scheduler, &config)?;
            store.check().await?;
            let bar = ProgressBar::new(u64::from(Stream::Execution.shard_count().unsigned_abs()));
            if self.json || !std::io::stderr().is_terminal() {
                bar.set_draw_target(ProgressDrawTarget::hidden());
            }
            let rebuilt = servo_scheduler::rebuild(&store, |_| bar.inc(1)).await;
            bar.finish_and_clear();
            anyhow::Ok(rebuilt?)
        })?;
        println!(
            "{}",
            if self.json {
                json(&rebuilt)
            } else {
                table(&rebuilt)
            }
        );
        Ok(())
    }
}

fn json(rebuilt: &[Rebuilt]) -> String {
    let line = |table: &Rebuilt| {
        serde_json::json!({
            "table": format!("scheduler.{}", table.table),
            "rows_before": table.rows_before,
            "rows_after": table.rows_after,
            "equal": table.equal,
        })
    };
    serde_json::Value::Array(rebuilt.iter().map(line).collect()).to_string()
}

fn table(rebuilt: &[Rebuilt]) -> String {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_header(["table", "rows before", "rows now", ""]);
    for one in rebuilt {
        let verdict = if one.equal {
            "unchanged"
        } else {
            "different, corrected"
        };
        let (before, after) = (one.rows_before.to_string(), one.rows_after.to_string());
        table.add_row([
            format!("scheduler.{}", one.table),
            before,
            after,
            verdict.to_owned(),
        ]);
    }
    table.to_string()
}
