//! The tenant and workspace of an encoded request, read without decoding the rest.
//!
//! The gateway and every service check them before a handler sees the message. They are read as a
//! decoder would read them: fields may be in any order, and the last one of a repeated field
//! counts.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost_reflect::{Kind, MessageDescriptor};

use crate::access::PACKAGES;

const TENANT_FIELD: u32 = 1;
const WORKSPACE_FIELD: u32 = 2;

/// The scope of a method's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeKind {
    /// Neither field.
    Unscoped,
    /// `tenant = 1`
    Tenant,
    /// `tenant = 1, workspace = 2`
    Workspace,
}

/// The scope of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    pub tenant: String,
    /// Empty for tenant-level requests.
    pub workspace: String,
}

impl crate::Scoped for Scope {
    fn tenant(&self) -> &str {
        &self.tenant
    }

    fn workspace(&self) -> &str {
        &self.workspace
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request is not a well-formed protobuf message")]
pub struct Malformed;

/// The kind of the method at a gRPC path; `None` when there is no such method.
pub fn kind_of(path: &str) -> Option<ScopeKind> {
    static BY_PATH: LazyLock<HashMap<String, ScopeKind>> = LazyLock::new(|| {
        let services = crate::descriptors()
            .services()
            .filter(|s| PACKAGES.contains(&s.package_name()));
        let methods = services.flat_map(|s| s.methods().collect::<Vec<_>>());
        methods
            .map(|m| {
                (
                    format!("/{}/{}", m.parent_service().full_name(), m.name()),
                    kind(&m.input()),
                )
            })
            .collect()
    });
    BY_PATH.get(path).copied()
}

/// Reads the scope of an encoded request of the given kind.
pub fn read(kind: ScopeKind, mut message: &[u8]) -> Result<Scope, Malformed> {
    let mut scope = Scope::default();
    while message.has_remaining() {
        let (field, wire) = decode_key(&mut message).map_err(|_| Malformed)?;
        match (field, kind) {
            (TENANT_FIELD, ScopeKind::Tenant | ScopeKind::Workspace) => {
                scope.tenant = text(wire, &mut message)?
            }
            (WORKSPACE_FIELD, ScopeKind::Workspace) => scope.workspace = text(wire, &mut message)?,
            _ => skip_field(wire, field, &mut message, DecodeContext::default())
                .map_err(|_| Malformed)?,
        }
    }
    Ok(scope)
}

fn text(wire: WireType, message: &mut &[u8]) -> Result<String, Malformed> {
    if wire != WireType::LengthDelimited {
        return Err(Malformed);
    }
    let length = decode_varint(message).map_err(|_| Malformed)?;
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= message.len())
        .ok_or(Malformed)?;
    let (value, rest) = message.split_at(length);
    *message = rest;
    String::from_utf8(value.to_vec()).map_err(|_| Malformed)
}

fn kind(request: &MessageDescriptor) -> ScopeKind {
    let is_string = |number, name| {
        request
            .get_field(number)
            .is_some_and(|f| f.name() == name && f.kind() == Kind::String && !f.is_list())
    };
    match (
        is_string(TENANT_FIELD, "tenant"),
        is_string(WORKSPACE_FIELD, "workspace"),
    ) {
        (true, true) => ScopeKind::Workspace,
        (true, false) => ScopeKind::Tenant,
        (false, _) => ScopeKind::Unscoped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, value: &str) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2, u8::try_from(value.len()).unwrap()];
        bytes.extend(value.as_bytes());
        bytes
    }

    fn check(parts: &[Vec<u8>], expected: Result<(&str, &str), Malformed>) {
        let expected = expected.map(|(tenant, workspace)| Scope {
            tenant: tenant.into(),
            workspace: workspace.into(),
        });
        assert_eq!(read(ScopeKind::Workspace, &parts.concat()), expected);
    }

    #[test]
    fn scope_is_read_as_a_decoder_reads_it() {
        check(&[], Ok(("", "")));
        check(&[field(1, "acme"), field(2, "prod")], Ok(("acme", "prod")));
        check(
            &[field(7, "x"), field(2, "prod"), field(1, "acme")],
            Ok(("acme", "prod")),
        );
        check(
            &[field(1, "acme"), field(2, "prod"), field(1, "evil")],
            Ok(("evil", "prod")),
        );
    }

    #[test]
    fn malformed_messages_are_rejected() {
        check(&[vec![0x08, 0x01]], Err(Malformed));
        check(&[vec![0x0a, 0x05, b'a']], Err(Malformed));
        check(&[vec![0x0a, 0x01, 0xff]], Err(Malformed));
        check(&[vec![0xff, 0xff]], Err(Malformed));
    }

    #[test]
    fn unscoped_methods_have_no_scope() {
        assert_eq!(
            kind_of("/servo.v1.MeshService/GetServerInfo"),
            Some(ScopeKind::Unscoped)
        );
        assert_eq!(kind_of("/servo.v1.MeshService/Nothing"), None);
    }
}
