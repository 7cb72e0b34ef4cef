//! What a task reads: which partitions its plan names, and the versions of them that stand when it is dispatched.

use std::collections::HashMap;

use prost::Message as _;
use servo_model::task_key::child_partition;
use servo_model::{AttemptId, PartitionKey, TaskKey};
use servo_proto::json::{self, BadJson};
use servo_proto::v1 as pb;
use servo_store::{LoopStore, StoreError};
use uuid::Uuid;

use crate::envelope::StoredPlan;
use crate::store;

/// Partitions that one statement looks up; tens of thousands last as long as a statement may.
const KEYS_PER_STATEMENT_MAX: usize = 10_000;

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
    /// Empty when a mapped child made nothing.
    pub(crate) materialization_id: String,
    /// Empty when its attempt wrote nothing.
    pub(crate) uri: String,
    pub(crate) rows: Option<u64>,
    pub(crate) part: Part,
}

/// How much of its partition a version is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// Stands for what mapped children made, which follows it.
    Items,
    Item(u32),
}

impl Part {
    /// As the statement tells it.
    fn of(item: i32) -> Part {
        match (u32::try_from(item), item) {
            (Ok(item), _) => Part::Item(item),
            (_, -1) => Part::Whole,
            _ => Part::Items,
        }
    }
}

/// What was looked up for an envelope.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    pub(crate) inputs: Inputs,
    /// The good version of the output that stands, for checks that compare with it.
    pub(crate) previous: Option<pb::PreviousVersion>,
}

