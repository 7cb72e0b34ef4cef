//! `servo.v1.AutomationService`, one file per method.

use servo_proto::v1::automation_service_server::AutomationService;

/// Methods that are not overridden answer UNIMPLEMENTED.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Automation;

#[tonic::async_trait]
impl AutomationService for Automation {}
