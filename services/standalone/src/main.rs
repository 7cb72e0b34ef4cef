//! `servo-standalone`: the commands that run a mesh on one machine.

use std::process::ExitCode;

use clap::Parser;
use servo_standalone::Command;

/// Servo on one machine: migrate a database, serve all services in one process, or run a whole
/// mesh.
#[derive(Debug, Parser)]
#[command(name = "servo-standalone", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    Arguments::parse().command.run()
}
