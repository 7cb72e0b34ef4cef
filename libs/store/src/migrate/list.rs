//! The numbered migrations, in order. Each file begins with its reason and never changes once it is
//! released.

use sha2::{Digest, Sha256};

#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// `NNNN_owner_change`
    pub name: &'static str,
    pub sql: &'static str,
}

impl Migration {
    pub fn checksum(&self) -> [u8; 32] {
        Sha256::digest(self.sql.as_bytes()).into()
    }
}

macro_rules! migrations {
    ($($name:literal),+ $(,)?) => {
        &[$(Migration { name: $name, sql: include_str!(concat!("../../migrations/", $name, ".sql")) }),+]
    };
}

/// The number of a migration is its index in this list, from 1.
pub const MIGRATIONS: &[Migration] = migrations![
    "0001_store_migrations",
    "0002_ledger_tables",
    "0003_ledger_append",
    "0004_ledger_leases",
    "0005_ledger_retention",
    "0006_gateway_tenants",
    "0007_planner_plans",
    "0008_scheduler_runs",
    "0009_dispatcher_workers",
    "0010_callback_beats",
    "0011_automation_schedules",
    "0012_backfill_chunks",
    "0013_quota_quotas",
    "0014_scheduler_fold",
    "0015_ledger_rewind",
    "0016_scheduler_requests",
    "0017_dispatcher_queue",
    "0018_scheduler_plans",
    "0019_scheduler_materializations_by_age",
    "0020_callback_instances",
    "0021_bus_messages",
    "0022_ledger_append_held_at_once",
    "0023_scheduler_quality",
    "0024_scheduler_runs_open",
    "0025_bus_unheard",
    "0026_scheduler_set_aside",
    "0027_ledger_large_requests",
    "0028_ledger_starts",
    "0029_callback_ages",
    "0030_ledger_append_held_after_set_back",
    "0031_scheduler_first_requests",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::ownership::schemas;

    #[test]
    fn every_file_is_listed_and_numbered_in_order() {
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations")).unwrap();
        let on_disk: BTreeSet<String> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        let listed: Vec<String> = MIGRATIONS
            .iter()
            .map(|m| format!("{}.sql", m.name))
            .collect();
        assert_eq!(on_disk.into_iter().collect::<Vec<_>>(), listed);
        for (index, migration) in MIGRATIONS.iter().enumerate() {
            assert!(
                migration.name.starts_with(&format!("{:04}_", index + 1)),
                "{}",
                migration.name
            );
        }
    }

    #[test]
    fn every_migration_names_its_owner_and_its_reason() {
        for migration in MIGRATIONS {
            let owner = migration.name.split('_').nth(1).unwrap();
            assert!(
                schemas().contains(&owner),
                "{} names no owner",
                migration.name
            );
            assert!(
                migration.sql.starts_with("-- Why: "),
                "{} gives no reason",
                migration.name
            );
        }
    }
}
