//! `servo.v1.QuotaService`, one file per method.

use servo_proto::v1::quota_service_server::QuotaService;

/// What it does not override answers UNIMPLEMENTED.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quota;

#[tonic::async_trait]
impl QuotaService for Quota {}
