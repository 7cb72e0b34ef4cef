//! What becomes old goes, in steps that hold nobody up; what will be needed is made ahead.

use std::time::Duration;

use servo_bus::{Listeners, Topic};
use servo_model::limits::REQUEST_IDEMPOTENCY_TTL;
use servo_store::{LoopStore, StoreError, query};

use crate::store::requests;

/// How often it is looked whether anybody follows from afar, and whether messages are old.
pub(crate) const SWEEP_BUS_EVERY: Duration = Duration::from_secs(10);
/// Messages that everybody has passed are kept for this long.
const MESSAGES_KEPT: Duration = Duration::from_secs(3_600);
const MESSAGES_PER_DELETE: i32 = 1_000;

/// All is made long before it is needed, and deleted long after.
pub(crate) const SWEEP_LEDGER_EVERY: Duration = Duration::from_secs(3_600);
/// Days whose partitions are made ahead, so that an outage of this loop of a week costs nothing.
const DAYS_AHEAD: i32 = 8;
const KEYS_PER_DELETE: i32 = 5_000;
/// Operators make few calls.
const REQUESTS_PER_PASS_MAX: i64 = 1_000;

/// Makes the ledger's next days and lets old keys and old requests go. Answers how many went.
pub(crate) async fn sweep_ledger(loops: LoopStore) -> Result<u64, StoreError> {
    loops
        .execute(query("SELECT ledger.make_partitions($1)").bind(DAYS_AHEAD))
        .await?;
    let mut gone = requests::expire(&loops, REQUEST_IDEMPOTENCY_TTL, REQUESTS_PER_PASS_MAX).await?;
    loop {
        let expire = query("SELECT ledger.expire_keys($1)").bind(KEYS_PER_DELETE);
        let rows: Vec<(i64,)> = loops.all(expire).await?;
        let some = rows.first().map_or(0, |(count,)| *count);
        gone += some.unsigned_abs();
        if some < i64::from(KEYS_PER_DELETE) {
            return Ok(gone);
        }
    }
}

pub(crate) async fn sweep_bus(listeners: Listeners, loops: LoopStore) -> Result<u64, StoreError> {
    listeners.look(&loops).await?;
    servo_bus::expire(&loops, Topic::Runs, MESSAGES_KEPT, MESSAGES_PER_DELETE).await
}
