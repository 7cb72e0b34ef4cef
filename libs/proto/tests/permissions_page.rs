//! Keeps `docs/permissions.md` equal to the table of permissions. `SERVO_BLESS=1` rewrites it.

#![cfg(test)]

use std::fmt::Write;
use std::fs;
use std::path::Path;

use servo_model::coded_enum::DocumentedEnum;
use servo_model::{Permission, Role};
use servo_proto::access::{Access, methods};

#[test]
fn permissions_page_matches_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/permissions.md");
    if std::env::var_os("SERVO_BLESS").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/permissions.md is out of date: run SERVO_BLESS=1 cargo test -p servo-proto"
    );
}

const HEAD: &str = "\
# Permissions

<!-- Generated from libs/model/src/access.rs and proto/ by `SERVO_BLESS=1 cargo test -p servo-proto`; do not edit. -->

Every public method requires one permission. A caller holds permissions through roles, in one tenant and in all or
some of its workspaces; the gateway and the service that serves the method both decide by the table below, and what
it does not allow is refused. A caller without the permission is refused with `PERMISSION_DENIED` before the server
looks whether the named thing exists.

- **Workspaces.** A key confined to some workspaces holds its permissions there. Methods of the tenant as a whole,
  whose requests name no workspace, are closed to it, except those marked \u{2020}: these work within its workspaces.
- **Workers** with a certificate `spiffe://servo/worker/<tenant>` have the role `worker` in that tenant.
- **The platform operator** is not a tenant's principal. It holds every permission and may name any tenant; only it
  may name `-`, which stands for all tenants (platform limits and prices, shared workers, pauses of everything).
- Methods that workers call with the signature of an attempt, and methods open to everybody, require no permission:
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    write!(page, "  {}.\n\n## Roles\n\n", without_permission()).unwrap();
    for role in Role::ALL {
        writeln!(page, "- `{role}`: {}", role.description()).unwrap();
    }
    page.push_str("- platform operator: Runs the platform for all tenants.\n\n## Table\n\n");
    let names: Vec<&str> = Role::ALL.iter().map(|role| role.name()).collect();
    writeln!(
        page,
        "| permission | allows | {} | platform | methods |",
        names.join(" | ")
    )
    .unwrap();
    writeln!(page, "|---|---|{}---|---|", "---|".repeat(names.len())).unwrap();
    for permission in Permission::ALL {
        write!(page, "| `{permission}` | {} |", permission.description()).unwrap();
        for role in Role::ALL {
            let mark = if permission.roles().contains(role) {
                "✓"
            } else {
                ""
            };
            write!(page, " {mark} |").unwrap();
        }
        writeln!(page, " ✓ | {} |", requiring(*permission)).unwrap();
    }
    page
}

fn requiring(permission: Permission) -> String {
    let requiring = methods()
        .iter()
        .filter(|m| m.access == Access::Permission(permission));
    let names: Vec<String> = requiring
        .map(|m| format!("{}{}", m.name, if m.confined { "\u{2020}" } else { "" }))
        .collect();
    names.join(", ")
}

fn without_permission() -> String {
    let open = methods()
        .iter()
        .filter(|m| matches!(m.access, Access::Open | Access::AttemptSignature));
    let names: Vec<&str> = open.map(|m| m.name.as_str()).collect();
    names.join(", ")
}
