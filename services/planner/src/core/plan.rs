//! Turns a request into a plan: a pure function of the deployment, the request and the moment.
//!
//! Start reading at [`draft`]. Tasks are drafted per asset and partition, linked through the
//! mappings, and reduced to the named tasks for a retry; [`PlanDraft::finish`] orders them and
//! computes the plan id with `servo_model::plan`. In between, the caller looks up the state of the
//! partitions that the plan depends on.

mod conditions;
mod draft;
mod write;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use servo_model::limits::{CONFIGS_PER_TASK_BYTES_MAX, TASKS_PER_RUN_MAX};
use servo_model::partitioning::Moment;
use servo_model::plan::PlanId;
use servo_model::{Operation, TaskKey, TenantId, WorkspaceId};
use servo_proto::v1 as pb;
use servo_proto::v1::{ErrorReason as Reason, PartitionCondition, ReusedOutput, RunSpec};

use crate::core::deployment_graph::DeploymentGraph;
use crate::core::freshness::{PartitionRef, Statuses};
use crate::core::partition_selection::{self, SelectedPartitions, select_partitions};
use crate::core::refusal::Refusal;
use crate::core::settings::{self, check_config};

use self::draft::TaskDraft;
pub(crate) use self::draft::inputs_of_partitions;

const LABELS_MAX: usize = 32;
const LABEL_BYTES_MAX: usize = 256;

/// A request for one plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanRequest<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) workspace: &'a WorkspaceId,
    pub(crate) deployment_id: &'a str,
    pub(crate) spec: &'a RunSpec,
    pub(crate) reused: &'a [ReusedOutput],
    /// Keys of the only tasks to keep; empty keeps all.
    pub(crate) only: &'a [String],
    /// 0 means the general limit of a run.
    pub(crate) max_tasks: u32,
}

/// A plan and the id that it is stored under.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BuiltPlan {
    pub(crate) id: PlanId,
    pub(crate) plan: pb::Plan,
}

/// The tasks of a plan before the state of partitions is applied.
#[derive(Debug)]
pub(crate) struct PlanDraft {
    drafts: Vec<TaskDraft>,
    /// Keeps only partitions in this condition.
    condition: PartitionCondition,
    skip_up_to_date: bool,
}

pub(crate) fn draft(
    graph: &DeploymentGraph,
    request: &PlanRequest<'_>,
    moment: &Moment,
) -> Result<PlanDraft, Refusal> {
    let operation = check_spec(request.spec)?;
    let makers = selected_makers(graph, request.spec, operation)?;
    let selection = request.spec.partitions.as_ref();
    let selected = select_partitions(graph, &makers, selection, moment)?;
    check_count(&selected, request.max_tasks)?;
    check_configs(graph, &makers, &request.spec.config_json)?;
    // A retry names its tasks, so the current state of their partitions does not matter.
    let condition = if request.only.is_empty() {
        partition_selection::condition(selection, partition_selection::FIELD)?
    } else {
        PartitionCondition::Unspecified
    };
    let skip_up_to_date = request.spec.skip_up_to_date;
    let needs_statuses = skip_up_to_date || condition != PartitionCondition::Unspecified;
    let drafts = TaskDraft::draft_all(graph, &selected, operation, moment, needs_statuses)?;
    let drafts = draft::keep_named(drafts, request.only)?;
    not_empty(&drafts, "none of its partitions exists")?;
    Ok(PlanDraft {
        drafts,
        condition,
        skip_up_to_date,
    })
}

impl PlanDraft {
    /// Returns the distinct partitions whose state the plan depends on, sorted. Most plans have
    /// none.
    pub(crate) fn partitions(&self) -> Vec<PartitionRef> {
        let all = self.drafts.iter().flat_map(|draft| {
            draft
                .output_partitions
                .iter()
                .chain(&draft.input_partitions)
        });
        let distinct: BTreeSet<&PartitionRef> = all.collect();
        distinct.into_iter().cloned().collect()
    }

    /// `statuses` holds the state of [`PlanDraft::partitions`]; a partition without an attempt has
    /// no entry.
    pub(crate) fn finish(
        self,
        graph: &DeploymentGraph,
        request: &PlanRequest<'_>,
        statuses: &Statuses,
    ) -> Result<BuiltPlan, Refusal> {
        let mut drafts = self.drafts;
        if self.condition != PartitionCondition::Unspecified {
            drafts = conditions::keep_matching(graph, drafts, self.condition, statuses);
            not_empty(
                &drafts,
                "none of its partitions is in the condition that partitions.only names",
            )?;
        }
        if self.skip_up_to_date {
            conditions::mark_up_to_date(graph, &mut drafts, statuses);
        }
        write::plan(graph, request, drafts)
    }
}

fn not_empty(drafts: &[TaskDraft], why: &str) -> Result<(), Refusal> {
    if drafts.is_empty() {
        Err(Refusal::new(
            Reason::SelectionEmpty,
            format!("the selection means no task: {why}"),
        ))
    } else {
        Ok(())
    }
}

