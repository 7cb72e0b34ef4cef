//! Grants and row security, derived from [`ownership`](crate::ownership) and from what the catalogue holds, so that a
//! new table cannot be without them.

use sqlx::{AssertSqlSafe, PgConnection};

use super::MigrateError;
use crate::ownership::{self, DEFINER_GRANTS, FUNCTIONS, READS, Reader, Role, storing_services};

/// A table as the catalogue knows it.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct Table {
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) is_partition: bool,
    pub(crate) has_tenant: bool,
    /// Row security is on, for the owner too.
    pub(crate) is_forced: bool,
    pub(crate) policies: Vec<String>,
}

/// A policy's name stands for its text: whoever changes the text gives it a new name.
struct Policy {
    name: &'static str,
    to: Role,
    admits: &'static str,
}

const POLICIES: &[Policy] = &[
    Policy {
        name: "requests_own_tenant",
        to: Role::AllRequests,
        admits: "tenant = nullif(current_setting('servo.tenant', true), '')",
    },
    Policy {
        name: "loops_all_tenants",
        to: Role::AllLoops,
        admits: "true",
    },
    OWNER_POLICY,
];
/// Where functions of [`Role::Definer`] are the only ones who write.
const DEFINED_SCHEMAS: [&str; 2] = ["bus", "ledger"];
const LEDGER_POLICY: Policy = Policy {
    name: "ledger_functions",
    to: Role::Definer,
    admits: "true",
};
const OWNER_POLICY: Policy = Policy {
    name: "owner_maintains",
    to: Role::Owner,
    admits: "true",
};

pub(super) async fn apply(tx: &mut PgConnection) -> Result<(), MigrateError> {
    let tables: Vec<Table> = sqlx::query_as(include_str!("../sql/tables.sql"))
        .bind(ownership::schemas())
        .fetch_all(&mut *tx)
        .await?;
    let statements = [
        revokes(),
        own_schema_grants(),
        read_grants(),
        function_grants(),
        row_security(&tables),
    ];
    for statement in statements.concat() {
        sqlx::raw_sql(AssertSqlSafe(statement))
            .execute(&mut *tx)
            .await?;
    }
    Ok(())
}

/// Everything is taken away first; what follows in the same transaction is all there is.
fn revokes() -> Vec<String> {
    let logins = names(&Role::logins());
    let mut statements = Vec::new();
    for schema in ownership::schemas() {
        for what in [
            format!("SCHEMA {schema}"),
            format!("ALL TABLES IN SCHEMA {schema}"),
            format!("ALL SEQUENCES IN SCHEMA {schema}"),
            format!("ALL FUNCTIONS IN SCHEMA {schema}"),
        ] {
            statements.push(format!("REVOKE ALL ON {what} FROM PUBLIC, {logins}"));
        }
    }
    statements
}

fn own_schema_grants() -> Vec<String> {
    let grants = |service: servo_model::Service| {
        let roles = names(&Reader::Both(service).roles());
        [
            format!("GRANT USAGE ON SCHEMA {service} TO {roles}"),
            format!(
                "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {service} TO {roles}"
            ),
            format!("GRANT USAGE ON ALL SEQUENCES IN SCHEMA {service} TO {roles}"),
        ]
    };
    storing_services().flat_map(grants).collect()
}

fn read_grants() -> Vec<String> {
    let grants = |read: &ownership::Read| {
        let roles = names(&read.reader.roles());
        let schema = read.table.split('.').next().unwrap_or_default();
        let columns = read.columns.join(", ");
        [
            format!("GRANT USAGE ON SCHEMA {schema} TO {roles}"),
            format!("GRANT SELECT ({columns}) ON {} TO {roles}", read.table),
        ]
    };
    READS.iter().flat_map(grants).collect()
}

fn function_grants() -> Vec<String> {
    let definer = Role::Definer.name();
    // Only a role that may create in the schema can be given a function in it.
    let schemas = DEFINED_SCHEMAS.join(", ");
    let mut statements = vec![format!(
        "GRANT USAGE, CREATE ON SCHEMA {schemas} TO {definer}"
    )];
    for (table, privileges) in DEFINER_GRANTS {
        statements.push(format!("GRANT {privileges} ON {table} TO {definer}"));
    }
    for function in FUNCTIONS {
        statements.push(format!(
            "ALTER FUNCTION {} OWNER TO {}",
            function.name,
            function.runs_as.name()
        ));
        for caller in function.callers {
            let roles = names(&caller.roles());
            let schema = function.name.split('.').next().unwrap_or_default();
            statements.push(format!("GRANT USAGE ON SCHEMA {schema} TO {roles}"));
            statements.push(format!(
                "GRANT EXECUTE ON FUNCTION {} TO {roles}",
                function.name
            ));
        }
    }
    statements.push(format!("REVOKE CREATE ON SCHEMA {schemas} FROM {definer}"));
    statements
}

/// Only what differs: a policy cannot be touched without stopping everybody who uses the table.
fn row_security(tables: &[Table]) -> Vec<String> {
    tables
        .iter()
        .filter(|table| table.has_tenant)
        .flat_map(secure)
        .collect()
}

fn secure(table: &Table) -> Vec<String> {
    let name = format!("{}.{}", table.schema, table.name);
    let wanted = policies_of(table);
    let mut statements = Vec::new();
    if !table.is_forced {
        statements.push(format!(
            "ALTER TABLE {name} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
        ));
    }
    for old in table
        .policies
        .iter()
        .filter(|old| wanted.iter().all(|policy| policy.name != *old))
    {
        statements.push(format!("DROP POLICY {old} ON {name}"));
    }
    for policy in wanted
        .iter()
        .filter(|policy| !table.policies.iter().any(|old| old == policy.name))
    {
        let Policy {
            name: title,
            to,
            admits,
        } = policy;
        statements.push(format!(
            "CREATE POLICY {title} ON {name} TO {} USING ({admits}) WITH CHECK ({admits})",
            to.name()
        ));
    }
    statements
}

/// Who goes through the partitioned table meets its policies; a partition named directly shows nobody anything.
fn policies_of(table: &Table) -> Vec<&'static Policy> {
    if table.is_partition {
        return vec![&OWNER_POLICY];
    }
    let defined = DEFINED_SCHEMAS
        .contains(&table.schema.as_str())
        .then_some(&LEDGER_POLICY);
    POLICIES.iter().chain(defined).collect()
}

fn names(roles: &[Role]) -> String {
    roles
        .iter()
        .map(|role| role.name())
        .collect::<Vec<_>>()
        .join(", ")
}
