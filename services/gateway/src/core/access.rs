//! Which credential a call needs and which service serves it, decided by its method alone before
//! the body is read.

use servo_model::Service;
use servo_proto::access::{Access, Method};

/// The credential that a method requires from a client outside the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    ApiKey,
    /// The presigned path of an attempt, which the callback service verifies.
    AttemptSignature,
    None,
}

/// Why a call is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// servo.v1 has no such method.
    Unknown,
    /// Only services of the mesh may call it.
    Internal,
}

/// Returns the credential that `method` requires.
pub fn required_credential(method: Option<&Method>) -> Result<Credential, Denied> {
    match &method.ok_or(Denied::Unknown)?.access {
        Access::Permission(_) => Ok(Credential::ApiKey),
        Access::AttemptSignature => Ok(Credential::AttemptSignature),
        Access::Open => Ok(Credential::None),
        Access::Callers(_) => Err(Denied::Internal),
    }
}

/// Returns the service that serves `servo.v1.<Name>Service`. The gateway itself serves the rest.
/// The scheduler serves SystemService, because it owns all projections that there are.
pub fn target(method: &Method) -> Service {
    if method.service == "servo.v1.SystemService" {
        return Service::Scheduler;
    }
    let name = method
        .service
        .strip_prefix("servo.v1.")
        .and_then(|name| name.strip_suffix("Service"));
    name.and_then(|name| name.to_ascii_lowercase().parse().ok())
        .unwrap_or(Service::Gateway)
}

#[cfg(test)]
mod tests {
    use super::*;
    use servo_proto::access::methods;

    #[test]
    fn internal_methods_are_denied() {
        for method in methods() {
            let denied = required_credential(Some(method)) == Err(Denied::Internal);
            assert_eq!(
                denied,
                matches!(method.access, Access::Callers(_)),
                "{}",
                method.path
            );
        }
        assert_eq!(required_credential(None), Err(Denied::Unknown));
    }

    #[test]
    fn services_are_found_by_name() {
        for method in methods()
            .iter()
            .filter(|m| m.service.starts_with("servo.v1."))
        {
            let expected = match method.service.as_str() {
                "servo.v1.MeshService" | "servo.v1.AccessService" => "gateway".to_owned(),
                "servo.v1.SystemService" => "scheduler".to_owned(),
                other => other
                    .trim_start_matches("servo.v1.")
                    .trim_end_matches("Service")
                    .to_lowercase(),
            };
            assert_eq!(target(method).name(), expected, "{}", method.path);
        }
    }
}