/// Checks everything that does not depend on a deployment.
fn check_spec(spec: &RunSpec) -> Result<Operation, Refusal> {
    let invalid =
        |field: &str, sentence: String| Refusal::of_field(Reason::InvalidField, field, sentence);
    check_config(&spec.config_json).map_err(|sentence| invalid("spec.config_json", sentence))?;
    if spec.labels.len() > LABELS_MAX {
        let sentence = format!(
            "has {} entries; at most {LABELS_MAX} are allowed",
            spec.labels.len()
        );
        return Err(invalid("spec.labels", sentence));
    }
    if spec
        .labels
        .iter()
        .any(|(key, value)| key.is_empty() || key.len().max(value.len()) > LABEL_BYTES_MAX)
    {
        let sentence =
            format!("a label is empty or longer than {LABEL_BYTES_MAX} bytes; shorten it");
        return Err(invalid("spec.labels", sentence));
    }
    let not_built = |field: &str, what: &str| {
        Err(Refusal::of_field(
            Reason::NotImplemented,
            field,
            format!("{what} is not built yet; leave it out"),
        ))
    };
    if spec.skip_up_to_date && spec.operation == pb::Operation::Check as i32 {
        let sentence = "a check makes nothing that could be up to date; leave it out".to_owned();
        return Err(invalid("spec.skip_up_to_date", sentence));
    }
    match pb::Operation::try_from(spec.operation) {
        Ok(pb::Operation::Unspecified | pb::Operation::Materialize) => Ok(Operation::Materialize),
        Ok(pb::Operation::Check) => Ok(Operation::Check),
        Ok(pb::Operation::Evaluate) => not_built("spec.operation", "polling a sensor"),
        Err(_) => Err(invalid(
            "spec.operation",
            format!("{} is not an operation", spec.operation),
        )),
    }
}

/// Returns the assets whose tasks the selection includes. Sources have no task.
fn selected_makers(
    graph: &DeploymentGraph,
    spec: &RunSpec,
    operation: Operation,
) -> Result<BTreeSet<u32>, Refusal> {
    const FIELD: &str = "spec.selection";
    if spec.selection.is_empty() {
        let sentence = "is empty; name assets, or `*` for all";
        return Err(Refusal::of_field(Reason::SelectionInvalid, FIELD, sentence));
    }
    let assets = graph.select(FIELD, &spec.selection)?;
    let names_an_asset = !assets.is_empty();
    let has_work = |maker: &u32| {
        let asset = &graph.manifest.assets[*maker as usize];
        operation != Operation::Check || !asset.checks.is_empty()
    };
    let runnable = assets.into_iter().filter(|asset| !graph.is_source(*asset));
    let makers: BTreeSet<u32> = runnable
        .map(|asset| graph.maker(asset))
        .filter(has_work)
        .collect();
    match (makers.is_empty(), names_an_asset) {
        (false, _) => Ok(makers),
        (true, false) => Err(Refusal::of_field(
            Reason::SelectionEmpty,
            FIELD,
            "means no asset of this deployment",
        )),
        (true, true) => {
            let sentence =
                "means only sources, which Servo never runs, or assets without checks to run";
            Err(Refusal::of_field(Reason::SelectionEmpty, FIELD, sentence))
        }
    }
}

fn check_count(selected: &SelectedPartitions, max_tasks: u32) -> Result<(), Refusal> {
    let max = match max_tasks {
        0 => TASKS_PER_RUN_MAX,
        max => TASKS_PER_RUN_MAX.min(max as usize),
    };
    let count: usize = selected.values().map(Vec::len).sum();
    if count <= max {
        Ok(())
    } else {
        Err(Refusal::of_field(
            Reason::QuotaExceeded,
            "spec.selection",
            format!(
                "means {count} tasks, more than the {max} that max_tasks_per_run allows; select less, split the run, \
                 or raise the limit"
            ),
        ))
    }
}

/// Refuses configuration that does not fit into a task's envelope before anything runs.
fn check_configs(
    graph: &DeploymentGraph,
    makers: &BTreeSet<u32>,
    run_config: &str,
) -> Result<(), Refusal> {
    for maker in makers {
        let asset = &graph.manifest.assets[*maker as usize];
        let own = asset.config_json.len() + settings::handler_config(asset).len();
        let bytes = own + run_config.len();
        if bytes > CONFIGS_PER_TASK_BYTES_MAX {
            let sentence = format!(
                "makes {bytes} bytes with the {own} of `{}`; {CONFIGS_PER_TASK_BYTES_MAX} are allowed together, so pass a \
                 reference to what is large",
                asset.key
            );
            return Err(Refusal::of_field(
                Reason::InvalidField,
                "spec.config_json",
                sentence,
            ));
        }
    }
    Ok(())
}

/// Parses a task key from an entry of a request field.
fn parse_key(field: &str, index: usize, text: &str) -> Result<TaskKey, Refusal> {
    text.parse()
        .map_err(|error: servo_model::task_key::TaskKeyError| {
            Refusal::of_field(
                Reason::InvalidField,
                format!("{field}[{index}]"),
                error.to_string(),
            )
        })
}
