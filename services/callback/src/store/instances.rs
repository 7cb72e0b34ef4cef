//! Living instances of the callback service.

use std::time::Duration;

use servo_store::{LoopStore, StoreError, query};

/// Records that this instance accepts heartbeats, until `valid_for` from now. `interrupted` says
/// that heartbeats were lost since the last call. Instances that have been silent for
/// `give_up_after` are deleted.
pub(crate) async fn note_instance(
    loops: &LoopStore,
    address: &str,
    valid_for: Duration,
    interrupted: bool,
    give_up_after: Duration,
) -> Result<(), StoreError> {
    let note = query(include_str!("note_instance.sql"))
        .bind(address)
        .bind(valid_for.as_secs_f64())
        .bind(interrupted)
        .bind(give_up_after.as_secs_f64());
    loops.execute(note).await.map(drop)
}

pub(crate) async fn forget_instance(loops: &LoopStore, address: &str) -> Result<(), StoreError> {
    loops
        .execute(query(include_str!("forget_instance.sql")).bind(address))
        .await
        .map(drop)
}
