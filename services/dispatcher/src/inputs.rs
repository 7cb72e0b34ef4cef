//! Inputs of a task: the partitions that its plan names, and their versions at the time of
//! dispatch.

use prost::Message as _;
use servo_model::task_key::child_partition;
use servo_model::{AttemptId, PartitionKey};
use servo_proto::json::{self, BadJson};
use servo_proto::v1 as pb;
use servo_store::{LoopStore, StoreError};
use uuid::Uuid;

use crate::store::{self, InputPartition};
use crate::stored_plan::StoredPlan;

/// Partitions per statement. Tens of thousands would exceed the statement timeout.
const PARTITIONS_PER_STATEMENT_MAX: usize = 10_000;

/// A version of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundVersion {
    /// Empty for a mapped task that produced nothing.
    pub(crate) materialization_id: String,
    /// Empty when the attempt wrote no output.
    pub(crate) uri: String,
    pub(crate) rows: Option<u64>,
    pub(crate) part: VersionPart,
}

/// Which part of its partition a version covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionPart {
    Whole,
    /// The version of a mapped parent: stands for the outputs of its mapped tasks, which follow it.
    Items,
    Item(u32),
}

impl VersionPart {
    /// Reads the `item` column of `latest_versions.sql`.
    fn of(item: i32) -> VersionPart {
        match (u32::try_from(item), item) {
            (Ok(item), _) => VersionPart::Item(item),
            (_, -1) => VersionPart::Whole,
            _ => VersionPart::Items,
        }
    }
}

/// The versions that a task reads, as its envelope lists them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EnvelopeInputs {
    pub(crate) inputs: InputList,
    /// The promoted version of the task's own output, for checks that compare with it.
    pub(crate) previous: Option<pb::PreviousVersion>,
}

impl EnvelopeInputs {
    pub(crate) const NONE: EnvelopeInputs = EnvelopeInputs {
        inputs: InputList::Inline(Vec::new()),
        previous: None,
    };
}

/// The inputs of a task as its envelope carries them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum InputList {
    Inline(Vec<pb::ResolvedInput>),
    /// A file, because the list is too long for an envelope.
    Stored {
        uri: String,
        digest: String,
    },
}

impl InputList {
    /// Returns whether moving the list to a file would make the envelope smaller.
    pub(crate) fn has_inline(&self) -> bool {
        matches!(self, InputList::Inline(inputs) if !inputs.is_empty())
    }

    pub(crate) fn into_list(self) -> Vec<pb::ResolvedInput> {
        match self {
            InputList::Inline(inputs) => inputs,
            InputList::Stored { .. } => Vec::new(),
        }
    }
}

/// Returns the inputs that the plan names for a task. Most tasks have none.
pub(crate) fn planned_inputs(stored: &StoredPlan, ordinal: u32) -> &[pb::PlannedInput] {
    stored.task(ordinal).map_or(&[], |task| &task.inputs)
}

/// Returns whether the task has inputs, or compares its output with the previous version.
pub(crate) fn needs_any(stored: &StoredPlan, ordinal: u32) -> bool {
    !planned_inputs(stored, ordinal).is_empty() || compared_partition(stored, ordinal).is_some()
}

