//! What a task reads: which partitions its plan names, and the versions of them that stand when it is dispatched.

use std::collections::HashMap;

use prost::Message as _;
use servo_model::{AttemptId, TaskKey};
use servo_proto::json::{self, BadJson};
use servo_proto::v1 as pb;
use servo_store::{LoopStore, StoreError};
use uuid::Uuid;

use crate::envelope::StoredPlan;
use crate::store;

/// A partition to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) tenant: String,
    pub(crate) workspace: String,
    pub(crate) asset_key: String,
    pub(crate) partition_key: String,
    /// The version that a retry takes over.
    pub(crate) pinned: Option<Uuid>,
}

/// A version that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) materialization_id: String,
    /// Empty when its attempt wrote nothing.
    pub(crate) uri: String,
    pub(crate) rows: Option<u64>,
}

/// What was looked up for an envelope.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    pub(crate) inputs: Inputs,
    /// The good version of the output that stands, for checks that compare with it.
    pub(crate) previous: Option<pb::PreviousVersion>,
}

impl Found {
    pub(crate) const NOTHING: Found = Found { inputs: Inputs::Inline(Vec::new()), previous: None };
}

/// The inputs of a task as its envelope carries them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Inputs {
    Inline(Vec<pb::ResolvedInput>),
    /// Too many for an envelope.
    Stored {
        uri: String,
        digest: String,
    },
}

impl Inputs {
    /// Whether an envelope is smaller when they lie elsewhere.
    pub(crate) fn fill_an_envelope(&self) -> bool {
        matches!(self, Inputs::Inline(inputs) if !inputs.is_empty())
    }

    pub(crate) fn into_list(self) -> Vec<pb::ResolvedInput> {
        match self {
            Inputs::Inline(inputs) => inputs,
            Inputs::Stored { .. } => Vec::new(),
        }
    }
}

/// The inputs that the plan names for a task; most have none.
pub(crate) fn planned(stored: &StoredPlan, ordinal: u32) -> &[pb::PlannedInput] {
    stored.plan.tasks.get(ordinal as usize).map_or(&[], |task| &task.inputs)
}

/// Whether a task reads anything, or compares its output with the version before.
pub(crate) fn needs_any(stored: &StoredPlan, ordinal: u32) -> bool {
    !planned(stored, ordinal).is_empty() || compared(stored, ordinal).is_some()
}

/// The output of a task whose checks compare it with the version before.
pub(crate) fn compared(stored: &StoredPlan, ordinal: u32) -> Option<Wanted> {
    let plan = &stored.plan;
    let task = plan.tasks.get(ordinal as usize)?;
    let asset = plan.assets.get(task.asset as usize)?;
    asset.checks.iter().any(compares).then(|| Wanted {
        tenant: plan.tenant.clone(),
        workspace: plan.workspace.clone(),
        asset_key: asset.asset_key.clone(),
        partition_key: task.partition_key.clone(),
        pinned: None,
    })
}

fn compares(check: &pb::CheckDefinition) -> bool {
    use pb::check_definition::Spec;
    matches!(&check.spec, Some(Spec::RowCount(rows)) if rows.min_share_of_previous_ppm.is_some())
}

pub(crate) fn previous(version: Version) -> pb::PreviousVersion {
    let Version { materialization_id, uri, rows } = version;
    pb::PreviousVersion { materialization_id, uri, row_count: rows }
}

/// Every partition of these inputs, in their order.
pub(crate) fn wanted(plan: &pb::Plan, taken_over: &TakenOver, inputs: &[pb::PlannedInput]) -> Vec<Wanted> {
    let wanted = |asset_key: &str, partition_key: &str| Wanted {
        tenant: plan.tenant.clone(),
        workspace: plan.workspace.clone(),
        pinned: taken_over.get(&(asset_key.to_owned(), partition_key.to_owned())).copied(),
        asset_key: asset_key.to_owned(),
        partition_key: partition_key.to_owned(),
    };
    inputs.iter().flat_map(|input| partitions(input).map(|key| wanted(&input.asset_key, key))).collect()
}

/// The versions found, in the order of [`wanted`], as the envelope tells them. A partition without a version is named
/// all the same: sources have none, and user code must know what of them is meant.
pub(crate) fn resolved(inputs: &[pb::PlannedInput], found: Vec<Option<Version>>) -> Vec<pb::ResolvedInput> {
    let mut found = found.into_iter();
    let resolve = |input: &pb::PlannedInput| {
        let versions = partitions(input).filter_map(|key| version(key, found.next().flatten()));
        pb::ResolvedInput {
            versions: versions.collect(),
            asset_key: input.asset_key.clone(),
            parameter: input.parameter.clone(),
        }
    };
    inputs.iter().map(resolve).collect()
}

