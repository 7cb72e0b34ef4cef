//! Generates `docs/ownership.md` from the same table as the grants.

use std::fmt::Write;

use servo_model::{EventType, Service, Stream};

use super::{FUNCTIONS, READS, Reader, Role, SHARED_SCHEMAS, storing_services};

/// Returns the whole page; `tables` are the catalogue's (`schema.name`), without partitions.
pub fn markdown(tables: &[String]) -> String {
    [
        OPENING.to_owned(),
        owners(tables),
        reads(),
        functions(),
        writers(),
        lessees(),
    ]
    .join("\n")
}

const OPENING: &str = "\
# Database access rights

Generated from `libs/store/src/ownership` and `libs/model`; a test fails when it is stale, and \
`SERVO_BLESS=1 cargo test -p servo-store --test ownership` rewrites it. Grants, row security and the matrix test are derived \
from the same table.

Every service with rows has two roles: `servo_<service>` for request handlers, which sees the one tenant that \
`servo.tenant` names in the transaction (unset: no rows), and `servo_<service>_loop` for loops, which sees all tenants. \
Every table with a `tenant` column has row security, forced for its owner too. All other access is refused.
";

fn owners(tables: &[String]) -> String {
    let mut page = String::from(
        "## Tables\n\nThe owner's two roles select, insert, update and delete; no other role writes.\n\n\
         | table | owner | also reads columns |\n|---|---|---|\n",
    );
    for table in tables {
        let schema = table.split('.').next().unwrap_or_default();
        let owner = if SHARED_SCHEMAS.contains(&schema) {
            "no login role"
        } else {
            schema
        };
        let mut readers: Vec<String> = READS
            .iter()
            .filter(|read| read.table == table)
            .map(|read| reader_name(read.reader))
            .collect();
        readers.dedup();
        let _ = writeln!(page, "| `{table}` | {owner} | {} |", readers.join(", "));
    }
    page
}

fn reads() -> String {
    let mut page = String::from(
        "## Reads across schemas\n\nAll other access is by RPC.\n\n| reader | table | columns | why |\n|---|---|---|---|\n",
    );
    for read in READS {
        let reader = reader_name(read.reader);
        let _ = writeln!(
            page,
            "| {reader} | `{}` | {} | {} |",
            read.table,
            read.columns.join(", "),
            read.why
        );
    }
    page
}

fn functions() -> String {
    let mut page = String::from(
        "## Functions of the ledger\n\nThey run as a role that cannot log in. The definer may insert events, \
         but neither change nor delete them.\n\n| function | runs as | called by | does |\n|---|---|---|---|\n",
    );
    for function in FUNCTIONS {
        let mut callers: Vec<String> = function
            .callers
            .iter()
            .flat_map(|caller| caller.roles())
            .map(Role::name)
            .collect();
        callers.sort();
        let callers = if callers.is_empty() {
            "other functions only".to_owned()
        } else {
            list(&callers)
        };
        let runs_as = function.runs_as.name();
        let _ = writeln!(
            page,
            "| `{}` | `{runs_as}` | {callers} | {} |",
            function.name, function.does
        );
    }
    page
}

fn writers() -> String {
    let mut page = String::from(
        "## Event types\n\n| type | number | stream | appended by |\n|---|---|---|---|\n",
    );
    for kind in EventType::ALL {
        let services: Vec<&str> = kind
            .writers()
            .iter()
            .map(|service| service.name())
            .collect();
        let (name, code, stream) = (kind.name(), kind.code(), kind.stream().name());
        let _ = writeln!(
            page,
            "| {name} | {code} | {stream} | {} |",
            services.join(", ")
        );
    }
    page
}

fn lessees() -> String {
    let mut page =
        String::from("## Streams\n\n| stream | number | shards | leased by |\n|---|---|---|---|\n");
    for stream in Stream::ALL {
        let (name, code, shards) = (stream.name(), stream.code(), stream.shard_count());
        let _ = writeln!(page, "| {name} | {code} | {shards} | {} |", stream.owner());
    }
    page
}

fn reader_name(reader: Reader) -> String {
    let named = |service: Service, role: &str| format!("{service} ({role})");
    match reader {
        Reader::Everyone => "every service".to_owned(),
        Reader::Both(service) => service.to_string(),
        Reader::Requests(service) => named(service, "handlers"),
        Reader::Loops(service) => named(service, "loops"),
    }
}

/// Abbreviates lists that contain both roles of a service.
fn list(roles: &[String]) -> String {
    let both = storing_services().filter(|service| {
        Reader::Both(*service)
            .roles()
            .iter()
            .all(|role| roles.contains(&role.name()))
    });
    let services: Vec<Service> = both.collect();
    let covered = |name: &String| {
        services
            .iter()
            .any(|s| Reader::Both(*s).roles().iter().any(|r| r.name() == *name))
    };
    let mut words: Vec<String> = services
        .iter()
        .map(|service| format!("{service} (both)"))
        .collect();
    words.extend(
        roles
            .iter()
            .filter(|name| !covered(name))
            .map(|name| format!("`{name}`")),
    );
    words.join(", ")
}
