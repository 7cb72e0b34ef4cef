//! All services in one binary, and the commands that run a mesh on one machine.
//!
//! `migrate` brings a database up to date, `rebuild` folds its tables anew, `serve` runs the nine services in one process, `demo` and `dev` run
//! them as nine processes on a private Postgres. Start reading at [`Command`].

mod commands;
mod demo;
mod show;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Bring the schema, roles and grants of a database up to date; safe to run twice and at once
    Migrate(commands::migrate::Migrate),
    /// Fold the scheduler's tables anew from the ledger, while no scheduler runs, and say what was different
    Rebuild(commands::rebuild::Rebuild),
    /// Run all nine services in this process, each configured by its own file
    Serve(commands::serve::Serve),
    /// Start the whole mesh, run the example project on it, stop it again
    Demo(commands::local::Local),
    /// Start the whole mesh and keep it up until Ctrl-C
    Dev(commands::local::Local),
}

impl Command {
    pub fn run(self) -> ExitCode {
        let done = match self {
            Command::Migrate(migrate) => migrate.run(),
            Command::Rebuild(rebuild) => rebuild.run(),
            Command::Serve(serve) => return serve.run(),
            Command::Demo(local) => local.demo(),
            Command::Dev(local) => local.dev(),
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("servo: {error:#}");
                ExitCode::FAILURE
            }
        }
    }
}
