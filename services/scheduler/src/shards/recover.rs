//! Recovery after a flush that failed.

use std::collections::HashSet;

use servo_model::ShardId;
use servo_store::StoreError;

use super::command::{Command, Submission};
use super::lane::Lane;
use super::shard::Shard;

impl Lane {
    /// Makes memory agree with the rows again.
    pub(super) async fn recover(&mut self, submissions: &[Submission], error: &StoreError) {
        let shards: HashSet<ShardId> = submissions
            .iter()
            .map(|submission| submission.shard)
            .collect();
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
                // Loaded again at once, because their timers are armed only when a run is loaded.
                let commands = submissions
                    .iter()
                    .flat_map(|submission| &submission.commands);
                if let Err(error) = self
                    .load_missing(commands.map(|command| (command.run_id(), command.tenant())))
                    .await
                {
                    tracing::warn!(%error, "failed to reload runs; reloading their shards");
                    for submission in submissions {
                        self.reload_shard(submission.shard).await;
                    }
                }
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

    pub(super) async fn reload_shard(&mut self, shard: ShardId) {
        if let Some(Shard { lease, .. }) = self.shards.remove(&shard) {
            // Loading the shard finds its waiting runs again; a plan in progress may never arrive.
            self.waiting.remove_shard(shard);
            self.streams.send_gone(shard);
            self.load_shard(lease).await;
        }
    }
}
