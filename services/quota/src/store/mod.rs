//! Reads and writes the quota service's rows: one function per statement, each statement in its
//! file under `sql/`.

pub(crate) mod budgets;
pub(crate) mod ledger;
pub(crate) mod manifests;
pub(crate) mod pools;
pub(crate) mod prices;
pub(crate) mod quotas;
pub(crate) mod report;
pub(crate) mod requests;
pub(crate) mod usage;

/// Builds a statement from its file and binds the tenant first.
macro_rules! scoped {
    ($name:literal, $tenant:expr) => {
        servo_store::query(include_str!(concat!("sql/", $name, ".sql"))).bind($tenant)
    };
}
pub(crate) use scoped;

/// Converts a column that is never negative.
pub(crate) fn from_column(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

/// Converts a count to a column. Counts never come near the limits of either type.
pub(crate) fn to_column(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Decodes a stored message; a failure means that the row is corrupt.
pub(crate) fn decode<M: prost::Message + Default>(
    bytes: &[u8],
) -> Result<M, servo_store::StoreError> {
    M::decode(bytes).map_err(|error| {
        servo_store::StoreError::Database(servo_store::sqlx::Error::Decode(error.into()))
    })
}
