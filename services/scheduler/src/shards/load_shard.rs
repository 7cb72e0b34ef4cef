//! Loading a shard that this instance acquired, and single runs of it.

use std::collections::{HashMap, HashSet};

use servo_model::{RunId, TenantId};
use servo_proto::v1::event::Body;
use servo_store::{Lease, StoreError};
use uuid::Uuid;

use super::clock::DatabaseClock;
use super::lane::Lane;
use super::new_run::unplanned_run;
use super::restore_runs::{RestoredRuns, restore};
use super::shard::Shard;
use crate::core::Run;
use crate::store::runs::{self, StoredRun};
use crate::store::shards;
use crate::wire;

impl Lane {
    /// Loads a shard: its open runs, then the events that were appended while it had no holder.
    pub(super) async fn load_shard(&mut self, lease: Lease) {
        let number = lease.shard();
        // Waiting runs are found again and attempts are counted again; a plan that was requested
        // earlier may never arrive.
        self.drop_shard(number);
        if let Err(error) = self.try_load_shard(lease).await {
            tracing::warn!(%error, shard = %number, "failed to load a shard; retrying with its next lease renewal");
            self.drop_shard(number);
        }
    }

    pub(super) async fn try_load_shard(&mut self, lease: Lease) -> Result<(), StoreError> {
        let number = lease.shard();
        let lost =
            || StoreError::LeaseLost(format!("the lease on shard {number} is no longer held"));
        let stored = shards::find_held(&self.loops, &lease).await?;
        if let Some(stored) = &stored {
            self.clock = Some(DatabaseClock::at(stored.now));
        }
        let stored = stored
            .filter(|stored| stored.epoch == lease.epoch())
            .ok_or_else(lost)?;
        self.load_admission_epochs().await?;
        self.load_postgres_starts().await?;
        let (set_aside, rows): (Vec<_>, Vec<_>) = runs::list_open(&self.loops, number)
            .await?
            .into_iter()
            .partition(|row| row.set_aside.is_some());
        let requests: HashMap<RunId, Vec<u8>> = rows
            .iter()
            .filter(|row| row.plan_id.is_none())
            .map(|row| (row.id(), row.request.clone()))
            .collect();
        let restored = restore(&self.loops, &self.plans, rows).await?;
        for (run, request) in restored
            .runs
            .iter()
            .filter_map(|run| Some((run, requests.get(&run.header.run_id)?)))
        {
            self.request_plan_again(run, request);
        }
        let shard = Shard {
            lease,
            watermark: stored.watermark,
            recorded_at: stored.recorded_at,
            runs: HashMap::default(),
            set_aside: set_aside.iter().map(StoredRun::id).collect(),
        };
        self.shards.insert(number, shard);
        self.insert_restored(restored).await?;
        self.catch_up(number).await?;
        self.send_snapshots(number);
        Ok(())
    }

    /// Loads those of the runs that are not in memory. A tenant is `None` where it is not known.
    pub(super) async fn load_missing<'a>(
        &mut self,
        runs: impl Iterator<Item = (RunId, Option<&'a TenantId>)>,
    ) -> Result<(), StoreError> {
        let in_memory = |run: &RunId| {
            self.shards
                .get(&run.shard())
                .is_some_and(|shard| shard.contains(run))
        };
        // Commands may name the same run with different tenants, of which only one is right.
        let missing: HashSet<(Option<&TenantId>, Uuid)> = runs
            .filter(|(run, _)| !in_memory(run))
            .map(|(run, tenant)| (tenant, Uuid::from_bytes(*run.as_bytes())))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<_> = missing.into_iter().collect();
        let mut rows = runs::find_many(&self.loops, &missing).await?;
        rows.sort_unstable_by_key(|row| row.run_number);
        rows.dedup_by_key(|row| row.run_number);
        let (set_aside, rows): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.set_aside.is_some());
        for run in set_aside.iter().map(StoredRun::id) {
            if let Some(held) = self.shards.get_mut(&run.shard()) {
                held.set_aside.insert(run);
            }
        }
        let restored = restore(&self.loops, &self.plans, rows).await?;
        self.insert_restored(restored).await
    }

    async fn insert_restored(&mut self, restored: RestoredRuns) -> Result<(), StoreError> {
        for run in restored.runs {
            let run_id = run.header.run_id;
            if self.shards.contains_key(&run_id.shard()) {
                self.arm_run(&run);
                self.in_flight.update(&run);
            }
            if let Some(shard) = self.shards.get_mut(&run_id.shard()) {
                shard.runs.insert(run_id, run);
            }
        }
        for (row, error) in restored.failed {
            self.set_aside_unrestorable(&row, &error).await?;
        }
        Ok(())
    }

    /// Requests the plan of a run whose previous holder may have stopped before the plan arrived.
    fn request_plan_again(&mut self, run: &Run, request: &[u8]) {
        let Ok((Body::RunRequested(requested), _)) = wire::body_of(request) else {
            return;
        };
        if let Some(waiting) = unplanned_run(run, &requested) {
            let tenant = run.header.tenant.clone();
            self.plan_or_wait(tenant, run.header.created_at, waiting);
        }
    }

    /// Learns which dispatchers were replaced, also while another instance held the shard, because
    /// claims of a replaced dispatcher are refused.
    async fn load_admission_epochs(&mut self) -> Result<(), StoreError> {
        for (admission_shard, epoch) in shards::admission_epochs(&self.loops).await? {
            self.streams.note_epoch(admission_shard, epoch);
        }
        Ok(())
    }

    /// Learns when Postgres was started, because a start may have erased claims.
    async fn load_postgres_starts(&mut self) -> Result<(), StoreError> {
        let starts = shards::postgres_starts(&self.loops).await?;
        self.streams.set_postgres_starts(starts);
        Ok(())
    }
}
