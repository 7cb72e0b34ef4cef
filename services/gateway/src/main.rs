//! The gateway as a process.

use std::process::ExitCode;

use servo_model::Service;

fn main() -> ExitCode {
    servo_mesh::run(Service::Gateway, servo_gateway::start)
}
