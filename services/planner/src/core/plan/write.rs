//! Orders drafts, computes the plan id and builds the plan message.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use servo_model::json::Json;
use servo_model::plan::{Plan, PlanError, PlanHeader, PlanTask};
use servo_model::{AssetKey, AttemptId, Digest, Operation, TaskKey};
use servo_proto::v1 as pb;
use servo_proto::v1::{
    ErrorReason as Reason, PlannedAsset, PlannedInput, PlannedTask, ReusedOutput,
};

use super::draft::TaskDraft;
use super::{BuiltPlan, PlanRequest, parse_key};
use crate::core::deployment_graph::DeploymentGraph;
use crate::core::refusal::Refusal;
use crate::core::settings;

pub(super) fn plan(
    graph: &DeploymentGraph,
    request: &PlanRequest<'_>,
    drafts: Vec<TaskDraft>,
) -> Result<BuiltPlan, Refusal> {
    let assets: BTreeSet<u32> = drafts.iter().map(|draft| draft.asset).collect();
    let reused = reused(request.reused)?;
    let header = header(graph, request, &assets, &reused);
    let plan = Plan::new(header, tasks(graph, request, &drafts)).map_err(plan_error)?;
    let message = pb::Plan {
        plan_id: plan.id().to_string(),
        fingerprint: plan.fingerprint().to_string(),
        tenant: request.tenant.to_string(),
        workspace: request.workspace.to_string(),
        deployment_id: request.deployment_id.to_owned(),
        manifest_digest: graph.digest.to_string(),
        assets: assets
            .iter()
            .filter_map(|asset| planned_asset(graph, request, *asset))
            .collect(),
        tasks: planned_tasks(&plan, drafts, &assets),
        reused,
        config_json: request.spec.config_json.clone(),
        artifact: graph.manifest.artifact.clone(),
    };
    Ok(BuiltPlan {
        id: plan.id(),
        plan: message,
    })
}

fn header(
    graph: &DeploymentGraph,
    request: &PlanRequest<'_>,
    assets: &BTreeSet<u32>,
    reused: &[ReusedOutput],
) -> PlanHeader {
    let digests = assets.iter().filter_map(|asset| {
        let (_, digest) = graph.planned[*asset as usize].as_ref()?;
        Some((
            graph.name(*asset).to_owned(),
            Json::Text(digest.to_string()),
        ))
    });
    let reused = reused.iter().map(reused_output_json);
    let settings = BTreeMap::from([
        ("assets".to_owned(), Json::Object(digests.collect())),
        (
            "config_sha256".to_owned(),
            Json::Text(Digest::of(&request.spec.config_json).to_string()),
        ),
        (
            "deployment_id".to_owned(),
            Json::Text(request.deployment_id.to_owned()),
        ),
        ("reused".to_owned(), Json::Array(reused.collect())),
    ]);
    PlanHeader {
        tenant: request.tenant.clone(),
        workspace: request.workspace.clone(),
        deployment: graph.digest,
        settings,
    }
}

/// A task with a single output is written without the list of further outputs, so that plans stored
/// before that list existed keep their id.
fn reused_output_json(output: &ReusedOutput) -> Json {
    let also_made = output.also_made.iter().cloned().map(Json::Text).collect();
    let also_made = (!output.also_made.is_empty()).then_some(Json::Array(also_made));
    let named = [&output.task_key, &output.materialization_id].map(|text| Json::Text(text.clone()));
    Json::Array(named.into_iter().chain(also_made).collect())
}

fn tasks(
    graph: &DeploymentGraph,
    request: &PlanRequest<'_>,
    drafts: &[TaskDraft],
) -> Vec<PlanTask<TaskKey>> {
    let key = |index: &usize| drafts[*index].key.clone();
    let task = |draft: &TaskDraft| {
        let (planned, _) = graph.planned[draft.asset as usize].as_ref()?;
        Some(PlanTask {
            key: draft.key.clone(),
            upstream: draft.upstream.iter().map(key).collect(),
            map_over: draft.mapped_over.as_ref().map(key),
            priority: planned.priority.saturating_add(request.spec.priority),
            resources: settings::resources(planned),
            retry: settings::retry_policy(planned),
            settings: task_settings(draft),
        })
    };
    drafts.iter().filter_map(task).collect()
}

