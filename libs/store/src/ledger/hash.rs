//! The hashes in `ledger.keys`, computed as `ledger.hash_key` and `ledger.hash_body` do.

use servo_model::{EventType, TenantScope};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::NewEvent;

/// The hash of (tenant, workspace, idempotency key).
pub(super) fn key(event: &NewEvent) -> Uuid {
    key_of(&event.tenant, &event.workspace, &event.idempotency_key)
}

pub(super) fn key_of(tenant: &TenantScope, workspace: &str, key: &str) -> Uuid {
    Uuid::from_bytes(truncated_sha256([
        tenant.as_str().as_bytes(),
        b"\0",
        workspace.as_bytes(),
        b"\0",
        key.as_bytes(),
    ]))
}

/// The hash of the fields in which two equal events agree.
pub(super) fn body(event: &NewEvent) -> [u8; 16] {
    let (kind, version) = (
        EventType::code(event.kind).to_be_bytes(),
        event.version.to_be_bytes(),
    );
    truncated_sha256([
        kind.as_slice(),
        version.as_slice(),
        event.payload.as_slice(),
    ])
}

fn truncated_sha256<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 16] {
    let mut hasher = Sha256::new();
    parts.into_iter().for_each(|part| hasher.update(part));
    let digest = hasher.finalize();
    std::array::from_fn(|index| digest[index])
}
