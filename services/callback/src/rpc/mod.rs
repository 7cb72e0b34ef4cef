//! `servo.v1.CallbackService`, one file per method.

use servo_proto::v1::callback_service_server::CallbackService;

/// What it does not override answers UNIMPLEMENTED.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Callback;

#[tonic::async_trait]
impl CallbackService for Callback {}
