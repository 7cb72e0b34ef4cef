//! Parses tenants and request ids.

use servo_mesh::{Error, Reason};
use servo_model::TenantId;
use servo_model::ids::IdError;

use crate::core::limits::PLATFORM;

const REQUEST_ID_BYTES_MAX: usize = 128;

pub(crate) fn parse_tenant_or_platform(text: &str) -> Result<String, Error> {
    if text == PLATFORM {
        return Ok(text.to_owned());
    }
    parse_tenant(text)
}

pub(crate) fn parse_tenant(text: &str) -> Result<String, Error> {
    let parsed: Result<TenantId, IdError> = text.parse();
    parsed
        .map(|tenant| tenant.to_string())
        .map_err(|error| Error::bad_field("tenant", error.to_string()))
}

pub(crate) fn check_request_id(request_id: &str) -> Result<(), Error> {
    match request_id.len() {
        0 => Err(Error::new(
            Reason::RequestIdRequired,
            "request_id is empty; choose one, so that a repeat is safe",
        )),
        1..=REQUEST_ID_BYTES_MAX if !request_id.contains('\0') => Ok(()),
        length => Err(Error::bad_field(
            "request_id",
            format!(
                "has {length} bytes or a NUL; 1 to {REQUEST_ID_BYTES_MAX} plain ones are allowed"
            ),
        )),
    }
}
