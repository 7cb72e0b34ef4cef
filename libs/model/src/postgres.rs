//! The column types of values, so that rows hold them without conversions. Encodings only: this
//! crate opens no connection.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueFormat, PgValueRef};
use sqlx::{Decode, Encode, Postgres, Type};

use crate::{
    AdmissionShard, Epoch, Position, ShardId, TenantId, TenantScope, Timestamp, WorkspaceId,
};

/// Stores a type as another one, which `$encode` and `$decode` convert to and from.
macro_rules! stored_as {
    ($type:ty, $column:ty, $encode:expr, $decode:expr) => {
        impl Type<Postgres> for $type {
            fn type_info() -> PgTypeInfo {
                <$column as Type<Postgres>>::type_info()
            }

            fn compatible(info: &PgTypeInfo) -> bool {
                <$column as Type<Postgres>>::compatible(info)
            }
        }

        impl PgHasArrayType for $type {
            fn array_type_info() -> PgTypeInfo {
                <$column as PgHasArrayType>::array_type_info()
            }
        }

        impl Encode<'_, Postgres> for $type {
            fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
                let encode: fn(&$type) -> Result<$column, BoxDynError> = $encode;
                <$column as Encode<'_, Postgres>>::encode(encode(self)?, buffer)
            }
        }

        impl<'r> Decode<'r, Postgres> for $type {
            fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
                let decode: fn($column) -> Result<$type, BoxDynError> = $decode;
                decode(<$column as Decode<'r, Postgres>>::decode(value)?)
            }
        }
    };
}

stored_as!(ShardId, i16, |shard| Ok(shard.get()), |number| {
    ShardId::new(number).ok_or_else(|| format!("there is no shard {number}").into())
});

stored_as!(
    AdmissionShard,
    i16,
    |shard| Ok(ShardId::from(*shard).get()),
    |number| u32::try_from(number)
        .ok()
        .and_then(AdmissionShard::new)
        .ok_or_else(|| format!("there is no admission shard {number}").into())
);

stored_as!(
    Epoch,
    i64,
    |epoch| Ok(i64::try_from(epoch.get())?),
    |number| Ok(Epoch::new(u64::try_from(number)?))
);

stored_as!(Position, i64, |position| Ok(position.get()), |number| {
    Position::new(number).ok_or_else(|| format!("{number} is not a position").into())
});

stored_as!(
    TenantId,
    String,
    |tenant| Ok(tenant.as_str().to_owned()),
    |text| Ok(text.parse()?)
);

stored_as!(
    TenantScope,
    String,
    |scope| Ok(scope.as_str().to_owned()),
    |text| Ok(text.parse()?)
);

stored_as!(
    WorkspaceId,
    String,
    |workspace| Ok(workspace.as_str().to_owned()),
    |text| Ok(text.parse()?)
);

/// 2000-01-01T00:00:00Z, the epoch of Postgres, in microseconds since 1970.
const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;

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
            .unix_us()
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
            .map(Timestamp::from_unix_us)
            .ok_or_else(|| "timestamptz is infinite".into())
    }
}
