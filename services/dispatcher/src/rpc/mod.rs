//! `servo.v1.DispatcherService`, one file per method.

use servo_proto::v1::dispatcher_service_server::DispatcherService;

/// What it does not override answers UNIMPLEMENTED.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dispatcher;

#[tonic::async_trait]
impl DispatcherService for Dispatcher {}
