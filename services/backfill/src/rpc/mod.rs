//! `servo.v1.BackfillService`, one file per method.

use servo_proto::v1::backfill_service_server::BackfillService;

/// Methods that are not overridden answer UNIMPLEMENTED.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backfill;

#[tonic::async_trait]
impl BackfillService for Backfill {}
