//! Writes `impl Scoped` for every request that starts with a tenant.

use std::collections::BTreeSet;
use std::fmt::Write;

use prost_reflect::{DescriptorPool, Kind, MessageDescriptor};

use crate::rules;

pub(crate) fn implementations(pool: &DescriptorPool) -> String {
    let mut code = String::new();
    for request in requests(pool) {
        // Writing to a String cannot fail.
        let _ = write!(code, "{}", implementation(&request));
    }
    code
}

fn requests(pool: &DescriptorPool) -> Vec<MessageDescriptor> {
    let services = pool
        .services()
        .filter(|s| rules::PACKAGES.contains(&s.package_name()));
    let mut seen = BTreeSet::new();
    services
        .flat_map(|s| s.methods().map(|m| m.input()).collect::<Vec<_>>())
        .filter(|m| is_string(m, 1, "tenant") && seen.insert(m.full_name().to_owned()))
        .collect()
}

fn implementation(request: &MessageDescriptor) -> String {
    let workspace = if is_string(request, 2, "workspace") {
        "&self.workspace"
    } else {
        "\"\""
    };
    format!(
        "impl Scoped for {} {{ fn tenant(&self) -> &str {{ &self.tenant }} \
         fn workspace(&self) -> &str {{ {workspace} }} }}\n",
        rust_path(request)
    )
}

/// `servo.mesh.v1.CountRunsRequest` is `mesh::v1::CountRunsRequest` in the crate.
fn rust_path(message: &MessageDescriptor) -> String {
    message
        .full_name()
        .trim_start_matches("servo.")
        .replace('.', "::")
}

fn is_string(message: &MessageDescriptor, number: u32, name: &str) -> bool {
    message
        .get_field(number)
        .is_some_and(|f| f.name() == name && f.kind() == Kind::String && !f.is_list())
}