fn task_settings(draft: &TaskDraft) -> BTreeMap<String, Json> {
    let inputs = Json::Array(draft.inputs.iter().map(input_json).collect());
    let up_to_date = draft
        .up_to_date
        .then(|| ("up_to_date".to_owned(), Json::Bool(true)));
    [("inputs".to_owned(), inputs)]
        .into_iter()
        .chain(up_to_date)
        .collect()
}

fn input_json(input: &PlannedInput) -> Json {
    let text = |text: &String| Json::Text(text.clone());
    Json::Object(BTreeMap::from([
        ("asset".to_owned(), text(&input.asset_key)),
        ("optional".to_owned(), Json::Bool(input.optional)),
        ("parameter".to_owned(), text(&input.parameter)),
        (
            "partitions".to_owned(),
            Json::Array(input.partition_keys.iter().map(text).collect()),
        ),
    ]))
}

fn planned_asset(
    graph: &DeploymentGraph,
    request: &PlanRequest<'_>,
    asset: u32,
) -> Option<PlannedAsset> {
    let (planned, _) = graph.planned[asset as usize].as_ref()?;
    let priority = planned.priority.saturating_add(request.spec.priority);
    Some(PlannedAsset {
        priority,
        ..planned.clone()
    })
}

fn planned_tasks(plan: &Plan, drafts: Vec<TaskDraft>, assets: &BTreeSet<u32>) -> Vec<PlannedTask> {
    let numbers: HashMap<u32, u32> = assets.iter().copied().zip(0..).collect();
    let mut drafts: HashMap<TaskKey, TaskDraft> = drafts
        .into_iter()
        .map(|draft| (draft.key.clone(), draft))
        .collect();
    let write = |task: &PlanTask<u32>| {
        let draft = drafts.remove(&task.key)?;
        Some(PlannedTask {
            task_key: task.key.as_str().to_owned(),
            asset: numbers[&draft.asset],
            partition_key: task
                .key
                .partition()
                .map(ToString::to_string)
                .unwrap_or_default(),
            operation: operation(task.key.operation()).into(),
            upstream: task.upstream.clone(),
            inputs: draft.inputs,
            mapped_over: task.map_over,
            sensor: None,
            up_to_date: draft.up_to_date,
        })
    };
    plan.tasks().iter().filter_map(write).collect()
}

fn operation(operation: Operation) -> pb::Operation {
    match operation {
        Operation::Materialize => pb::Operation::Materialize,
        Operation::Check => pb::Operation::Check,
        Operation::Evaluate => pb::Operation::Evaluate,
    }
}

/// Parses the reused outputs and sorts them by task; a repeated task is refused.
fn reused(outputs: &[ReusedOutput]) -> Result<Vec<ReusedOutput>, Refusal> {
    const FIELD: &str = "reused";
    let mut by_task = BTreeMap::new();
    for (index, output) in outputs.iter().enumerate() {
        let key = parse_key(FIELD, index, &output.task_key)?;
        if let Err(error) = output.materialization_id.parse::<AttemptId>() {
            let field = format!("{FIELD}[{index}].materialization_id");
            return Err(Refusal::of_field(
                Reason::InvalidField,
                field,
                error.to_string(),
            ));
        }
        for (position, also) in output.also_made.iter().enumerate() {
            if let Err(error) = AssetKey::parse_canonical(also) {
                let field = format!("{FIELD}[{index}].also_made[{position}]");
                return Err(Refusal::of_field(
                    Reason::InvalidField,
                    field,
                    error.to_string(),
                ));
            }
        }
        if by_task.insert(key.clone(), output.clone()).is_some() {
            let field = format!("{FIELD}[{index}].task_key");
            return Err(Refusal::of_field(
                Reason::InvalidField,
                field,
                format!("`{key}` appears twice; keep one"),
            ));
        }
    }
    Ok(by_task.into_values().collect())
}

fn plan_error(error: PlanError) -> Refusal {
    let reason = match &error {
        PlanError::TooManyTasks(_) | PlanError::TooManyEdges(_) => Reason::QuotaExceeded,
        PlanError::MapOver { .. } | PlanError::Graph(_) | PlanError::Settings(_) => {
            Reason::Internal
        }
    };
    Refusal::new(reason, error.to_string())
}
