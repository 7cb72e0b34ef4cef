//! Grants and row security, derived from [`ownership`](crate::ownership) and from the database's
//! catalogue, so that a new table always has them.

use sqlx::{AssertSqlSafe, PgConnection};

use super::MigrateError;
use crate::ownership::{self, DEFINER_GRANTS, FUNCTIONS, READS, Reader, Role, storing_services};

/// A table in the database's catalogue.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct Table {
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) is_partition: bool,
    pub(crate) has_tenant: bool,
    /// Row security is enabled, also for the owner.
    pub(crate) is_forced: bool,
    pub(crate) policies: Vec<String>,
}

/// A policy is identified by its name: changing its text requires a new name.
struct Policy {
    name: &'static str,
    to: Role,
    condition: &'static str,
}

const POLICIES: &[Policy] = &[
    Policy {
        name: "requests_own_tenant",
        to: Role::AllRequests,
        condition: "tenant = nullif(current_setting('servo.tenant', true), '')",
    },
    Policy {
        name: "loops_all_tenants",
        to: Role::AllLoops,
        condition: "true",
    },
    OWNER_POLICY,
];
/// The schemas in which only functions of [`Role::Definer`] write.
const DEFINER_SCHEMAS: [&str; 2] = ["bus", "ledger"];
const DEFINER_POLICY: Policy = Policy {
    name: "ledger_functions",
    to: Role::Definer,
    condition: "true",
};
const OWNER_POLICY: Policy = Policy {
    name: "owner_maintains",
    to: Role::Owner,
    condition: "true",
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

/// Revokes everything first; the grants that follow in the same transaction are complete.
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
    // A function can only be given to a role that may create in its schema.
    let schemas = DEFINER_SCHEMAS.join(", ");
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

/// Changes only what differs, because changing a policy blocks all users of the table.
fn row_security(tables: &[Table]) -> Vec<String> {
    tables
        .iter()
        .filter(|table| table.has_tenant)
        .flat_map(row_security_of)
        .collect()
}

fn row_security_of(table: &Table) -> Vec<String> {
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
            name: policy_name,
            to,
            condition,
        } = policy;
        statements.push(format!(
            "CREATE POLICY {policy_name} ON {name} TO {} USING ({condition}) WITH CHECK ({condition})",
            to.name()
        ));
    }
    statements
}

/// Reads through the partitioned table are subject to its policies; a partition that is named
/// directly shows no rows.
fn policies_of(table: &Table) -> Vec<&'static Policy> {
    if table.is_partition {
        return vec![&OWNER_POLICY];
    }
    let definer_policy = DEFINER_SCHEMAS
        .contains(&table.schema.as_str())
        .then_some(&DEFINER_POLICY);
    POLICIES.iter().chain(definer_policy).collect()
}

fn names(roles: &[Role]) -> String {
    roles
        .iter()
        .map(|role| role.name())
        .collect::<Vec<_>>()
        .join(", ")
}