fn version(partition_key: &str, found: Option<Version>) -> Option<pb::ResolvedVersion> {
    if found.is_none() && partition_key.is_empty() {
        return None;
    }
    let (materialization_id, uri) =
        found.map(|found| (found.materialization_id, found.uri)).unwrap_or_default();
    Some(pb::ResolvedVersion { partition_key: partition_key.to_owned(), materialization_id, uri })
}

/// An asset in one piece has one partition without a name.
fn partitions(input: &pb::PlannedInput) -> impl Iterator<Item = &str> {
    let whole = input.partition_keys.is_empty().then_some("");
    input.partition_keys.iter().map(String::as_str).chain(whole)
}

/// The version of each asset and partition that a retry takes over from the run it repeats.
pub(crate) type TakenOver = HashMap<(String, String), Uuid>;

pub(crate) fn taken_over(plan: &pb::Plan) -> TakenOver {
    let pin = |reused: &pb::ReusedOutput| {
        let key: TaskKey = reused.task_key.parse().ok()?;
        let attempt: AttemptId = reused.materialization_id.parse().ok()?;
        let partition = key.partition().map(ToString::to_string).unwrap_or_default();
        Some(((key.asset().canonical(), partition), Uuid::from_bytes(*attempt.as_bytes())))
    };
    plan.reused.iter().filter_map(pin).collect()
}

/// One input per line, in the JSON form of its message.
pub(crate) fn json_lines(inputs: &[pb::ResolvedInput]) -> Result<String, BadJson> {
    inputs.iter().map(|input| Ok(json::to_json("ResolvedInput", input)? + "\n")).collect()
}

/// Finds all of these by one statement.
pub(crate) async fn find(loops: &LoopStore, wanted: &[Wanted]) -> Result<Vec<Option<Version>>, StoreError> {
    let mut found = vec![None; wanted.len()];
    for (place, attempt, output) in store::latest_versions(loops, wanted).await? {
        let output = output.and_then(|output| pb::Output::decode(&*output).ok()).unwrap_or_default();
        let version = attempt.map(|attempt| Version {
            materialization_id: AttemptId::from_bytes(*attempt.as_bytes()).to_string(),
            uri: output.uri,
            rows: output.row_count,
        });
        if let Some(slot) = usize::try_from(place - 1).ok().and_then(|index| found.get_mut(index)) {
            *slot = version;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(asset: &str, partitions: &[&str]) -> pb::PlannedInput {
        pb::PlannedInput {
            asset_key: asset.to_owned(),
            parameter: "p".to_owned(),
            partition_keys: partitions.iter().map(|key| (*key).to_owned()).collect(),
            optional: false,
        }
    }

    #[test]
    fn a_retry_takes_over_the_versions_of_the_run_it_repeats() {
        let id = AttemptId::from_bytes([7; 16]);
        let reused = |task_key: &str| pb::ReusedOutput {
            task_key: task_key.to_owned(),
            materialization_id: id.to_string(),
        };
        let plan = pb::Plan {
            tenant: "acme".to_owned(),
            workspace: "prod".to_owned(),
            reused: vec![reused("n/a[day=d:2026-01-01]:materialize"), reused("n/b:materialize")],
            ..Default::default()
        };
        let inputs =
            [input("n/a", &["day=d:2026-01-01", "day=d:2026-01-02"]), input("n/b", &[]), input("n/c", &[])];
        let pins: Vec<bool> =
            wanted(&plan, &taken_over(&plan), &inputs).iter().map(|wanted| wanted.pinned.is_some()).collect();
        assert_eq!(pins, [true, false, true, false]);
    }

    #[test]
    fn partitions_without_a_version_are_named_and_assets_without_one_are_empty() {
        let found = |id: &str| {
            Some(Version { materialization_id: id.to_owned(), uri: format!("file:///{id}"), rows: None })
        };
        let inputs = [input("n/a", &["k=s:1", "k=s:2"]), input("n/b", &[]), input("n/c", &[])];
        let resolved = resolved(&inputs, vec![found("x"), None, None, found("y")]);
        let versions = |input: &pb::ResolvedInput| -> Vec<String> {
            input
                .versions
                .iter()
                .map(|version| format!("{} {}", version.partition_key, version.uri))
                .collect()
        };
        let told: Vec<Vec<String>> = resolved.iter().map(versions).collect();
        assert_eq!(told[0], ["k=s:1 file:///x", "k=s:2 "]);
        assert!(told[1].is_empty());
        assert_eq!(told[2], [" file:///y"]);
    }
}
