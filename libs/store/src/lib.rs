//! Postgres: migrations, roles and row security, tenant-scoped transactions, ledger, leases.

pub mod migrate {
    //! Placeholder signature until the store lands.
    pub async fn migrate(_admin_url: &str, _role_password: &str) -> Result<(), std::io::Error> {
        Ok(())
    }
}
