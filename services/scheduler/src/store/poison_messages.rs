//! Bus messages that their consumer could not process.

use servo_mesh::filter::TimeRange;
use servo_model::{Position, ShardId, TenantId, Timestamp};
use servo_store::sqlx::FromRow;
use servo_store::{LoopStore, StoreError, query};

#[derive(Debug, FromRow)]
pub(crate) struct PoisonMessage {
    pub subscription: String,
    pub topic: i16,
    pub shard: ShardId,
    pub position: Position,
    pub place: i32,
    pub tenant: TenantId,
    pub error: String,
    pub tries: i32,
    pub failed_at: Timestamp,
    pub payload: Vec<u8>,
}

impl PoisonMessage {
    /// The id by which an operator names the message; the statement orders by it as well.
    pub(crate) fn id(&self) -> String {
        format!(
            "{}:{}:{}:{}:{}",
            self.subscription, self.topic, self.shard, self.position, self.place
        )
    }
}

/// Which messages a list contains; `None` matches any.
#[derive(Debug)]
pub(crate) struct PoisonFilter<'a> {
    pub subscription: Option<&'a str>,
    pub topic: Option<i16>,
    pub tenant: Option<&'a str>,
    pub failed: TimeRange,
}

/// Lists the messages after the cursor: when the last one failed, and its id.
pub(crate) async fn list(
    loops: &LoopStore,
    filter: PoisonFilter<'_>,
    (at, after): (Timestamp, &str),
    limit: usize,
) -> Result<Vec<PoisonMessage>, StoreError> {
    let select = query(include_str!("list_poison_messages.sql"))
        .bind(at)
        .bind(after)
        .bind(filter.subscription)
        .bind(filter.topic)
        .bind(filter.tenant)
        .bind(limit as i64)
        .bind(filter.failed.from)
        .bind(filter.failed.until);
    loops.all(select).await
}
