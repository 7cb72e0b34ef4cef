//! The dispatcher as a process.

use std::process::ExitCode;

use servo_model::Service;

fn main() -> ExitCode {
    servo_mesh::run(Service::Dispatcher, servo_dispatcher::start)
}
