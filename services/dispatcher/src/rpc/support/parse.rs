//! Validating the fields of requests. Texts that Postgres cannot store are rejected here.

use servo_mesh::{Error, Reason};
use servo_model::limits::COMMENT_BYTES_MAX;
use servo_model::{RunId, TenantScope, WorkerId};

use servo_service::request;

use crate::rpc::Dispatcher;

pub(in crate::rpc) fn parse_worker_id(text: &str) -> Result<WorkerId, Error> {
    parse("worker_id", text)
}

pub(in crate::rpc) fn parse_run_id(text: &str) -> Result<RunId, Error> {
    parse("run_id", text)
}

fn parse<T: std::str::FromStr<Err = servo_model::ids::IdError>>(
    field: &str,
    text: &str,
) -> Result<T, Error> {
    text.parse()
        .map_err(|error: servo_model::ids::IdError| Error::bad_field(field, error.to_string()))
}

/// Returns the tenants that a worker serves. All tenants only if the configuration allows that.
pub(in crate::rpc) fn worker_tenant(
    dispatcher: &Dispatcher,
    tenant: &str,
) -> Result<TenantScope, Error> {
    let scope = request::tenant_scope(tenant)?;
    if scope != TenantScope::All || dispatcher.mesh.config().dispatcher.shared_workers {
        return Ok(scope);
    }
    let message =
        "workers that serve all tenants are disabled; set dispatcher.shared_workers to allow them";
    Err(Error::new(Reason::PermissionDenied, message))
}

pub(in crate::rpc) fn check_version(expected: u64, version: i64) -> Result<(), Error> {
    if expected == 0 || expected == version.unsigned_abs() {
        return Ok(());
    }
    let message = format!(
        "expected_version is {expected}, but the version is {version}; read it again and retry"
    );
    Err(Error::new(Reason::VersionConflict, message))
}

/// A comment may be empty.
pub(in crate::rpc) fn check_comment(text: &str) -> Result<(), Error> {
    check_text("comment", text, COMMENT_BYTES_MAX)
}

pub(in crate::rpc) fn check_text(field: &str, text: &str, bytes_max: usize) -> Result<(), Error> {
    match text.len() {
        length if length <= bytes_max && !text.contains('\0') => Ok(()),
        length => {
            let message = format!(
                "has {length} bytes or contains NUL; send at most {bytes_max} bytes without NUL"
            );
            Err(Error::bad_field(field, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_and_nul_are_rejected() {
        assert!(check_comment("").is_ok() && check_comment(&"x".repeat(COMMENT_BYTES_MAX)).is_ok());
        for wrong in ["a\0b", &"x".repeat(COMMENT_BYTES_MAX + 1)] {
            assert!(
                check_comment(wrong)
                    .unwrap_err()
                    .to_string()
                    .starts_with("comment: has ")
            );
        }
    }
}
