//! Parses tenants and request ids.

pub(crate) use servo_service::request::{
    required_request_id as check_request_id, tenant as parse_tenant,
    tenant_scope as parse_tenant_or_platform,
};
