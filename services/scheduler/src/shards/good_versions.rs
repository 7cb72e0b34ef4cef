//! Whether readers have a version to keep while an output is quarantined.

use std::collections::HashSet;

use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::{StoreError, query};
use uuid::Uuid;

use super::command::{Command, RunEvent, Submission};
use super::lane::Lane;

/// A partition that an attempt made, with the event that says so.
struct QuarantinedOutput {
    event_id: Uuid,
    tenant: String,
    workspace: String,
    asset_key: String,
    partition_key: String,
}

impl Lane {
    /// The events among these about quarantined outputs whose assets all have a promoted version of that partition.
    /// One statement; none when nothing is quarantined. Their runs are in memory.
    pub(super) async fn good_versions(
        &self,
        submissions: &[Submission],
    ) -> Result<HashSet<Uuid>, StoreError> {
        let outputs: Vec<QuarantinedOutput> = submissions
            .iter()
            .flat_map(|submission| &submission.commands)
            .flat_map(|command| self.quarantined(command))
            .collect();
        if outputs.is_empty() {
            return Ok(HashSet::new());
        }
        let column =
            |field: fn(&QuarantinedOutput) -> &str| outputs.iter().map(field).collect::<Vec<_>>();
        let select = query(include_str!("../store/without_version.sql"))
            .bind(
                outputs
                    .iter()
                    .map(|output| output.event_id)
                    .collect::<Vec<_>>(),
            )
            .bind(column(|output| &output.tenant))
            .bind(column(|output| &output.workspace))
            .bind(column(|output| &output.asset_key))
            .bind(column(|output| &output.partition_key));
        let without: Vec<(Uuid,)> = self.loops.all(select).await?;
        let without: HashSet<Uuid> = without.into_iter().map(|(event_id,)| event_id).collect();
        Ok(outputs
            .iter()
            .map(|output| output.event_id)
            .filter(|id| !without.contains(id))
            .collect())
    }

    fn quarantined(&self, command: &Command) -> Vec<QuarantinedOutput> {
        match command {
            Command::Event(event) => self.outputs_of(event).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn outputs_of(&self, event: &RunEvent) -> Option<Vec<QuarantinedOutput>> {
        let Body::TaskFinished(finished) = &event.body else {
            return None;
        };
        if finished.gating() != pb::Gating::Quarantine {
            return None;
        }
        let run = self
            .shards
            .get(&event.run_id.shard())?
            .runs
            .get(&event.run_id)?;
        let (plan, ordinal) = (run.plan.as_ref()?, finished.task?.ordinal);
        let task = plan.tasks.get(ordinal as usize)?;
        let settings = plan.settings(ordinal);
        let assets = std::iter::once(&settings.asset_key).chain(&settings.also_makes);
        let output = |asset_key: &std::sync::Arc<str>| QuarantinedOutput {
            event_id: event.event_id,
            tenant: run.header.tenant.to_string(),
            workspace: run.header.workspace.to_string(),
            asset_key: asset_key.to_string(),
            partition_key: task.partition_key.to_string(),
        };
        Some(assets.map(output).collect())
    }
}
