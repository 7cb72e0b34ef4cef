//! `migrate`: migrates a database. Nothing else changes a schema.

use anyhow::{Context, Result};
use clap::Args;
use servo_store::migrate::{MigrationReport, migrate};

#[derive(Debug, Args)]
pub struct Migrate {
    /// postgres://user:password@host:port/database, with a user that may create roles
    #[arg(long, env = "SERVO_DATABASE_URL", hide_env_values = true)]
    database_url: String,
    /// The password that the service roles get
    #[arg(long, env = "SERVO_ROLE_PASSWORD", hide_env_values = true)]
    role_password: String,
}

impl Migrate {
    pub fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
        let report = runtime.block_on(migrate(&self.database_url, &self.role_password))?;
        println!("{}", summary(&report));
        Ok(())
    }
}

fn summary(report: &MigrationReport) -> String {
    match report.applied.as_slice() {
        [] => format!("the schema is at version {}; nothing to do", report.version),
        applied => {
            format!(
                "the schema is at version {}; applied now:\n  {}",
                report.version,
                applied.join("\n  ")
            )
        }
    }
}
