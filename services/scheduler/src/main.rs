//! The scheduler service as a process of its own.

use std::process::ExitCode;

use servo_model::Service;

fn main() -> ExitCode {
    servo_mesh::run(Service::Scheduler, servo_scheduler::start)
}
