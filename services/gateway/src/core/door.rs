//! Where a call goes and what it must show: decided from its method alone, before its body is read.

use servo_model::Service;
use servo_proto::access::{Access, Method};

/// What a method asks of somebody outside the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ticket {
    /// An API key.
    ApiKey,
    /// The presigned path of an attempt; the callback service verifies it.
    AttemptSignature,
    /// Nothing.
    None,
}

/// Why the door stays shut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shut {
    /// servo.v1 has no such method.
    Unknown,
    /// Only services of the mesh may call it.
    Internal,
}

/// The ticket that `method` asks for.
pub fn ticket(method: Option<&Method>) -> Result<Ticket, Shut> {
    match &method.ok_or(Shut::Unknown)?.access {
        Access::Permission(_) => Ok(Ticket::ApiKey),
        Access::AttemptSignature => Ok(Ticket::AttemptSignature),
        Access::Open => Ok(Ticket::None),
        Access::Callers(_) => Err(Shut::Internal),
    }
}

/// The service that answers `servo.v1.<Name>Service`; the gateway itself answers what belongs to nobody else.
pub fn target(method: &Method) -> Service {
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
    fn every_internal_method_is_shut() {
        for method in methods() {
            let shut = ticket(Some(method)) == Err(Shut::Internal);
            assert_eq!(
                shut,
                matches!(method.access, Access::Callers(_)),
                "{}",
                method.path
            );
        }
        assert_eq!(ticket(None), Err(Shut::Unknown));
    }

    #[test]
    fn services_are_found_by_name() {
        for method in methods() {
            let expected = match method.service.as_str() {
                "servo.v1.MeshService" | "servo.v1.AccessService" => "gateway".to_owned(),
                other => other
                    .trim_start_matches("servo.v1.")
                    .trim_end_matches("Service")
                    .to_lowercase(),
            };
            assert_eq!(target(method).name(), expected, "{}", method.path);
        }
    }
}
