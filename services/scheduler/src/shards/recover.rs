//! Recovery after a flush that failed.

use std::collections::HashSet;

use servo_model::ShardId;
use servo_store::StoreError;

use super::command::{Command, Submission};
use super::lane::Lane;

impl Lane {
    /// Makes memory agree with the rows again.
    pub(super) async fn recover(&mut self, submissions: &[Submission], error: &StoreError) {
        let shards = shards_of(submissions);
        match error {
            // Nothing was written and the leases are valid, so only the folded runs are wrong.
            StoreError::Behind(_)
            | StoreError::ClockOff(_)
            | StoreError::Raced(_)
            | StoreError::Slow(_)
            | StoreError::KeyTaken(_) => {
                self.evict_runs(
                    submissions
                        .iter()
                        .flat_map(|submission| submission.commands.iter().map(Command::run_id)),
                );
                self.clock = None;
                for shard in shards {
                    self.catch_up_or_reload(shard).await;
                }
                self.load_evicted_runs(submissions).await;
            }
            // The lease keeper finds out which leases are still held and sends them again.
            StoreError::LeaseLost(_) => shards.into_iter().for_each(|shard| self.drop_shard(shard)),
            _ => {
                for shard in shards {
                    self.reload_shard(shard).await;
                }
            }
        }
    }

    /// Loads evicted runs again at once, because timers and snapshots look only at runs in memory.
    pub(super) async fn load_evicted_runs(&mut self, submissions: &[Submission]) {
        let commands = submissions
            .iter()
            .flat_map(|submission| &submission.commands);
        let runs = commands.map(|command| (command.run_id(), command.tenant()));
        if let Err(error) = self.load_missing(runs).await {
            tracing::warn!(%error, "failed to reload runs; reloading their shards");
            for shard in shards_of(submissions) {
                self.reload_shard(shard).await;
            }
        }
    }

    pub(super) async fn reload_shard(&mut self, shard: ShardId) {
        if let Some(held) = self.shards.get(&shard) {
            self.load_shard(held.lease.clone()).await;
        }
    }
}

fn shards_of(submissions: &[Submission]) -> HashSet<ShardId> {
    submissions
        .iter()
        .map(|submission| submission.shard)
        .collect()
}
