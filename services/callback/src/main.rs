//! The callback service as a process.

use std::process::ExitCode;

use servo_model::Service;

fn main() -> ExitCode {
    servo_mesh::run(Service::Callback, servo_callback::start)
}
