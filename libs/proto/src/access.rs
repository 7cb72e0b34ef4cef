//! The access rule of each method, read once from the descriptors.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use servo_model::Permission;

mod rules;

pub use rules::{Access, HttpRoute, Method, PACKAGES, read_methods};

/// Every method of both packages, in the order of the descriptors.
pub fn methods() -> &'static [Method] {
    static METHODS: LazyLock<Vec<Method>> =
        LazyLock::new(|| read_methods(crate::descriptors()).expect("the build checked the rules"));
    &METHODS
}

/// The method at a gRPC path such as `/servo.v1.SchedulerService/GetRun`.
pub fn method_of(path: &str) -> Option<&'static Method> {
    static BY_PATH: LazyLock<HashMap<&'static str, &'static Method>> =
        LazyLock::new(|| methods().iter().map(|m| (m.path.as_str(), m)).collect());
    BY_PATH.get(path).copied()
}

/// The access rule of the method at a gRPC path; `None` when there is no such method.
pub fn access_of(path: &str) -> Option<&'static Access> {
    method_of(path).map(|m| &m.access)
}

/// Every permission that a method requires.
pub fn permissions() -> BTreeSet<Permission> {
    let required = methods().iter().filter_map(|m| match &m.access {
        Access::Permission(permission) => Some(*permission),
        Access::Callers(_) | Access::AttemptSignature | Access::Open => None,
    });
    required.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_has_its_rule() {
        assert_eq!(
            access_of("/servo.v1.MeshService/GetServerInfo"),
            Some(&Access::Open)
        );
        assert_eq!(access_of("/servo.v1.MeshService/GetNothing"), None);
    }

    #[test]
    fn retries_are_allowed_where_the_proto_declares_them() {
        assert!(
            method_of("/servo.v1.MeshService/GetServerInfo")
                .unwrap()
                .idempotent
        );
    }
}
