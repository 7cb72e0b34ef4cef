//! Postgres: migrations, roles and row security, tenant-scoped transactions, ledger, leases.
