//! All services in one binary, and the commands that run a mesh on one machine.
//!
//! `migrate` migrates a database, `rebuild` folds the scheduler's tables again, `serve` runs the
//! nine services in one process, and `dev` runs them as nine processes on a private Postgres. Start
//! reading at [`Command`].

mod commands;
mod show;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Migrate the schema, roles and grants of a database; safe to repeat and to run concurrently
    Migrate(commands::migrate::Migrate),
    /// Rebuild the scheduler's tables from the ledger, while no scheduler runs, and show the
    /// differences
    Rebuild(commands::rebuild::Rebuild),
    /// Run all nine services in this process, each configured by its own file
    Serve(commands::serve::Serve),
    /// Start the whole mesh and keep it running until Ctrl-C
    Dev(commands::dev::Dev),
}

impl Command {
    pub fn run(self) -> ExitCode {
        let result = match self {
            Command::Migrate(migrate) => migrate.run(),
            Command::Rebuild(rebuild) => rebuild.run(),
            Command::Serve(serve) => return serve.run(),
            Command::Dev(dev) => dev.run(),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("servo: {error:#}");
                ExitCode::FAILURE
            }
        }
    }
}
