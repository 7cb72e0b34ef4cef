//! Price lists.

use prost::Message;
use servo_proto::v1::PriceList;
use servo_store::{StoreError, Tx};

use super::{column, count, decoded, scoped};

pub(crate) async fn find(tx: &mut Tx, tenant: &str) -> Result<Option<PriceList>, StoreError> {
    let row: Option<(i64, Vec<u8>)> = tx.optional(scoped!("find_prices", tenant)).await?;
    row.map(|(version, prices)| {
        Ok(PriceList {
            version: count(version),
            ..decoded(&prices)?
        })
    })
    .transpose()
}

pub(crate) async fn keep(tx: &mut Tx, tenant: &str, prices: &PriceList) -> Result<(), StoreError> {
    let statement = scoped!("keep_prices", tenant)
        .bind(column(prices.version))
        .bind(prices.encode_to_vec());
    tx.execute(statement).await.map(drop)
}
