//! Parses tenants and request ids.

use servo_mesh::Error;
pub(crate) use servo_service::request::required_request_id as check_request_id;

use crate::core::limits::PLATFORM;

pub(crate) fn parse_tenant_or_platform(text: &str) -> Result<String, Error> {
    if text == PLATFORM {
        return Ok(text.to_owned());
    }
    parse_tenant(text)
}

pub(crate) fn parse_tenant(text: &str) -> Result<String, Error> {
    servo_service::request::tenant(text).map(|tenant| tenant.to_string())
}
