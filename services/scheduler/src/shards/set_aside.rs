//! Runs that are set aside because one of their events cannot be folded or their rows cannot be
//! read. They keep their state and an operator sees the reason, while their shard continues.

use servo_model::{RunId, ShardId};
use servo_store::{Event, StoreError};

use super::catch_up::run_of;
use super::lane::Lane;
use super::restore_runs::RestoreError;
use crate::core::{Changes, Run};
use crate::store::runs::{self, StoredRun};

const REASON_BYTES_MAX: usize = 2_000;

impl Lane {
    /// Skips the event, and from now on every other event of its run.
    pub(super) async fn set_aside(
        &mut self,
        shard: ShardId,
        event: &Event,
        fault: &str,
    ) -> Result<(), StoreError> {
        let run_id = run_of(event);
        self.load_missing(
            run_id
                .map(|run_id| (run_id, event.tenant.tenant()))
                .into_iter(),
        )
        .await?;
        let Some(held) = self.shards.get(&shard) else {
            return Ok(());
        };
        let mut tx = self
            .loops
            .fence(&held.lease, held.watermark, event.position)
            .await?;
        if let Some(run_id) = run_id {
            runs::set_aside(&mut tx, &event.tenant, run_id, reason(event, fault)).await?;
        }
        tx.commit().await?;
        tracing::error!(
            fault, %shard, event = %event.event_id, run = run_id.map(|id| id.to_string()),
            "an event cannot be folded; its run is set aside"
        );
        self.metrics.set_aside.inc();
        self.skip_event(shard, event);
        run_id
            .into_iter()
            .for_each(|run_id| self.stop_tracking(shard, run_id));
        Ok(())
    }

    /// Sets a run aside that cannot be restored from its rows. Rows of a newer version instead make
    /// this instance release the shard, because only the newer version can fold the run's events.
    pub(super) async fn set_aside_unrestorable(
        &mut self,
        row: &StoredRun,
        error: &RestoreError,
    ) -> Result<(), StoreError> {
        let run_id = row.id();
        let shard = run_id.shard();
        let Some(held) = self.shards.get_mut(&shard) else {
            return Ok(());
        };
        if let RestoreError::NewerVersion(_) = error {
            tracing::error!(%shard, run = %run_id, %error, "releasing the shard for a newer version");
            self.unreadable.add(shard);
            self.drop_shard(shard);
            let released = format!("shard {shard} is released, because {error}");
            return Err(StoreError::LeaseLost(released));
        }
        let mut tx = self
            .loops
            .fence(&held.lease, held.watermark, held.watermark)
            .await?;
        let reason = clean(format!("the run cannot be restored: {error}"));
        runs::set_aside(&mut tx, &row.tenant.clone().into(), run_id, reason).await?;
        tx.commit().await?;
        tracing::error!(%error, %shard, run = %run_id, "a run cannot be restored; it is set aside");
        self.metrics.set_aside.inc();
        held.set_aside.insert(run_id);
        Ok(())
    }

    fn skip_event(&mut self, shard: ShardId, event: &Event) {
        if let Some(held) = self.shards.get_mut(&shard) {
            held.watermark = event.position;
            held.recorded_at = held.recorded_at.max(event.recorded_at);
        }
    }

    /// Evicts the run and withdraws its tasks from the dispatcher. Its attempts count as ended,
    /// because their outcomes will not be folded.
    fn stop_tracking(&mut self, shard: ShardId, run_id: RunId) {
        let Some(held) = self.shards.get_mut(&shard) else {
            return;
        };
        let Some(run) = held.runs.remove(&run_id) else {
            return;
        };
        held.set_aside.insert(run_id);
        self.in_flight.remove(run_id);
        self.unplanned_runs
            .remove(&run.header.tenant, run.header.created_at, run_id);
        self.streams.record(&run, &withdrawal(&run));
        self.streams.send_updates();
        self.run_watchers.notify(std::iter::once(run_id));
    }
}

fn withdrawal(run: &Run) -> Changes {
    let live = run
        .task_rows()
        .filter(|(_, task_row)| task_row.state.has_attempt());
    let ended = live
        .filter_map(|(_, task_row)| Some((task_row.attempt_id?, 0)))
        .collect();
    Changes {
        withdrawn: true,
        ended,
        ..Changes::default()
    }
}

fn reason(event: &Event, fault: &str) -> String {
    let kind = event.kind().map_or_else(
        || event.type_code.to_string(),
        |kind| kind.name().to_owned(),
    );
    clean(format!(
        "{kind} at position {} cannot be folded: {fault}",
        event.position
    ))
}

/// Makes a reason storable: Postgres refuses NUL in text.
fn clean(reason: String) -> String {
    let mut reason = reason.replace('\0', "\u{fffd}");
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    reason
}
