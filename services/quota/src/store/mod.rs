//! The quota service's rows. One function per statement; a statement stands in its file under `sql/`.

pub(crate) mod all;
pub(crate) mod budgets;
pub(crate) mod deployed;
pub(crate) mod pools;
pub(crate) mod prices;
pub(crate) mod quotas;
pub(crate) mod report;
pub(crate) mod requests;
pub(crate) mod usage;

/// A statement from its file, with the tenant bound first.
macro_rules! scoped {
    ($name:literal, $tenant:expr) => {
        servo_store::query(include_str!(concat!("sql/", $name, ".sql"))).bind($tenant)
    };
}
pub(crate) use scoped;

/// A column that counts and is never below zero.
pub(crate) fn count(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

/// As a column; what counts changes never comes near the end of either type.
pub(crate) fn column(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A stored message that cannot be read is a broken row.
pub(crate) fn decoded<M: prost::Message + Default>(
    bytes: &[u8],
) -> Result<M, servo_store::StoreError> {
    M::decode(bytes).map_err(|error| {
        servo_store::StoreError::Database(servo_store::sqlx::Error::Decode(error.into()))
    })
}