impl Found {
    pub(crate) const NOTHING: Found = Found {
        inputs: Inputs::Inline(Vec::new()),
        previous: None,
    };
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
    stored
        .plan
        .tasks
        .get(ordinal as usize)
        .map_or(&[], |task| &task.inputs)
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
    let Version {
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

/// Every partition of these inputs, in their order.
pub(crate) fn wanted(
    plan: &pb::Plan,
    taken_over: &TakenOver,
    inputs: &[pb::PlannedInput],
) -> Vec<Wanted> {
    let wanted = |asset_key: &str, partition_key: &str| Wanted {
        tenant: plan.tenant.clone(),
        workspace: plan.workspace.clone(),
        pinned: taken_over
            .get(&(asset_key.to_owned(), partition_key.to_owned()))
            .copied(),
        asset_key: asset_key.to_owned(),
        partition_key: partition_key.to_owned(),
    };
    inputs
        .iter()
        .flat_map(|input| partitions(input).map(|key| wanted(&input.asset_key, key)))
        .collect()
}

/// The versions found, in the order of [`wanted`], as the envelope tells them. A partition without a version is named
/// all the same: sources have none, and user code must know what of them is meant.
pub(crate) fn resolved(
    inputs: &[pb::PlannedInput],
    found: Vec<Vec<Version>>,
) -> Vec<pb::ResolvedInput> {
    let mut found = found.into_iter();
    let resolve = |input: &pb::PlannedInput| {
        let found: Vec<(&str, Vec<Version>)> = partitions(input)
            .map(|key| (key, found.next().unwrap_or_default()))
            .collect();
        let mapped = found
            .iter()
            .flat_map(|(_, versions)| versions)
            .any(|each| each.part == Part::Items);
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
    inputs.iter().map(resolve).collect()
}

fn versions(partition_key: &str, mut found: Vec<Version>) -> Vec<pb::ResolvedVersion> {
    if found.is_empty() && !partition_key.is_empty() {
        return vec![pb::ResolvedVersion {
            partition_key: partition_key.to_owned(),
            ..Default::default()
        }];
    }
    // What stands for the items is told only where there are none.
    if found.len() > 1 {
        found.retain(|version| version.part != Part::Items);
    }
    let told = |Version {
                    materialization_id,
                    uri,
                    part,
                    ..
                }| pb::ResolvedVersion {
        partition_key: with_item(partition_key, part),
        materialization_id,
        uri,
    };
    found.into_iter().map(told).collect()
}

/// A child's key has the reserved dimension that numbers it.
fn with_item(partition_key: &str, part: Part) -> String {
    let Part::Item(item) = part else {
        return partition_key.to_owned();
    };
    let partition: Option<PartitionKey> = partition_key.parse().ok();
    child_partition(partition.as_ref(), item)
}

/// An asset in one piece has one partition without a name; of another one that has none for the reader nothing is read.
fn partitions(input: &pb::PlannedInput) -> impl Iterator<Item = &str> {
    let is_cut = matches!(input.shape(), pb::InputShape::One | pb::InputShape::Several);
    let whole = (input.partition_keys.is_empty() && !is_cut).then_some("");
    input.partition_keys.iter().map(String::as_str).chain(whole)
}

/// The version of each asset and partition that a retry takes over from the run it repeats.
pub(crate) type TakenOver = HashMap<(String, String), Uuid>;

pub(crate) fn taken_over(plan: &pb::Plan) -> TakenOver {
    let pins = |reused: &pb::ReusedOutput| {
        let key: TaskKey = reused.task_key.parse().ok()?;
        let attempt: AttemptId = reused.materialization_id.parse().ok()?;
        let attempt = Uuid::from_bytes(*attempt.as_bytes());
        let partition = key.partition().map(ToString::to_string).unwrap_or_default();
        let assets =
            std::iter::once(key.asset().canonical()).chain(reused.also_made.iter().cloned());
        Some(
            assets
                .map(|asset| ((asset, partition.clone()), attempt))
                .collect::<Vec<_>>(),
        )
    };
    plan.reused.iter().filter_map(pins).flatten().collect()
}

/// One input per line, in the JSON form of its message.
pub(crate) fn json_lines(inputs: &[pb::ResolvedInput]) -> Result<String, BadJson> {
    inputs
        .iter()
        .map(|input| Ok(json::to_json("ResolvedInput", input)? + "\n"))
        .collect()
}

/// Finds all of these, by as many statements as it takes for none to last.
pub(crate) async fn find(
    loops: &LoopStore,
    wanted: &[Wanted],
) -> Result<Vec<Vec<Version>>, StoreError> {
    let mut found = Vec::with_capacity(wanted.len());
    for part in wanted.chunks(KEYS_PER_STATEMENT_MAX) {
        found.extend(find_part(loops, part).await?);
    }
    Ok(found)
}

async fn find_part(loops: &LoopStore, wanted: &[Wanted]) -> Result<Vec<Vec<Version>>, StoreError> {
    let mut found = vec![Vec::new(); wanted.len()];
    for (place, attempt, output, item) in store::latest_versions(loops, wanted).await? {
        let output = output
            .and_then(|output| pb::Output::decode(&*output).ok())
            .unwrap_or_default();
        if let Some(versions) = usize::try_from(place - 1)
            .ok()
            .and_then(|index| found.get_mut(index))
        {
            versions.push(Version {
                materialization_id: attempt.map(id_text).unwrap_or_default(),
                uri: output.uri,
                rows: output.row_count,
                part: Part::of(item),
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
    use super::*;

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
    fn of_an_asset_with_partitions_nothing_is_read_when_none_goes_with_the_reader() {
        let plan = pb::Plan::default();
        let read = |shape: pb::InputShape| {
            let none = [pb::PlannedInput {
                shape: shape.into(),
                ..input("n/a", &[])
            }];
            let wanted = wanted(&plan, &TakenOver::new(), &none);
            let told = resolved(&none, vec![Vec::new(); wanted.len()]);
            (wanted.len(), told[0].versions.len(), told[0].shape())
        };
        assert_eq!(read(pb::InputShape::Whole), (1, 0, pb::InputShape::Whole));
        assert_eq!(read(pb::InputShape::One), (0, 0, pb::InputShape::One));
        assert_eq!(
            read(pb::InputShape::Several),
            (0, 0, pb::InputShape::Several)
        );
    }

    #[test]
    fn a_retry_takes_over_the_versions_of_the_run_it_repeats() {
        let id = AttemptId::from_bytes([7; 16]);
        let reused = |task_key: &str, also_made: &[&str]| pb::ReusedOutput {
            task_key: task_key.to_owned(),
            materialization_id: id.to_string(),
            also_made: also_made.iter().map(|asset| (*asset).to_owned()).collect(),
        };
        let plan = pb::Plan {
            tenant: "acme".to_owned(),
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
        let pins: Vec<bool> = wanted(&plan, &taken_over(&plan), &inputs)
            .iter()
            .map(|wanted| wanted.pinned.is_some())
            .collect();
        assert_eq!(pins, [true, false, true, false, true, false]);
    }

    #[test]
    fn partitions_without_a_version_are_named_and_assets_without_one_are_empty() {
        let found = |id: &str| {
            let (materialization_id, uri) = (id.to_owned(), format!("file:///{id}"));
            vec![Version {
                materialization_id,
                uri,
                rows: None,
                part: Part::Whole,
            }]
        };
        let inputs = [
            input("n/a", &["k=s:1", "k=s:2"]),
            input("n/b", &[]),
            input("n/c", &[]),
        ];
        let resolved = resolved(&inputs, vec![found("x"), vec![], vec![], found("y")]);
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
        assert!(!resolved.iter().any(|input| input.mapped));
        assert_eq!(told[2], [" file:///y"]);
    }

    /// `n/a` has four children, of which one made nothing and one's version waits for a decision; `n/b` is in one piece,
    /// and `n/c` was mapped over nothing.
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
    async fn a_version_of_a_mapped_asset_is_what_all_its_children_made() {
        use sqlx::{Connection, Executor};
        let database = servo_local::TestDatabase::create().await.unwrap();
        let mut admin = sqlx::PgConnection::connect(&database.admin_url())
            .await
            .unwrap();
        admin.execute(sqlx::raw_sql(ROWS)).await.unwrap();
        let config = servo_store::DatabaseConfig::new(database.service_url(), database.password());
        let store = servo_store::Store::connect(servo_model::Service::Dispatcher, &config).unwrap();
        let plan = pb::Plan {
            tenant: "acme".to_owned(),
            workspace: "prod".to_owned(),
            ..Default::default()
        };
        let inputs = [
            input("n/a", &["k=s:1", "k=s:2"]),
            input("n/b", &["k=s:1"]),
            input("n/c", &["k=s:1"]),
        ];
        let wanted = wanted(&plan, &TakenOver::new(), &inputs);
        let resolved = resolved(&inputs, find(store.loops(), &wanted).await.unwrap());
        let told = |input: &pb::ResolvedInput| {
            let told = |version: &pb::ResolvedVersion| {
                (
                    version.partition_key.clone(),
                    !version.materialization_id.is_empty(),
                )
            };
            (
                input.mapped,
                input.versions.iter().map(told).collect::<Vec<_>>(),
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
        let last = wanted.last().unwrap().clone();
        let missing = Wanted {
            asset_key: "n/none".to_owned(),
            ..last.clone()
        };
        let many: Vec<Wanted> = std::iter::repeat_n(missing, KEYS_PER_STATEMENT_MAX)
            .chain([last.clone()])
            .collect();
        let found = find(store.loops(), &many).await.unwrap();
        assert_eq!((found.len(), found[0].len()), (many.len(), 0));
        assert_eq!(
            found.last(),
            find(store.loops(), &[last]).await.unwrap().first(),
            "in its own place"
        );
        assert_eq!(told(&resolved[0]), (true, named(&items)));
        assert_eq!(told(&resolved[1]), (false, named(&[("k=s:1", true)])));
        assert_eq!(told(&resolved[2]), (true, named(&[("k=s:1", true)])));
        assert_eq!(with_item("", Part::Item(7)), "_map=i:7");
    }
}
