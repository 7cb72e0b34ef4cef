//! Timestamps in Postgres' resolution of microseconds, assigned by the database.

use std::fmt;

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueFormat, PgValueRef};
use sqlx::{Decode, Encode, Postgres, Type};

/// 2000-01-01T00:00:00Z, the epoch of Postgres, in microseconds since 1970.
const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;

/// A `timestamptz`: microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_unix_us(us: i64) -> Self {
        Timestamp(us)
    }

    pub const fn unix_us(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us", self.0)
    }
}

impl Type<Postgres> for Timestamp {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(1184))
    }
}

impl PgHasArrayType for Timestamp {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(1185))
    }
}

impl Encode<'_, Postgres> for Timestamp {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let us = self
            .0
            .checked_sub(POSTGRES_EPOCH_US)
            .ok_or("timestamp is out of Postgres' range")?;
        buffer.extend_from_slice(&us.to_be_bytes());
        Ok(IsNull::No)
    }
}

impl Decode<'_, Postgres> for Timestamp {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        if value.format() != PgValueFormat::Binary {
            return Err(
                "a timestamptz is read in binary form only; use a prepared statement".into(),
            );
        }
        let us = i64::from_be_bytes(value.as_bytes()?.try_into()?);
        us.checked_add(POSTGRES_EPOCH_US)
            .map(Timestamp)
            .ok_or_else(|| "timestamptz is infinite".into())
    }
}