/// Returns the output partition of a task whose checks compare it with the previous version.
pub(crate) fn compared_partition(stored: &StoredPlan, ordinal: u32) -> Option<InputPartition> {
    let plan = &stored.plan;
    let task = stored.task(ordinal)?;
    let asset = stored.asset_of(task)?;
    asset.checks.iter().any(compares).then(|| InputPartition {
        tenant: stored.tenant.clone(),
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

pub(crate) fn previous(version: FoundVersion) -> pb::PreviousVersion {
    let FoundVersion {
        materialization_id,
        uri,
        rows,
        ..
    } = version;
    pb::PreviousVersion {
        materialization_id,
        uri,
        row_count: rows,
    }
}

/// Returns the partitions of these inputs, in order.
pub(crate) fn input_partitions(
    stored: &StoredPlan,
    inputs: &[pb::PlannedInput],
) -> Vec<InputPartition> {
    let partition = |asset_key: &str, partition_key: &str| InputPartition {
        tenant: stored.tenant.clone(),
        workspace: stored.plan.workspace.clone(),
        pinned: (stored.pinned)
            .get(&(asset_key.to_owned(), partition_key.to_owned()))
            .copied(),
        asset_key: asset_key.to_owned(),
        partition_key: partition_key.to_owned(),
    };
    inputs
        .iter()
        .flat_map(|input| partitions(input).map(|key| partition(&input.asset_key, key)))
        .collect()
}

/// Converts the versions that were found, in the order of [`input_partitions`], for the envelope. A
/// partition without a version is listed too, because sources have no versions and user code must
/// know which partition is meant.
pub(crate) fn resolve(
    inputs: &[pb::PlannedInput],
    found: Vec<Vec<FoundVersion>>,
) -> Vec<pb::ResolvedInput> {
    let mut found = found.into_iter();
    let resolve_one = |input: &pb::PlannedInput| {
        let found: Vec<(&str, Vec<FoundVersion>)> = partitions(input)
            .map(|key| (key, found.next().unwrap_or_default()))
            .collect();
        let mapped = found
            .iter()
            .flat_map(|(_, versions)| versions)
            .any(|each| each.part == VersionPart::Items);
        pb::ResolvedInput {
            versions: found
                .into_iter()
                .flat_map(|(key, found)| versions(key, found))
                .collect(),
            asset_key: input.asset_key.clone(),
            parameter: input.parameter.clone(),
            mapped,
            shape: input.shape,
        }
    };
    inputs.iter().map(resolve_one).collect()
}

fn versions(partition_key: &str, mut found: Vec<FoundVersion>) -> Vec<pb::ResolvedVersion> {
    if found.is_empty() && !partition_key.is_empty() {
        return vec![pb::ResolvedVersion {
            partition_key: partition_key.to_owned(),
            ..Default::default()
        }];
    }
    // The entry that stands for all items is listed only if there are no items.
    if found.len() > 1 {
        found.retain(|version| version.part != VersionPart::Items);
    }
    let resolved = |FoundVersion {
                        materialization_id,
                        uri,
                        part,
                        ..
                    }| pb::ResolvedVersion {
        partition_key: with_item(partition_key, part),
        materialization_id,
        uri,
    };
    found.into_iter().map(resolved).collect()
}

/// Adds the reserved dimension that numbers mapped tasks.
fn with_item(partition_key: &str, part: VersionPart) -> String {
    let VersionPart::Item(item) = part else {
        return partition_key.to_owned();
    };
    let partition: Option<PartitionKey> = partition_key.parse().ok();
    child_partition(partition.as_ref(), item)
}

/// Returns the partition keys of an input. An unpartitioned asset has one partition with an empty
/// key. A partitioned asset without matching partitions is not read.
fn partitions(input: &pb::PlannedInput) -> impl Iterator<Item = &str> {
    let is_partitioned = matches!(input.shape(), pb::InputShape::One | pb::InputShape::Several);
    let whole = (input.partition_keys.is_empty() && !is_partitioned).then_some("");
    input.partition_keys.iter().map(String::as_str).chain(whole)
}

/// Writes one input per line, each in the JSON form of its message.
pub(crate) fn json_lines(inputs: &[pb::ResolvedInput]) -> Result<String, BadJson> {
    inputs
        .iter()
        .map(|input| Ok(json::to_json("ResolvedInput", input)? + "\n"))
        .collect()
}

/// Finds the versions of these partitions, in several statements if there are many.
pub(crate) async fn find(
    loops: &LoopStore,
    partitions: &[InputPartition],
) -> Result<Vec<Vec<FoundVersion>>, StoreError> {
    let mut found = Vec::with_capacity(partitions.len());
    for chunk in partitions.chunks(PARTITIONS_PER_STATEMENT_MAX) {
        found.extend(find_chunk(loops, chunk).await?);
    }
    Ok(found)
}

async fn find_chunk(
    loops: &LoopStore,
    partitions: &[InputPartition],
) -> Result<Vec<Vec<FoundVersion>>, StoreError> {
    let mut found = vec![Vec::new(); partitions.len()];
    for (position, attempt, output, item) in store::latest_versions(loops, partitions).await? {
        let output = output
            .and_then(|output| pb::Output::decode(&*output).ok())
            .unwrap_or_default();
        if let Some(versions) = usize::try_from(position - 1)
            .ok()
            .and_then(|index| found.get_mut(index))
        {
            versions.push(FoundVersion {
                materialization_id: attempt.map(id_text).unwrap_or_default(),
                uri: output.uri,
                rows: output.row_count,
                part: VersionPart::of(item),
            });
        }
    }
    Ok(found)
}

fn id_text(attempt: Uuid) -> String {
    AttemptId::from_bytes(*attempt.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::core::AdmissionPlan;
    use crate::stored_plan::pinned_versions;

    fn stored(plan: pb::Plan) -> StoredPlan {
        StoredPlan {
            tenant: "acme".parse().unwrap(),
            pinned: pinned_versions(&plan),
            plan,
            admission: Arc::new(AdmissionPlan {
                assets: Vec::new(),
                tasks: Vec::new(),
            }),
            bytes: 0,
        }
    }

    fn input(asset: &str, partitions: &[&str]) -> pb::PlannedInput {
        pb::PlannedInput {
            asset_key: asset.to_owned(),
            parameter: "p".to_owned(),
            partition_keys: partitions.iter().map(|key| (*key).to_owned()).collect(),
            optional: false,
            shape: 0,
        }
    }

    #[test]
    fn partitioned_input_without_matching_partitions_reads_nothing() {
        let plan = stored(pb::Plan::default());
        let read = |shape: pb::InputShape| {
            let none = [pb::PlannedInput {
                shape: shape.into(),
                ..input("n/a", &[])
            }];
            let partitions = input_partitions(&plan, &none);
            let resolved = resolve(&none, vec![Vec::new(); partitions.len()]);
            (
                partitions.len(),
                resolved[0].versions.len(),
                resolved[0].shape(),
            )
        };
        assert_eq!(read(pb::InputShape::Whole), (1, 0, pb::InputShape::Whole));
        assert_eq!(read(pb::InputShape::One), (0, 0, pb::InputShape::One));
        assert_eq!(
            read(pb::InputShape::Several),
            (0, 0, pb::InputShape::Several)
        );
    }

    #[test]
    fn retry_pins_the_versions_of_the_run_it_repeats() {
        let id = AttemptId::from_bytes([7; 16]);
        let reused = |task_key: &str, also_made: &[&str]| pb::ReusedOutput {
            task_key: task_key.to_owned(),
            materialization_id: id.to_string(),
            also_made: also_made.iter().map(|asset| (*asset).to_owned()).collect(),
        };
        let plan = pb::Plan {
            workspace: "prod".to_owned(),
            reused: vec![
                reused("n/a[day=d:2026-01-01]:materialize", &["n/also"]),
                reused("n/b:materialize", &[]),
            ],
            ..Default::default()
        };
        let days = ["day=d:2026-01-01", "day=d:2026-01-02"];
        let inputs = [
            input("n/a", &days),
            input("n/b", &[]),
            input("n/c", &[]),
            input("n/also", &days),
        ];
        let pins: Vec<bool> = input_partitions(&stored(plan), &inputs)
            .iter()
            .map(|partition| partition.pinned.is_some())
            .collect();
        assert_eq!(pins, [true, false, true, false, true, false]);
    }

    #[test]
    fn partitions_without_a_version_are_listed_but_assets_without_one_are_not() {
        let found = |id: &str| {
            let (materialization_id, uri) = (id.to_owned(), format!("file:///{id}"));
            vec![FoundVersion {
                materialization_id,
                uri,
                rows: None,
                part: VersionPart::Whole,
            }]
        };
        let inputs = [
            input("n/a", &["k=s:1", "k=s:2"]),
            input("n/b", &[]),
            input("n/c", &[]),
        ];
        let resolved = resolve(&inputs, vec![found("x"), vec![], vec![], found("y")]);
        let versions = |input: &pb::ResolvedInput| -> Vec<String> {
            input
                .versions
                .iter()
                .map(|version| format!("{} {}", version.partition_key, version.uri))
                .collect()
        };
        let shown: Vec<Vec<String>> = resolved.iter().map(versions).collect();
        assert_eq!(shown[0], ["k=s:1 file:///x", "k=s:2 "]);
        assert!(shown[1].is_empty());
        assert!(!resolved.iter().any(|input| input.mapped));
        assert_eq!(shown[2], [" file:///y"]);
    }

    /// `n/a` has four mapped tasks: one produced nothing, and the version of another is
    /// quarantined. `n/b` is not mapped, and `n/c` was mapped over an empty list.
    const ROWS: &str = "
        INSERT INTO scheduler.materializations (attempt_id, asset_key, partition_key, tenant, workspace, run_number,
            ordinal, item, state, recorded_at, promoted_at, output)
        SELECT lpad(to_hex(id), 32, '0')::uuid, asset, 'k=s:1', 'acme', 'prod', 5, ordinal, item, state, now(), now(),
            output
        FROM (VALUES (1, 'n/a', 2, 1, 3, 'x'::bytea), (2, 'n/a', 2, 2, 3, 'x'), (3, 'n/a', 2, 3, 4, 'x'),
            (9, 'n/a', 2, -1, 3, ''), (10, 'n/b', 3, -1, 3, 'x'), (11, 'n/c', 4, -1, 3, ''))
            AS v (id, asset, ordinal, item, state, output);
        INSERT INTO scheduler.tasks (tenant, run_number, ordinal, item, attempt, failures, state, reason, cancelling,
            pushed, changed_at, attempt_id)
        SELECT 'acme', 5, 2, n, 1, 0, 7, 1, false, false, now(), lpad(to_hex(n), 32, '0')::uuid
        FROM generate_series(0, 3) n;
        INSERT INTO scheduler.partitions (tenant, workspace, asset_key, partition_key, attempt_id, attempted_at,
            attempt_run, attempt_state, materialization_id, materialized_at, materialized_run)
        SELECT 'acme', 'prod', asset, 'k=s:1', id, now(), 5, 7, id, now(), 5
        FROM (VALUES ('n/a', lpad('9', 32, '0')::uuid), ('n/b', lpad('a', 32, '0')::uuid),
            ('n/c', lpad('b', 32, '0')::uuid)) AS v (asset, id)";

    #[tokio::test]
    async fn version_of_a_mapped_asset_lists_the_outputs_of_all_children() {
        use sqlx::{Connection, Executor};
        let database = servo_local::TestDatabase::create().await.unwrap();
        let mut admin = sqlx::PgConnection::connect(&database.admin_url())
            .await
            .unwrap();
        admin.execute(sqlx::raw_sql(ROWS)).await.unwrap();
        let config = servo_store::DatabaseConfig::new(database.service_url(), database.password());
        let store = servo_store::Store::connect(servo_model::Service::Dispatcher, &config).unwrap();
        let plan = stored(pb::Plan {
            workspace: "prod".to_owned(),
            ..Default::default()
        });
        let inputs = [
            input("n/a", &["k=s:1", "k=s:2"]),
            input("n/b", &["k=s:1"]),
            input("n/c", &["k=s:1"]),
        ];
        let partitions = input_partitions(&plan, &inputs);
        let resolved = resolve(&inputs, find(store.loops(), &partitions).await.unwrap());
        let shown = |input: &pb::ResolvedInput| {
            let shown = |version: &pb::ResolvedVersion| {
                (
                    version.partition_key.clone(),
                    !version.materialization_id.is_empty(),
                )
            };
            (
                input.mapped,
                input.versions.iter().map(shown).collect::<Vec<_>>(),
            )
        };
        let named = |keys: &[(&str, bool)]| {
            keys.iter()
                .map(|(key, there)| ((*key).to_owned(), *there))
                .collect::<Vec<_>>()
        };
        let items = [
            ("_map=i:0,k=s:1", false),
            ("_map=i:1,k=s:1", true),
            ("_map=i:2,k=s:1", true),
            ("_map=i:3,k=s:1", false),
            ("k=s:2", false),
        ];
        let last = partitions.last().unwrap().clone();
        let missing = InputPartition {
            asset_key: "n/none".to_owned(),
            ..last.clone()
        };
        let many: Vec<InputPartition> = std::iter::repeat_n(missing, PARTITIONS_PER_STATEMENT_MAX)
            .chain([last.clone()])
            .collect();
        let found = find(store.loops(), &many).await.unwrap();
        assert_eq!((found.len(), found[0].len()), (many.len(), 0));
        assert_eq!(
            found.last(),
            find(store.loops(), &[last]).await.unwrap().first(),
            "at its own position"
        );
        assert_eq!(shown(&resolved[0]), (true, named(&items)));
        assert_eq!(shown(&resolved[1]), (false, named(&[("k=s:1", true)])));
        assert_eq!(shown(&resolved[2]), (true, named(&[("k=s:1", true)])));
        assert_eq!(with_item("", VersionPart::Item(7)), "_map=i:7");
    }
}
