//! Generated types, their file descriptor set, and the access rule of each method, of two packages:
//! [`v1`], the public API, and [`mesh::v1`], the calls between services of the mesh.
//!
//! The source is `proto/`; the build script compiles it without a protoc and rejects an API in
//! which a method has no access rule or a public method has no HTTP route
//! ([`access::read_methods`]).

use std::sync::LazyLock;

use prost_reflect::DescriptorPool;

pub mod access;
mod difference;
mod fingerprint;
pub mod json;
mod kind;
pub mod scope;
mod time;

pub use difference::spec_difference;
pub use fingerprint::request_fingerprint;
pub use kind::kind_of;
pub use time::{from_proto_duration, from_proto_time, proto_time};

/// The public API: messages, enums, clients and servers. A server returns UNIMPLEMENTED for methods
/// that it does not override.
#[allow(
    clippy::all,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "generated code"
)]
pub mod v1 {
    tonic::include_proto!("servo.v1");
}

/// The calls between services of the mesh. They may change as long as a service still works beside
/// those of the version before.
pub mod mesh {
    /// Messages, clients and servers, like those of [`crate::v1`].
    #[allow(
        clippy::all,
        clippy::unwrap_used,
        unreachable_pub,
        reason = "generated code"
    )]
    pub mod v1 {
        tonic::include_proto!("servo.mesh.v1");
    }
}

/// The encoded descriptors of both packages and their imports, including comments and extensions.
pub const DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.binpb"));

/// [`DESCRIPTOR_SET`], decoded once.
pub fn descriptors() -> &'static DescriptorPool {
    static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
        DescriptorPool::decode(DESCRIPTOR_SET).expect("the build script wrote this set")
    });
    &POOL
}

/// A request for a tenant and, in most cases, a workspace.
pub trait Scoped {
    fn tenant(&self) -> &str;
    /// Empty when the request is for the whole tenant.
    fn workspace(&self) -> &str;
}

include!(concat!(env!("OUT_DIR"), "/scoped.rs"));
