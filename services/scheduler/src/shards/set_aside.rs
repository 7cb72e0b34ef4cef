//! Runs of which an event cannot be folded: they keep their state and an operator is told why; the shard goes on.

use servo_model::RunId;
use servo_store::{Event, StoreError, query};
use uuid::Uuid;

use super::lane::Lane;
use super::tail::run_of;
use crate::core::{Changes, Run};

/// What an operator is told at most.
const REASON_BYTES_MAX: usize = 2_000;

impl Lane {
    /// Passes over the event, and over everything else of its run from now on.
    pub(super) async fn set_aside(
        &mut self,
        shard: i16,
        event: &Event,
        fault: &str,
    ) -> Result<(), StoreError> {
        let run_id = run_of(event);
        self.load_missing(
            run_id
                .map(|run_id| (run_id, event.tenant.as_str()))
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
            let update = query(include_str!("../store/set_aside.sql"))
                .bind(Uuid::from_bytes(*run_id.as_bytes()))
                .bind(&event.tenant)
                .bind(reason(event, fault));
            tx.execute(update).await?;
        }
        tx.commit().await?;
        tracing::error!(
            fault, shard, event = %event.event_id, run = run_id.map(|id| id.to_string()),
            "an event cannot be folded; its run is set aside"
        );
        self.metrics.set_aside.inc();
        self.pass(shard, event);
        run_id
            .into_iter()
            .for_each(|run_id| self.stop_tracking(shard, run_id));
        Ok(())
    }

    fn pass(&mut self, shard: i16, event: &Event) {
        if let Some(held) = self.shards.get_mut(&shard) {
            held.watermark = event.position;
            held.recorded_at = held.recorded_at.max(event.recorded_at.unix_us());
        }
    }

    /// Nothing of it is admitted, and its attempts hold no slots: nobody will tell of their ends.
    fn stop_tracking(&mut self, shard: i16, run_id: RunId) {
        let Some(held) = self.shards.get_mut(&shard) else {
            return;
        };
        let Some(run) = held.runs.remove(&run_id) else {
            return;
        };
        held.set_aside.insert(run_id);
        self.in_flight.forget(run_id);
        self.waiting
            .remove(&run.header.tenant, run.header.created_at, run_id);
        self.streams.tell(&run, &withdrawal(&run));
        self.streams.send();
        self.run_watchers.ring(std::iter::once(&run_id));
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
    let mut reason = format!(
        "{kind} at position {} cannot be folded: {fault}",
        event.position
    );
    reason = reason.replace('\0', "\u{fffd}");
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    reason
}
