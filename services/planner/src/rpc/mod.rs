//! `servo.v1.PlannerService`, one file per method.

use servo_proto::v1::planner_service_server::PlannerService;

/// What it does not override answers UNIMPLEMENTED.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planner;

#[tonic::async_trait]
impl PlannerService for Planner {}
