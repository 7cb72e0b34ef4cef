//! `servo.v1.SchedulerService`, one file per method.

use servo_proto::v1::scheduler_service_server::SchedulerService;

/// What it does not override answers UNIMPLEMENTED.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scheduler;

#[tonic::async_trait]
impl SchedulerService for Scheduler {}
