//! Price lists.

use prost::Message;
use servo_model::TenantScope;
use servo_proto::v1::PriceList;
use servo_store::{StoreError, Tx};

use super::{decode, from_column, scoped, to_column};

pub(crate) async fn find(
    tx: &mut Tx,
    tenant: &TenantScope,
) -> Result<Option<PriceList>, StoreError> {
    let row: Option<(i64, Vec<u8>)> = tx.optional(scoped!("find_prices", tenant)).await?;
    row.map(|(version, prices)| {
        Ok(PriceList {
            version: from_column(version),
            ..decode(&prices)?
        })
    })
    .transpose()
}

pub(crate) async fn upsert(
    tx: &mut Tx,
    tenant: &TenantScope,
    prices: &PriceList,
) -> Result<(), StoreError> {
    let statement = scoped!("upsert_prices", tenant)
        .bind(to_column(prices.version))
        .bind(prices.encode_to_vec());
    tx.execute(statement).await.map(drop)
}
