//! Whether readers have a promoted version to keep while an output is quarantined.

use std::borrow::Cow;
use std::collections::HashSet;

use servo_proto::v1 as pb;
use servo_proto::v1::event::Body;
use servo_store::StoreError;
use uuid::Uuid;

use super::command::{Command, RunEvent, Submission};
use super::lane::Lane;
use crate::store::partitions::{self, WrittenPartition};

impl Lane {
    /// Returns the events with quarantined outputs whose partitions all have a promoted version.
    ///
    /// Runs one statement, or none when nothing is quarantined. The runs of the submissions are in
    /// memory.
    pub(super) async fn good_versions(
        &self,
        submissions: &[Submission],
    ) -> Result<HashSet<Uuid>, StoreError> {
        let written: Vec<WrittenPartition> = submissions
            .iter()
            .flat_map(|submission| &submission.commands)
            .flat_map(|command| self.quarantined(command))
            .collect();
        if written.is_empty() {
            return Ok(HashSet::new());
        }
        let without = partitions::list_events_without_version(&self.loops, &written).await?;
        Ok(written
            .iter()
            .map(|output| output.event_id)
            .filter(|id| !without.contains(id))
            .collect())
    }

    fn quarantined(&self, command: &Command) -> Vec<WrittenPartition> {
        match command {
            Command::Event(event) => self.quarantined_outputs(event).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn quarantined_outputs(&self, event: &RunEvent) -> Option<Vec<WrittenPartition>> {
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
        let output = |asset_key: &std::sync::Arc<str>| WrittenPartition {
            event_id: event.event_id,
            tenant: run.header.tenant.clone(),
            workspace: run.header.workspace.to_string(),
            asset_key: asset_key.to_string(),
            partition_key: task.partition_key.to_string(),
        };
        Some(plan.settings(ordinal).makes().map(output).collect())
    }
}

/// Writes the lookup result into the event, because a fold may depend only on events.
pub(super) fn with_good_version<'a>(event: &'a RunEvent, good: &HashSet<Uuid>) -> Cow<'a, Body> {
    match &event.body {
        Body::TaskFinished(finished) if good.contains(&event.event_id) => {
            Cow::Owned(Body::TaskFinished(pb::TaskFinished {
                has_good_version: true,
                ..finished.clone()
            }))
        }
        body => Cow::Borrowed(body),
    }
}
